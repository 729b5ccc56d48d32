//! Checks the types of an object against a schema, and removes unknown fields.

use std::fmt;

use api_object::Tree;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{FieldType, Schema};

/// A value has another type than its field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrongTypeError {
    path: String,
    found_type: &'static str,
    expected_type: &'static str,
}

impl fmt::Display for WrongTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, found_type: found, expected_type: expected } = self;
        write!(f, "json: cannot unmarshal {found} into field {path} of type {expected}")
    }
}

impl std::error::Error for WrongTypeError {}

/// Checks the types of the fields that the schema knows. Other fields may have any value; null counts as
/// absent.
///
/// # Errors
/// Returns the first value of a wrong type.
pub(crate) fn check_types(schema: &Schema, tree: &Tree, at: &str) -> Result<(), WrongTypeError> {
    for (key, value) in tree {
        if let Some(field) = schema.field(key) {
            check_value_type(&field.field_type, value, &join_path(at, key))?;
        }
    }
    Ok(())
}

fn check_value_type(field_type: &FieldType, value: &Value, at: &str) -> Result<(), WrongTypeError> {
    let wrong = |expected| {
        Err(WrongTypeError {
            path: at.to_owned(),
            found_type: json_type_name(value),
            expected_type: expected,
        })
    };
    match (field_type, value) {
        (_, Value::Null) => Ok(()),
        (FieldType::Text, Value::String(_)) | (FieldType::Boolean, Value::Bool(_)) => Ok(()),
        (FieldType::Bytes, Value::String(text)) if STANDARD.decode(text).is_ok() => Ok(()),
        (FieldType::Time | FieldType::MicroTime, Value::String(text)) if is_rfc3339_time(text) => {
            Ok(())
        }
        (FieldType::Int32, value) if value.as_i64().is_some_and(|it| i32::try_from(it).is_ok()) => {
            Ok(())
        }
        (FieldType::Int64, value) if value.is_i64() => Ok(()),
        (FieldType::AnyObject, Value::Object(_)) => Ok(()),
        (FieldType::Object(schema), Value::Object(tree)) => check_types(schema, tree, at),
        (FieldType::List(item), Value::Array(values)) => {
            let mut values = values.iter().enumerate();
            values
                .try_for_each(|(idx, value)| check_value_type(item, value, &format!("{at}[{idx}]")))
        }
        (FieldType::Map(item), Value::Object(entries)) => {
            let mut entries = entries.iter();
            entries.try_for_each(|(key, value)| check_value_type(item, value, &join_path(at, key)))
        }
        (FieldType::Text, _) => wrong("string"),
        (FieldType::Bytes, _) => wrong("base64 string"),
        (FieldType::Boolean, _) => wrong("bool"),
        (FieldType::Int32, _) => wrong("int32"),
        (FieldType::Int64, _) => wrong("int64"),
        (FieldType::Time | FieldType::MicroTime, _) => wrong("RFC 3339 time"),
        (FieldType::AnyObject | FieldType::Object(_) | FieldType::Map(_), _) => wrong("object"),
        (FieldType::List(_), _) => wrong("array"),
    }
}

/// Removes the fields that the schema does not know.
pub(crate) fn prune_unknown_fields(schema: &Schema, tree: &mut Tree) {
    tree.retain(|key, value| match schema.field(key) {
        Some(field) => {
            prune_unknown_fields_of_value(&field.field_type, value);
            true
        }
        None => false,
    });
}

fn prune_unknown_fields_of_value(field_type: &FieldType, value: &mut Value) {
    match (field_type, value) {
        (FieldType::Object(schema), Value::Object(tree)) => prune_unknown_fields(schema, tree),
        (FieldType::List(item), Value::Array(values)) => {
            values.iter_mut().for_each(|value| prune_unknown_fields_of_value(item, value));
        }
        (FieldType::Map(item), Value::Object(entries)) => {
            entries.values_mut().for_each(|value| prune_unknown_fields_of_value(item, value));
        }
        (_, _) => {}
    }
}

fn join_path(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Checks the separator of date and time, too, because the parser is more lenient there than RFC 3339.
fn is_rfc3339_time(text: &str) -> bool {
    text.as_bytes().get(10) == Some(&b'T') && text.parse::<jiff::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{CONFIG_MAP, LEASE, OBJECT_META, ROLE, SECRET};
    use super::*;

    fn fault(schema: &Schema, tree: Value) -> Option<String> {
        let Value::Object(tree) = tree else { panic!("not an object") };
        check_types(schema, &tree, "").err().map(|it| it.to_string())
    }

    #[test]
    fn good_objects_pass() {
        for (schema, tree) in [
            (&CONFIG_MAP, json!({ "data": { "a": "b", "n": null }, "binaryData": null })),
            (&SECRET, json!({ "data": { "a": "YWI=" }, "other": 1 })),
            (&ROLE, json!({ "rules": [{ "verbs": ["get"] }, null] })),
            (
                &LEASE,
                json!({ "spec": {
                "leaseDurationSeconds": 15, "renewTime": "2026-11-15T18:02:38.000001Z",
            } }),
            ),
            (&OBJECT_META, json!({ "labels": {}, "generation": 1, "managedFields": [{}] })),
        ] {
            assert_eq!(fault(schema, tree), None);
        }
    }

    #[test]
    fn the_first_wrong_type_is_told_with_its_place() {
        for (schema, tree, expected) in [
            (
                &CONFIG_MAP,
                json!({ "data": { "a": 1 } }),
                "json: cannot unmarshal number into field data.a of type string",
            ),
            (
                &SECRET,
                json!({ "data": { "a": "%" } }),
                "json: cannot unmarshal string into field data.a of type base64 string",
            ),
            (
                &ROLE,
                json!({ "rules": [{ "verbs": "get" }] }),
                "json: cannot unmarshal string into field rules[0].verbs of type array",
            ),
            (
                &LEASE,
                json!({ "spec": { "leaseDurationSeconds": 2_147_483_648_i64 } }),
                "json: cannot unmarshal number into field spec.leaseDurationSeconds of type int32",
            ),
            (
                &LEASE,
                json!({ "spec": { "renewTime": "yesterday" } }),
                "json: cannot unmarshal string into field spec.renewTime of type RFC 3339 time",
            ),
            (
                &OBJECT_META,
                json!({ "labels": ["a"] }),
                "json: cannot unmarshal array into field labels of type object",
            ),
        ] {
            assert_eq!(fault(schema, tree).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_the_schema_lacks_is_removed() {
        let mut tree = json!({ "rules": [{ "verbs": ["get"], "verb": "x" }], "extra": {} });
        if let Value::Object(tree) = &mut tree {
            prune_unknown_fields(&ROLE, tree);
        }
        assert_eq!(tree, json!({ "rules": [{ "verbs": ["get"] }] }));
    }
}
