//! ConfigMaps.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use super::config_data_key::{self, VALUES_BYTES_MAX, decoded_bytes};
use crate::tree::{entries, flag, n_entries};

const IMMUTABLE: &str = "field is immutable when `immutable` is set";

pub(super) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    if let Some(old) = old {
        validate_unchanged(new, old, &["data", "binaryData"], errors);
    }
    let (data, binary_data) = (FieldPath::root("data"), FieldPath::root("binaryData"));
    let binary = new.get("binaryData").and_then(Value::as_object);
    let is_binary = |key: &str| binary.is_some_and(|binary| binary.contains_key(key));
    let mut n_bytes = 0_usize;
    for (key, value) in entries(new, "data") {
        config_data_key::validate(&data, key, errors);
        if is_binary(key) {
            let detail = "duplicate of key present in binaryData";
            errors.push(data.key(key).invalid(key.as_str(), detail));
        }
        n_bytes += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(new, "binaryData") {
        config_data_key::validate(&binary_data, key, errors);
        n_bytes += value.as_str().map_or(0, decoded_bytes);
    }
    if n_bytes > VALUES_BYTES_MAX {
        // The whole object is at fault, which the words for it show as an empty name.
        errors.push(FieldPath::root("").too_long(VALUES_BYTES_MAX));
    }
}

/// Reports changes of an object that was marked immutable, including the removal of that mark.
pub(super) fn validate_unchanged(
    new: &Tree,
    old: &Tree,
    members: &[&str],
    errors: &mut FieldErrors,
) {
    if !flag(old, "immutable") {
        return;
    }
    if !flag(new, "immutable") {
        errors.push(FieldPath::root("immutable").forbidden(IMMUTABLE));
    }
    for &member in members {
        let is_empty = n_entries(new, member) == 0 && n_entries(old, member) == 0;
        let value = |tree: &Tree| tree.get(member).cloned().unwrap_or(Value::Null);
        if !is_empty && value(new) != value(old) {
            errors.push(FieldPath::root(member).forbidden(IMMUTABLE));
        }
    }
}
