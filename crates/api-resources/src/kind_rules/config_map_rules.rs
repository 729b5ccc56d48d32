//! The validation rules of ConfigMaps.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use super::config_data_key::{self, VALUES_BYTES_MAX, base64_decoded_length};
use crate::json_members::{bool_member, member_entries, n_member_entries};

const IMMUTABLE: &str = "field is immutable when `immutable` is set";

pub(super) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    if let Some(old) = old {
        validate_immutable_data(new, old, &["data", "binaryData"], errors);
    }
    let (data, binary_data) = (FieldPath::root("data"), FieldPath::root("binaryData"));
    let binary = new.get("binaryData").and_then(Value::as_object);
    let is_binary = |key: &str| binary.is_some_and(|binary| binary.contains_key(key));
    let mut n_bytes = 0_usize;
    for (key, value) in member_entries(new, "data") {
        config_data_key::validate(&data, key, errors);
        if is_binary(key) {
            let detail = "duplicate of key present in binaryData";
            errors.push(data.key(key).invalid(key.as_str(), detail));
        }
        n_bytes += value.as_str().map_or(0, str::len);
    }
    for (key, value) in member_entries(new, "binaryData") {
        config_data_key::validate(&binary_data, key, errors);
        n_bytes += value.as_str().map_or(0, base64_decoded_length);
    }
    if n_bytes > VALUES_BYTES_MAX {
        // The fault belongs to the whole object, which Kubernetes shows as an empty path.
        errors.push(FieldPath::root("").too_long(VALUES_BYTES_MAX));
    }
}

/// Reports changes of an object with `immutable: true`, including the removal of that field.
pub(super) fn validate_immutable_data(
    new: &Tree,
    old: &Tree,
    members: &[&str],
    errors: &mut FieldErrors,
) {
    if !bool_member(old, "immutable") {
        return;
    }
    if !bool_member(new, "immutable") {
        errors.push(FieldPath::root("immutable").forbidden(IMMUTABLE));
    }
    for &member in members {
        let is_empty = n_member_entries(new, member) == 0 && n_member_entries(old, member) == 0;
        let value = |tree: &Tree| tree.get(member).cloned().unwrap_or(Value::Null);
        if !is_empty && value(new) != value(old) {
            errors.push(FieldPath::root(member).forbidden(IMMUTABLE));
        }
    }
}
