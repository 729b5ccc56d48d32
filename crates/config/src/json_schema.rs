//! The JSON Schema of the configuration kinds, for editors and for checks in CI.
//!
//! It is built from the schemas that the decoder uses, so the two cannot disagree about fields.
//! The loader checks what a JSON Schema cannot express: unique names, files and expressions. The
//! output is draft 7, the newest draft that YAML editors support throughout.

use authz_chain::AuthorizerType;
use document::{FieldSchema, FieldType, ObjectSchema, SchemaTextRule};
use serde_json::{Map, Value, json};

use crate::authorization_config::AUTHORIZATION_CONFIGURATION;
use crate::authorization_hooks::HOOK_CONFIGURATION;

/// Syntax of a duration that is not negative.
const DURATION_PATTERN: &str = r"^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";
const DNS_SUBDOMAIN_PATTERN: &str =
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// The schema of `AuthorizationConfiguration`.
///
/// ```
/// let schema = config::authorization_configuration_json_schema();
/// assert_eq!(schema["title"], "AuthorizationConfiguration");
/// assert_eq!(schema["additionalProperties"], false);
/// ```
pub fn authorization_configuration_json_schema() -> Value {
    json_schema_of_root(&AUTHORIZATION_CONFIGURATION)
}

/// The schema of `ExternalAuthorizationHookConfiguration`.
pub fn authorization_hook_json_schema() -> Value {
    json_schema_of_root(&HOOK_CONFIGURATION)
}

fn json_schema_of_root(root: &'static ObjectSchema) -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
    schema.insert("title".to_owned(), json!(root.type_name));
    schema.insert("description".to_owned(), json!(root.description));
    schema.extend(json_schema_of_object(root));
    Value::Object(schema)
}

fn json_schema_of_object(object: &'static ObjectSchema) -> Map<String, Value> {
    let properties: Map<String, Value> = object
        .field_schemas
        .iter()
        .map(|field| (field.name.to_owned(), json_schema_of_field(field)))
        .collect();
    let required: Vec<&str> = object
        .field_schemas
        .iter()
        .filter(|field| field.is_required)
        .map(|field| field.name)
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema.insert("required".to_owned(), json!(required));
    schema.insert("properties".to_owned(), Value::Object(properties));
    let rules = json_schema_of_cross_field_rules(object);
    if !rules.is_empty() {
        schema.insert("allOf".to_owned(), Value::Array(rules));
    }
    schema
}

fn json_schema_of_field(field: &'static FieldSchema) -> Value {
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!(field.description));
    match &field.field_type {
        FieldType::Text(rule) => {
            schema.insert("type".to_owned(), nullable_json_type("string", field));
            let (keyword, value) = json_schema_keyword_of_text_rule(rule, field);
            schema.insert(keyword.to_owned(), value);
        }
        FieldType::Duration { default } => {
            // A field of this type may not be null, unlike a field of another type.
            schema.insert("type".to_owned(), json!("string"));
            schema.insert("pattern".to_owned(), json!(DURATION_PATTERN));
            schema.extend(default.map(|default| ("default".to_owned(), json!(default))));
        }
        FieldType::Bool { default } => {
            schema.insert("type".to_owned(), nullable_json_type("boolean", field));
            schema.insert("default".to_owned(), json!(default));
        }
        FieldType::Integer => {
            schema.insert("type".to_owned(), nullable_json_type("integer", field));
        }
        FieldType::TextList => {
            schema.insert("type".to_owned(), nullable_json_type("array", field));
            schema.insert("items".to_owned(), json!({ "type": "string" }));
        }
        FieldType::TextMap => {
            schema.insert("type".to_owned(), nullable_json_type("object", field));
            schema.insert("additionalProperties".to_owned(), json!({ "type": "string" }));
        }
        FieldType::Any => {}
        FieldType::Object(object) => {
            schema.extend(json_schema_of_object(object));
            schema.insert("type".to_owned(), nullable_json_type("object", field));
        }
        FieldType::ListOrMap { item, items_min } => {
            let list_item = json_schema_of_object(item);
            let mut map_item = list_item.clone();
            // The key of an entry is its name.
            let is_required = |field: &&FieldSchema| field.is_required && field.name != "name";
            let required: Vec<&str> =
                item.field_schemas.iter().filter(is_required).map(|field| field.name).collect();
            map_item.insert("required".to_owned(), json!(required));
            let list = json!({ "type": "array", "minItems": items_min, "items": list_item });
            let map = json!({
                "type": "object",
                "minProperties": items_min,
                "additionalProperties": map_item,
            });
            schema.insert("anyOf".to_owned(), json!([list, map]));
        }
        FieldType::List { item, items_min, items_max } => {
            schema.insert("type".to_owned(), nullable_json_type("array", field));
            schema.insert("minItems".to_owned(), json!(items_min));
            schema.extend(items_max.map(|max| ("maxItems".to_owned(), json!(max))));
            let mut item_schema = json_schema_of_object(item);
            item_schema.insert("description".to_owned(), json!(item.description));
            schema.insert("items".to_owned(), Value::Object(item_schema));
        }
    }
    Value::Object(schema)
}

/// The JSON type of a field. A field that may be absent may also be null.
fn nullable_json_type(name: &str, field: &FieldSchema) -> Value {
    if field.is_required { json!(name) } else { json!([name, "null"]) }
}

fn json_schema_keyword_of_text_rule(
    rule: &SchemaTextRule,
    field: &FieldSchema,
) -> (&'static str, Value) {
    match rule {
        SchemaTextRule::Any => ("pattern", json!(r"\S")),
        SchemaTextRule::OneOf(values) if field.is_required => ("enum", json!(values)),
        SchemaTextRule::OneOf(values) => {
            let mut values: Vec<Value> = values.iter().map(|&value| json!(value)).collect();
            values.extend([json!(""), Value::Null]);
            ("enum", Value::Array(values))
        }
        SchemaTextRule::DnsSubdomain => ("pattern", json!(DNS_SUBDOMAIN_PATTERN)),
        SchemaTextRule::AbsolutePath => ("pattern", json!("^/")),
    }
}

/// Returns the rules about several fields of one object, which the table of fields cannot express.
fn json_schema_of_cross_field_rules(object: &ObjectSchema) -> Vec<Value> {
    let when = |field: &str, value: &str, then: Value, otherwise: Value| {
        let condition = json!({ "required": [field], "properties": { field: { "const": value } } });
        json!({ "if": condition, "then": then, "else": otherwise })
    };
    match object.type_name {
        "AuthorizerConfiguration" => {
            let built_in = AuthorizerType::BUILT_IN.into_iter().filter_map(|kind| {
                let name = kind.fixed_authorizer_name()?;
                let then = json!({ "properties": { "name": { "const": name } } });
                Some(when("type", kind.name(), then, json!(true)))
            });
            let webhook = when(
                "type",
                AuthorizerType::Webhook.name(),
                json!({ "required": ["webhook"], "properties": { "webhook": { "type": "object" } } }),
                json!({ "properties": { "webhook": { "type": "null" } } }),
            );
            built_in.chain([webhook]).collect()
        }
        "WebhookConfiguration" => {
            let has_conditions = json!({
                "required": ["matchConditions"],
                "properties": { "matchConditions": { "type": "array", "minItems": 1 } },
            });
            let needs_version = json!({
                "required": ["matchConditionSubjectAccessReviewVersion"],
                "properties": { "matchConditionSubjectAccessReviewVersion": { "const": "v1" } },
            });
            vec![json!({ "if": has_conditions, "then": needs_version })]
        }
        "WebhookConnectionInfo" => vec![when(
            "type",
            "KubeConfigFile",
            json!({
                "required": ["kubeConfigFile"],
                "properties": { "kubeConfigFile": { "type": "string" } },
            }),
            json!({ "properties": { "kubeConfigFile": { "type": "null" } } }),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_described() {
        fn check(schema: &Value, path: &str) {
            assert!(schema["description"].is_string(), "{path}");
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                check(field, &format!("{path}.{name}"));
            }
            if schema["items"].is_object() {
                check(&schema["items"], &format!("{path}[]"));
            }
        }
        check(&authorization_configuration_json_schema(), "");
        check(&authorization_hook_json_schema(), "");
    }

    #[test]
    fn hooks_are_a_list_or_a_map() {
        let schema = authorization_hook_json_schema();
        let hooks = &schema["properties"]["externalAuthorizationHooks"]["anyOf"];
        assert_eq!(hooks[0]["items"]["required"], json!(["name", "clientConfig"]));
        assert_eq!(hooks[1]["additionalProperties"]["required"], json!(["clientConfig"]));
        let config = &hooks[0]["items"]["properties"]["clientConfig"]["properties"];
        assert_eq!(config["service"]["properties"]["port"]["type"], json!(["integer", "null"]));
    }

    #[test]
    fn the_schema_contains_the_field_tables() {
        let schema = authorization_configuration_json_schema();
        let authorizer = &schema["properties"]["authorizers"]["items"];
        assert_eq!(authorizer["required"], json!(["type", "name"]));
        assert_eq!(authorizer["properties"]["type"]["enum"][5], "Webhook");
        let webhook = &authorizer["properties"]["webhook"];
        assert_eq!(webhook["type"], json!(["object", "null"]));
        assert_eq!(webhook["properties"]["authorizedTTL"]["default"], "5m");
        assert_eq!(webhook["properties"]["matchConditions"]["maxItems"], 64);
        assert_eq!(
            webhook["properties"]["matchConditionSubjectAccessReviewVersion"]["enum"],
            json!(["v1", "", null])
        );
    }
}
