//! Members that are fixed once an object exists, of kinds that have no other rules.

use api_object::Tree;
use field_errors::{BadValue, FieldErrors, FieldPath};
use serde_json::Value;

use super::semantic_equality::normal;
use crate::tree::at;

/// A member that is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Immutable {
    /// Where it is.
    path: &'static [&'static str],
    /// Whether a refusal shows the value that was wanted. Kubernetes does not always.
    is_shown: bool,
}

const fn shown(path: &'static [&'static str]) -> Immutable {
    Immutable { path, is_shown: true }
}

/// `certificates.k8s.io`.
pub(crate) const POD_CERTIFICATE_REQUEST: &[Immutable] = &[shown(&["spec"])];

/// `resource.k8s.io`.
pub(crate) const RESOURCE_SLICE: &[Immutable] =
    &[shown(&["spec", "pool", "name"]), shown(&["spec", "driver"]), shown(&["spec", "nodeName"])];

/// `storage.k8s.io`.
pub(crate) const VOLUME_ATTACHMENT: &[Immutable] =
    &[Immutable { path: &["spec"], is_shown: false }];

/// Reports each immutable field that an update changes.
pub(super) fn validate(members: &[Immutable], new: &Tree, old: &Tree, errors: &mut FieldErrors) {
    for Immutable { path, is_shown } in members {
        let value = at(new, path);
        if normal(value) != normal(at(old, path)) {
            let value = match value {
                Value::String(text) if *is_shown => BadValue::Text(text.clone()),
                value if *is_shown => BadValue::Json(value.to_string()),
                _ => BadValue::Json(Value::Null.to_string()),
            };
            let path = path.join(".");
            errors.push(FieldPath::root(&path).invalid(value, "field is immutable"));
        }
    }
}
