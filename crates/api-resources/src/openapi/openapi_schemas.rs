//! Converts the schemas of built-in kinds and of definitions to OpenAPI schemas.

use serde_json::{Map, Value, json};

use super::group_version_kind_json;
use crate::resource::{Resource, ResourceOrigin};
use crate::schema::{Field, FieldType, ListType, OBJECT_META, Schema};

/// The schemas of one OpenAPI document, by name.
#[derive(Debug, Default)]
pub(super) struct OpenApiSchemas {
    schemas_by_name: Map<String, Value>,
}

impl OpenApiSchemas {
    pub(super) fn into_json(self) -> Value {
        Value::Object(self.schemas_by_name)
    }

    /// Adds the schema of the kind of a resource, if it has a complete one.
    pub(super) fn add_resource_schema(&mut self, resource: &Resource) {
        let (name, schema) = match &resource.resource_origin {
            ResourceOrigin::BuiltIn(row) => match row.schema.filter(|it| !it.is_incomplete) {
                Some(schema) => (schema.name.to_owned(), self.openapi_schema_of_object(schema)),
                None => return,
            },
            ResourceOrigin::Custom(served) => match &served.schema_json {
                Some(schema) => match serde_json::from_str(schema) {
                    Ok(schema) => (custom_schema_name(resource), schema),
                    Err(_) => return,
                },
                None => return,
            },
        };
        let schema = self.add_common_fields(resource, schema);
        self.schemas_by_name.insert(name, schema);
    }

    /// Adds `apiVersion`, `kind` and `metadata`.
    fn add_common_fields(&mut self, resource: &Resource, mut schema: Value) -> Value {
        let metadata = self.schema_reference(&OBJECT_META, "What all objects have.");
        let Value::Object(members) = &mut schema else { return schema };
        let properties = members.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            let text = |description| json!({ "type": "string", "description": description });
            let api_version = text("Group and version of the kind, such as apps/v1.");
            properties.insert("apiVersion".to_owned(), api_version);
            properties.insert("kind".to_owned(), text("What the object is."));
            properties.insert("metadata".to_owned(), metadata);
        }
        let kinds = json!([group_version_kind_json(resource)]);
        members.insert("x-kubernetes-group-version-kind".to_owned(), kinds);
        schema
    }

    fn openapi_schema_of_object(&mut self, schema: &'static Schema) -> Value {
        let mut properties = Map::new();
        for field in schema.fields {
            properties.insert(field.name.to_owned(), self.openapi_schema_of_field(field));
        }
        let required: Vec<&str> =
            schema.fields.iter().filter(|it| it.is_required).map(|it| it.name).collect();
        let mut value = json!({
            "type": "object", "description": schema.description, "properties": properties,
        });
        if let Value::Object(members) = &mut value {
            if !required.is_empty() {
                members.insert("required".to_owned(), required.into());
            }
            if schema.is_atomic {
                members.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
            }
        }
        value
    }

    fn openapi_schema_of_field(&mut self, field: &'static Field) -> Value {
        let mut value = match field.field_type {
            FieldType::Object(schema) => return self.schema_reference(schema, field.description),
            _ => self.openapi_schema_of_type(&field.field_type),
        };
        let Value::Object(members) = &mut value else { return value };
        members.insert("description".to_owned(), field.description.into());
        if let FieldType::List(_) = field.field_type {
            let mut add = |key: &str, value: Value| members.insert(key.to_owned(), value);
            match field.list_type {
                ListType::Atomic => {
                    add("x-kubernetes-list-type", "atomic".into());
                }
                ListType::Set => {
                    add("x-kubernetes-list-type", "set".into());
                    add("x-kubernetes-patch-strategy", "merge".into());
                }
                ListType::Map(key) => {
                    add("x-kubernetes-list-type", "map".into());
                    add("x-kubernetes-list-map-keys", json!([key]));
                    add("x-kubernetes-patch-strategy", "merge".into());
                    add("x-kubernetes-patch-merge-key", key.into());
                }
            }
        }
        value
    }

    fn openapi_schema_of_type(&mut self, field_type: &'static FieldType) -> Value {
        match field_type {
            FieldType::Text => json!({ "type": "string" }),
            FieldType::Bytes => json!({ "type": "string", "format": "byte" }),
            FieldType::Boolean => json!({ "type": "boolean" }),
            FieldType::Int32 => json!({ "type": "integer", "format": "int32" }),
            FieldType::Int64 => json!({ "type": "integer", "format": "int64" }),
            FieldType::Time | FieldType::MicroTime => {
                json!({ "type": "string", "format": "date-time" })
            }
            FieldType::AnyObject => json!({ "type": "object" }),
            FieldType::Object(schema) => {
                self.add_schema(schema);
                json!({ "$ref": schema_reference_path(schema) })
            }
            FieldType::List(item) => {
                json!({ "type": "array", "items": self.openapi_schema_of_type(item) })
            }
            FieldType::Map(item) => {
                json!({ "type": "object", "additionalProperties": self.openapi_schema_of_type(item) })
            }
        }
    }

    /// Builds a reference to a schema. It is wrapped in `allOf`, because a reference can have no description
    /// beside it.
    fn schema_reference(&mut self, schema: &'static Schema, description: &str) -> Value {
        self.add_schema(schema);
        json!({ "description": description, "allOf": [{ "$ref": schema_reference_path(schema) }] })
    }

    fn add_schema(&mut self, schema: &'static Schema) {
        if !self.schemas_by_name.contains_key(schema.name) {
            // The name is inserted first, because a schema may refer to itself.
            self.schemas_by_name.insert(schema.name.to_owned(), Value::Null);
            let structure = self.openapi_schema_of_object(schema);
            self.schemas_by_name.insert(schema.name.to_owned(), structure);
        }
    }
}

fn schema_reference_path(schema: &Schema) -> String {
    format!("#/components/schemas/{}", schema.name)
}

/// The name of the schema of a custom resource, with the group reversed: `com.example.v1.Widget`.
fn custom_schema_name(resource: &Resource) -> String {
    let group: Vec<&str> = resource.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}
