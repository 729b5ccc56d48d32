//! Whether a tree has the types that a schema wants, and what is in it that the schema lacks.

use std::fmt;

use api_object::Tree;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Schema, Shape};

/// A value of the wrong type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrongTypeError {
    path: String,
    got: &'static str,
    want: &'static str,
}

impl fmt::Display for WrongTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, got, want } = self;
        write!(f, "json: cannot unmarshal {got} into field {path} of type {want}")
    }
}

impl std::error::Error for WrongTypeError {}

/// Checks the fields that the schema knows; others may hold anything. A null is as good as nothing.
///
/// # Errors
/// Returns the first value of a wrong type.
pub(crate) fn check(schema: &Schema, tree: &Tree, at: &str) -> Result<(), WrongTypeError> {
    for (key, value) in tree {
        if let Some(field) = schema.field(key) {
            check_value(&field.shape, value, &join(at, key))?;
        }
    }
    Ok(())
}

fn check_value(shape: &Shape, value: &Value, at: &str) -> Result<(), WrongTypeError> {
    let wrong = |want| Err(WrongTypeError { path: at.to_owned(), got: got(value), want });
    match (shape, value) {
        (_, Value::Null) => Ok(()),
        (Shape::Text, Value::String(_)) | (Shape::Boolean, Value::Bool(_)) => Ok(()),
        (Shape::Bytes, Value::String(text)) if STANDARD.decode(text).is_ok() => Ok(()),
        (Shape::Time | Shape::MicroTime, Value::String(text)) if is_time(text) => Ok(()),
        (Shape::Int32, value) if value.as_i64().is_some_and(|it| i32::try_from(it).is_ok()) => {
            Ok(())
        }
        (Shape::Int64, value) if value.is_i64() => Ok(()),
        (Shape::AnyObject, Value::Object(_)) => Ok(()),
        (Shape::Object(schema), Value::Object(tree)) => check(schema, tree, at),
        (Shape::List(item), Value::Array(values)) => {
            let mut values = values.iter().enumerate();
            values.try_for_each(|(idx, value)| check_value(item, value, &format!("{at}[{idx}]")))
        }
        (Shape::Map(item), Value::Object(entries)) => {
            let mut entries = entries.iter();
            entries.try_for_each(|(key, value)| check_value(item, value, &join(at, key)))
        }
        (Shape::Text, _) => wrong("string"),
        (Shape::Bytes, _) => wrong("base64 string"),
        (Shape::Boolean, _) => wrong("bool"),
        (Shape::Int32, _) => wrong("int32"),
        (Shape::Int64, _) => wrong("int64"),
        (Shape::Time | Shape::MicroTime, _) => wrong("RFC 3339 time"),
        (Shape::AnyObject | Shape::Object(_) | Shape::Map(_), _) => wrong("object"),
        (Shape::List(_), _) => wrong("array"),
    }
}

/// Removes what the schema lacks.
pub(crate) fn prune(schema: &Schema, tree: &mut Tree) {
    tree.retain(|key, value| match schema.field(key) {
        Some(field) => {
            prune_value(&field.shape, value);
            true
        }
        None => false,
    });
}

fn prune_value(shape: &Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::Object(schema), Value::Object(tree)) => prune(schema, tree),
        (Shape::List(item), Value::Array(values)) => {
            values.iter_mut().for_each(|value| prune_value(item, value));
        }
        (Shape::Map(item), Value::Object(entries)) => {
            entries.values_mut().for_each(|value| prune_value(item, value));
        }
        (_, _) => {}
    }
}

fn join(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

fn got(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The parser is more lenient than RFC 3339 about what separates date and time.
fn is_time(text: &str) -> bool {
    text.as_bytes().get(10) == Some(&b'T') && text.parse::<jiff::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{CONFIG_MAP, LEASE, OBJECT_META, ROLE, SECRET};
    use super::*;

    fn fault(schema: &Schema, tree: Value) -> Option<String> {
        let Value::Object(tree) = tree else { panic!("not an object") };
        check(schema, &tree, "").err().map(|it| it.to_string())
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
        for (schema, tree, want) in [
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
            assert_eq!(fault(schema, tree).as_deref(), Some(want));
        }
    }

    #[test]
    fn what_the_schema_lacks_is_removed() {
        let mut tree = json!({ "rules": [{ "verbs": ["get"], "verb": "x" }], "extra": {} });
        if let Value::Object(tree) = &mut tree {
            prune(&ROLE, tree);
        }
        assert_eq!(tree, json!({ "rules": [{ "verbs": ["get"] }] }));
    }
}
