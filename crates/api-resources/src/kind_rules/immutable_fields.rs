//! Kinds whose only rule is that some fields are immutable.

use api_object::Tree;
use field_errors::{BadValue, FieldErrors, FieldPath};
use serde_json::Value;

use super::semantic_equality::remove_empty_members;
use crate::json_members::value_at_path;

/// A field that updates cannot change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImmutableField {
    /// The path of the field.
    path: &'static [&'static str],
    /// Whether the error shows the new value. Kubernetes omits it for some fields.
    shows_value_in_error: bool,
}

const fn immutable_field_showing_value(path: &'static [&'static str]) -> ImmutableField {
    ImmutableField { path, shows_value_in_error: true }
}

/// The immutable fields of a PodCertificateRequest.
pub(crate) const POD_CERTIFICATE_REQUEST: &[ImmutableField] =
    &[immutable_field_showing_value(&["spec"])];

/// The immutable fields of a ResourceClaim or a ResourceClaimTemplate.
pub(crate) const RESOURCE_CLAIM: &[ImmutableField] = &[immutable_field_showing_value(&["spec"])];

/// The immutable fields of a ResourceSlice.
pub(super) const RESOURCE_SLICE: &[ImmutableField] = &[
    immutable_field_showing_value(&["spec", "pool", "name"]),
    immutable_field_showing_value(&["spec", "driver"]),
    immutable_field_showing_value(&["spec", "nodeName"]),
];

/// The immutable fields of a VolumeAttachment.
pub(crate) const VOLUME_ATTACHMENT: &[ImmutableField] =
    &[ImmutableField { path: &["spec"], shows_value_in_error: false }];

/// Reports each immutable field that an update changes.
pub(super) fn validate(
    members: &[ImmutableField],
    new: &Tree,
    old: &Tree,
    errors: &mut FieldErrors,
) {
    for ImmutableField { path, shows_value_in_error } in members {
        let value = value_at_path(new, path);
        if remove_empty_members(value) != remove_empty_members(value_at_path(old, path)) {
            let value = match value {
                Value::String(text) if *shows_value_in_error => BadValue::Text(text.clone()),
                value if *shows_value_in_error => BadValue::Json(value.to_string()),
                _ => BadValue::Json(Value::Null.to_string()),
            };
            let path = path.join(".");
            errors.push(FieldPath::root(&path).invalid(value, "field is immutable"));
        }
    }
}
