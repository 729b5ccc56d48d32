//! Hints about faults of roles and bindings.

use authz_rbac::GROUP;
use document::hint::did_you_mean;
use document::{Node, Value};
use field_errors::{BadValue, FieldError};

use super::locate_field::locate_field;
use super::object_class::last_member;
use crate::rbac::Kind;

/// Returns a hint for a fault of a role or a binding.
pub(super) fn hint_for_rbac_fault(kind: Kind, root: &Node, error: &FieldError) -> Option<String> {
    let (parent, name) = error.path.rsplit_once('.').unwrap_or(("", &error.path));
    let is_missing = error.kind == field_errors::FieldErrorKind::Required;
    let value = match &error.value {
        BadValue::Text(text) => text.as_str(),
        BadValue::Omitted | BadValue::Json(_) => "",
    };
    let (kind_name, is_namespaced) = (kind.name(), kind.is_namespaced());
    match (parent, name) {
        ("metadata", "name") if is_missing && has_metadata_member(root, "generateName") => {
            Some("nothing completes `generateName` in a file: set `name`".to_owned())
        }
        ("metadata", "namespace") if is_missing => Some(format!(
            "add `metadata.namespace`, because a {kind_name} belongs to a namespace, or give the \
             namespace with `-n`"
        )),
        ("metadata", "namespace") if !is_namespaced => {
            Some(format!("a {kind_name} belongs to no namespace: remove it"))
        }
        ("roleRef", "kind") if !is_namespaced && value == "Role" => {
            Some("a Role grants nothing outside of its namespace: use a RoleBinding".to_owned())
        }
        ("roleRef", "kind") => did_you_mean(value, &["Role", "ClusterRole"]),
        (_, "apiGroup") => hint_for_api_group(root, parent),
        (_, "apiGroups") if is_missing => {
            Some("`apiGroups: [\"\"]` is the group of pods, services and secrets".to_owned())
        }
        (_, "nonResourceURLs") if is_namespaced => Some(
            "paths belong to no namespace: use a ClusterRole and a ClusterRoleBinding".to_owned(),
        ),
        (subject, "kind") if subject.starts_with("subjects") => {
            did_you_mean(value, &["ServiceAccount", "User", "Group"])
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

fn has_metadata_member(root: &Node, name: &str) -> bool {
    let metadata = last_member(root, "metadata");
    metadata.and_then(|metadata| last_member(metadata, name)).is_some()
}

/// Returns a hint for the API group of a subject or of a role reference.
fn hint_for_api_group(root: &Node, parent: &str) -> Option<String> {
    let kind = locate_field(root, &format!("{parent}.kind")).value.map(|node| &node.value);
    match kind {
        Some(Value::Text(kind)) if kind.as_str() == "ServiceAccount" => {
            Some("a ServiceAccount is in no API group: leave `apiGroup` out".to_owned())
        }
        _ => Some(format!("write `{GROUP}` without a version, or leave it out")),
    }
}
