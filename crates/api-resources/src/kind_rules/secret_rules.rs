//! The defaults and validation rules of Secrets.

use api_object::{Tree, object_member_mut};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use super::config_data_key::{self, VALUES_BYTES_MAX, base64_decoded_length};
use super::config_map_rules::validate_immutable_data;
use crate::json_members::{member_entries, set_default_member, string_member, value_at_path};

const ACCOUNT_ANNOTATION: &str = "kubernetes.io/service-account.name";
const DATA: FieldPath<'static> = FieldPath::root("data");

/// Moves `stringData` to `data`, and sets the default type.
pub(super) fn prepare_secret(tree: &mut Tree) {
    if let Some(Value::Object(texts)) = tree.shift_remove("stringData")
        && !texts.is_empty()
    {
        let data = object_member_mut(tree, "data");
        for (key, value) in texts {
            let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
            data.insert(key, encoded.into());
        }
    }
    set_default_member(tree, "type", "Opaque");
}

pub(super) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    let r#type = string_member(new, "type");
    if let Some(old) = old {
        if r#type != string_member(old, "type") {
            errors.push(FieldPath::root("type").invalid(r#type, "field is immutable"));
        }
        validate_immutable_data(new, old, &["data"], errors);
    }
    let mut n_bytes = 0_usize;
    for (key, value) in member_entries(new, "data") {
        config_data_key::validate(&DATA, key, errors);
        n_bytes += value.as_str().map_or(0, base64_decoded_length);
    }
    if n_bytes > VALUES_BYTES_MAX {
        errors.push(DATA.too_long(VALUES_BYTES_MAX));
    }
    validate_secret_type(r#type, new, errors);
}

/// Validates that a secret of a well-known type has the keys that its users read.
fn validate_secret_type(r#type: &str, tree: &Tree, errors: &mut FieldErrors) {
    let data = value_at_path(tree, &["data"]);
    let has = |key: &str| data.get(key).is_some();
    let mut require = |key: &str| errors.push(DATA.key(key).required(""));
    match r#type {
        "kubernetes.io/service-account-token" => {
            let annotations = value_at_path(tree, &["metadata", "annotations"]);
            if string_member(annotations, ACCOUNT_ANNOTATION).is_empty() {
                let metadata = FieldPath::root("metadata");
                let annotations = metadata.child("annotations");
                errors.push(annotations.key(ACCOUNT_ANNOTATION).required(""));
            }
        }
        "kubernetes.io/dockercfg" => require_json_value(data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => require_json_value(data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            require("username");
            require("password");
        }
        "kubernetes.io/ssh-auth" if string_member(data, "ssh-privatekey").is_empty() => {
            require("ssh-privatekey");
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"].into_iter().filter(|key| !has(key)) {
                require(key);
            }
        }
        _ => {}
    }
}

/// Requires that a value is present and a JSON object. The error never shows the value.
fn require_json_value(data: &Value, key: &str, errors: &mut FieldErrors) {
    let at = DATA.key(key);
    let Some(value) = data.get(key) else { return errors.push(at.required("")) };
    let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<Tree>(&bytes) {
        // The error names the position but not the content.
        let detail = format!("not a JSON object, at column {}", error.column());
        errors.push(at.invalid("<secret contents redacted>", &detail));
    }
}
