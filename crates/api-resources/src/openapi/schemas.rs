//! From our descriptions, and those of definitions, to published ones.

use serde_json::{Map, Value, json};

use super::group_version_kind;
use crate::resource::{Origin, Resource};
use crate::schema::{Field, ListType, OBJECT_META, Schema, Shape};

/// The descriptions of one document, each once.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    by_name: Map<String, Value>,
}

impl Schemas {
    pub(super) fn into_json(self) -> Value {
        Value::Object(self.by_name)
    }

    /// Adds the description of the kind of a resource, if there is one.
    pub(super) fn add_resource(&mut self, resource: &Resource) {
        let (name, schema) = match &resource.origin {
            Origin::BuiltIn(row) => match row.schema.filter(|it| !it.is_incomplete) {
                Some(schema) => (schema.name.to_owned(), self.object_schema(schema)),
                None => return,
            },
            Origin::Custom(served) => match &served.schema {
                Some(schema) => (custom_name(resource), Value::clone(schema)),
                None => return,
            },
        };
        let schema = self.add_common_fields(resource, schema);
        self.by_name.insert(name, schema);
    }

    /// Adds what all kinds have.
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
        let kinds = json!([group_version_kind(resource)]);
        members.insert("x-kubernetes-group-version-kind".to_owned(), kinds);
        schema
    }

    fn object_schema(&mut self, schema: &'static Schema) -> Value {
        let mut properties = Map::new();
        for field in schema.fields {
            properties.insert(field.name.to_owned(), self.field(field));
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

    fn field(&mut self, field: &'static Field) -> Value {
        let mut value = match field.shape {
            Shape::Object(schema) => return self.schema_reference(schema, field.description),
            _ => self.shape_schema(&field.shape),
        };
        let Value::Object(members) = &mut value else { return value };
        members.insert("description".to_owned(), field.description.into());
        if let Shape::List(_) = field.shape {
            let mut add = |key: &str, value: Value| members.insert(key.to_owned(), value);
            match field.list {
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

    fn shape_schema(&mut self, shape: &'static Shape) -> Value {
        match shape {
            Shape::Text => json!({ "type": "string" }),
            Shape::Bytes => json!({ "type": "string", "format": "byte" }),
            Shape::Boolean => json!({ "type": "boolean" }),
            Shape::Int32 => json!({ "type": "integer", "format": "int32" }),
            Shape::Int64 => json!({ "type": "integer", "format": "int64" }),
            Shape::Time | Shape::MicroTime => json!({ "type": "string", "format": "date-time" }),
            Shape::AnyObject => json!({ "type": "object" }),
            Shape::Object(schema) => {
                self.add(schema);
                json!({ "$ref": path(schema) })
            }
            Shape::List(item) => json!({ "type": "array", "items": self.shape_schema(item) }),
            Shape::Map(item) => {
                json!({ "type": "object", "additionalProperties": self.shape_schema(item) })
            }
        }
    }

    /// A reference can have no description beside it, so it is wrapped.
    fn schema_reference(&mut self, schema: &'static Schema, description: &str) -> Value {
        self.add(schema);
        json!({ "description": description, "allOf": [{ "$ref": path(schema) }] })
    }

    fn add(&mut self, schema: &'static Schema) {
        if !self.by_name.contains_key(schema.name) {
            // The name is taken first: a structure may refer to itself.
            self.by_name.insert(schema.name.to_owned(), Value::Null);
            let structure = self.object_schema(schema);
            self.by_name.insert(schema.name.to_owned(), structure);
        }
    }
}

fn path(schema: &Schema) -> String {
    format!("#/components/schemas/{}", schema.name)
}

/// The group backwards, as packages are named: `com.example.v1.Widget`.
fn custom_name(resource: &Resource) -> String {
    let group: Vec<&str> = resource.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}
