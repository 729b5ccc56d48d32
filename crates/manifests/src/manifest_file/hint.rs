//! What the author of a role or a binding probably meant.

use authz_rbac::GROUP;
use document::hint::suggestion;
use document::{Node, Value};
use field_errors::{BadValue, FieldError};

use super::identity::member;
use super::locate::locate;
use crate::rbac::Kind;

/// For a fault of an object of this kind.
pub(super) fn for_fault(kind: Kind, root: &Node, error: &FieldError) -> Option<String> {
    let (parent, name) = error.path.rsplit_once('.').unwrap_or(("", &error.path));
    let is_missing = error.kind == field_errors::FieldErrorKind::Required;
    let value = match &error.value {
        BadValue::Text(text) => text.as_str(),
        BadValue::Omitted | BadValue::Json(_) => "",
    };
    let (kind_name, is_namespaced) = (kind.name(), kind.is_namespaced());
    match (parent, name) {
        ("metadata", "name") if is_missing && has(root, "generateName") => {
            Some("nothing completes `generateName` in a file: set `name`".to_owned())
        }
        ("metadata", "namespace") if is_missing => Some(format!(
            "add `metadata.namespace`: a {kind_name} belongs to a namespace, and a file has no \
             context to take it from"
        )),
        ("metadata", "namespace") if !is_namespaced => {
            Some(format!("a {kind_name} belongs to no namespace: remove it"))
        }
        ("roleRef", "kind") if !is_namespaced && value == "Role" => {
            Some("a Role grants nothing outside of its namespace: use a RoleBinding".to_owned())
        }
        ("roleRef", "kind") => suggestion(value, &["Role", "ClusterRole"]),
        (_, "apiGroup") => api_group(root, parent),
        (_, "apiGroups") if is_missing => {
            Some("`apiGroups: [\"\"]` is the group of pods, services and secrets".to_owned())
        }
        (_, "nonResourceURLs") if is_namespaced => Some(
            "paths belong to no namespace: use a ClusterRole and a ClusterRoleBinding".to_owned(),
        ),
        (subject, "kind") if subject.starts_with("subjects") => {
            suggestion(value, &["ServiceAccount", "User", "Group"])
        }
        (subject, "namespace") if subject.starts_with("subjects") => Some(format!(
            "a {kind_name} belongs to no namespace, so its service accounts must say theirs"
        )),
        (subject, "name") if subject.starts_with("subjects") => {
            let (namespace, name) =
                value.strip_prefix("system:serviceaccount:")?.split_once(':')?;
            Some(format!("write `namespace: {namespace}` and `name: {name}`"))
        }
        _ => None,
    }
}

fn has(root: &Node, name: &str) -> bool {
    let metadata = member(root, "metadata");
    metadata.and_then(|metadata| member(metadata, name)).is_some()
}

/// For the API group of a subject or of a reference to a role.
fn api_group(root: &Node, parent: &str) -> Option<String> {
    let kind = locate(root, &format!("{parent}.kind")).value.map(|node| &node.value);
    match kind {
        Some(Value::Text(kind)) if kind.as_str() == "ServiceAccount" => {
            Some("a ServiceAccount is in no API group: leave `apiGroup` out".to_owned())
        }
        _ => Some(format!("write `{GROUP}` without a version, or leave it out")),
    }
}
