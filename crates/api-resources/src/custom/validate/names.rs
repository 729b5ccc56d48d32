//! What a resource may be called.

use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use crate::tree::{text, texts};

const LABEL_BYTES_MAX: usize = 63;

const LABEL_SYNTAX: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
    '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const MIXED_CASE: &str = "may have mixed case, but should otherwise match: ";

pub(super) fn validate_names(names: &Value, errors: &mut FieldErrors) {
    let spec = FieldPath::root("spec");
    let path = spec.child("names");
    for (key, is_kind) in
        [("plural", false), ("singular", false), ("kind", true), ("listKind", true)]
    {
        let (name, path) = (text(names, key), path.child(key));
        if name.is_empty() {
            errors.push(path.required(""));
            continue;
        }
        let (faults, prefix) = match is_kind {
            true => (label_faults(&name.to_lowercase()), MIXED_CASE),
            false => (label_faults(name), ""),
        };
        if !faults.is_empty() {
            errors.push(path.invalid(name, &format!("{prefix}{}", faults.join(","))));
        }
    }
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(path.child("listKind").invalid(list_kind, detail));
    }
    for key in ["shortNames", "categories"] {
        for (idx, name) in texts(names, key).iter().enumerate() {
            let faults = label_faults(name);
            if !faults.is_empty() {
                let path = path.child(key);
                errors.push(path.index(idx).invalid(name.as_str(), &faults.join(",")));
            }
        }
    }
}

/// Reasons why a name is no label of RFC 1035, which begins with a letter.
pub(super) fn label_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > LABEL_BYTES_MAX {
        faults.push(format!("must be no more than {LABEL_BYTES_MAX} characters"));
    }
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !begins || name.ends_with('-') || !name.bytes().all(is_inside) {
        faults.push(LABEL_SYNTAX.to_owned());
    }
    faults
}
