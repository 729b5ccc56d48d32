//! From a tree with places to plain JSON.

use serde_json::Value as Json;

use super::identity::TypeMeta;
use crate::document::{Node, Value};

/// An object as JSON, with what it does not say about its kind.
pub(super) fn to_json(root: &Node, type_meta: &TypeMeta) -> Json {
    let mut value = value_of(root);
    if let Some(members) = value.as_object_mut() {
        members.insert("apiVersion".to_owned(), type_meta.api_version.as_str().into());
        members.insert("kind".to_owned(), type_meta.kind.as_str().into());
    }
    value
}

/// The value as JSON. No field that is looked at takes a number, so all numbers are the same.
fn value_of(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number => 0.into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(value_of).collect(),
        Value::Object(entries) => {
            entries.iter().map(|entry| (entry.key.clone(), value_of(&entry.value))).collect()
        }
    }
}
