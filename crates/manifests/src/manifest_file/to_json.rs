//! From a tree with places to plain JSON.

use document::Node;
use serde_json::Value as Json;

use super::identity::TypeMeta;

/// An object as JSON, with what it does not say about its kind.
pub(super) fn to_json(root: &Node, type_meta: &TypeMeta) -> Json {
    let mut value = root.to_json();
    if let Some(members) = value.as_object_mut() {
        members.insert("apiVersion".to_owned(), type_meta.api_version.as_str().into());
        members.insert("kind".to_owned(), type_meta.kind.as_str().into());
    }
    value
}
