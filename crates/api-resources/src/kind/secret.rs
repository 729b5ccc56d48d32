//! Secrets.

use api_object::{Tree, object_mut};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use super::config_data_key::{self, VALUES_BYTES_MAX, decoded_bytes};
use super::config_map::validate_unchanged;
use crate::tree::{at, default, entries, text};

const ACCOUNT_ANNOTATION: &str = "kubernetes.io/service-account.name";
const DATA: FieldPath<'static> = FieldPath::root("data");

/// Texts become bytes, and a secret without a type is of no special one.
pub(super) fn prepare(tree: &mut Tree) {
    if let Some(Value::Object(texts)) = tree.shift_remove("stringData")
        && !texts.is_empty()
    {
        let data = object_mut(tree, "data");
        for (key, value) in texts {
            let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
            data.insert(key, encoded.into());
        }
    }
    default(tree, "type", "Opaque");
}

pub(super) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    let r#type = text(new, "type");
    if let Some(old) = old {
        if r#type != text(old, "type") {
            errors.push(FieldPath::root("type").invalid(r#type, "field is immutable"));
        }
        validate_unchanged(new, old, &["data"], errors);
    }
    let mut n_bytes = 0_usize;
    for (key, value) in entries(new, "data") {
        config_data_key::validate(&DATA, key, errors);
        n_bytes += value.as_str().map_or(0, decoded_bytes);
    }
    if n_bytes > VALUES_BYTES_MAX {
        errors.push(DATA.too_long(VALUES_BYTES_MAX));
    }
    validate_for_type(r#type, new, errors);
}

/// Types that others rely on must hold what these look for.
fn validate_for_type(r#type: &str, tree: &Tree, errors: &mut FieldErrors) {
    let data = at(tree, &["data"]);
    let has = |key: &str| data.get(key).is_some();
    let mut require = |key: &str| errors.push(DATA.key(key).required(""));
    match r#type {
        "kubernetes.io/service-account-token" => {
            let annotations = at(tree, &["metadata", "annotations"]);
            if text(annotations, ACCOUNT_ANNOTATION).is_empty() {
                let metadata = FieldPath::root("metadata");
                let annotations = metadata.child("annotations");
                errors.push(annotations.key(ACCOUNT_ANNOTATION).required(""));
            }
        }
        "kubernetes.io/dockercfg" => validate_json(data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => validate_json(data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            require("username");
            require("password");
        }
        "kubernetes.io/ssh-auth" if text(data, "ssh-privatekey").is_empty() => {
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

/// The value must be there, and be a JSON object. It is never shown.
fn validate_json(data: &Value, key: &str, errors: &mut FieldErrors) {
    let at = DATA.key(key);
    let Some(value) = data.get(key) else { return errors.push(at.required("")) };
    let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<Tree>(&bytes) {
        // The position is told, the content is not.
        let detail = format!("not a JSON object, at column {}", error.column());
        errors.push(at.invalid("<secret contents redacted>", &detail));
    }
}
