//! Validates the names of a CustomResourceDefinition.

use field_errors::{FieldErrors, FieldPath, dns1035_label_faults};
use serde_json::Value;

use crate::json_members::{string_list_member, string_member};

const MIXED_CASE: &str = "may have mixed case, but should otherwise match: ";

pub(super) fn validate_definition_names(names: &Value, errors: &mut FieldErrors) {
    let spec = FieldPath::root("spec");
    let path = spec.child("names");
    for (key, is_kind) in
        [("plural", false), ("singular", false), ("kind", true), ("listKind", true)]
    {
        let (name, path) = (string_member(names, key), path.child(key));
        if name.is_empty() {
            errors.push(path.required(""));
            continue;
        }
        let (faults, prefix) = match is_kind {
            true => (dns1035_label_faults(&name.to_lowercase()), MIXED_CASE),
            false => (dns1035_label_faults(name), ""),
        };
        if !faults.is_empty() {
            errors.push(path.invalid(name, &format!("{prefix}{}", faults.join(","))));
        }
    }
    let (kind, list_kind) = (string_member(names, "kind"), string_member(names, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(path.child("listKind").invalid(list_kind, detail));
    }
    for key in ["shortNames", "categories"] {
        for (idx, name) in string_list_member(names, key).iter().enumerate() {
            let faults = dns1035_label_faults(name);
            if !faults.is_empty() {
                let path = path.child(key);
                errors.push(path.index(idx).invalid(name.as_str(), &faults.join(",")));
            }
        }
    }
}
