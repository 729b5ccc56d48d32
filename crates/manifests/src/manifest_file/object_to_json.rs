//! Converts a tree with spans to plain JSON.

use document::Node;
use serde_json::Value as Json;

use super::object_class::TypeMeta;

/// Converts an object to JSON and sets its `apiVersion` and `kind`.
pub(super) fn object_to_json(root: &Node, type_meta: &TypeMeta) -> Json {
    let mut value = root.to_json_value();
    if let Some(members) = value.as_object_mut() {
        members.insert("apiVersion".to_owned(), type_meta.api_version.as_str().into());
        members.insert("kind".to_owned(), type_meta.kind.as_str().into());
    }
    value
}
