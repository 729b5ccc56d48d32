//! The validation rules of EndpointSlices.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use super::endpoint_address;
use crate::json_members::{list_member, string_member};

const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];

pub(super) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    let (path, r#type) = (FieldPath::root("addressType"), string_member(new, "addressType"));
    if r#type.is_empty() {
        errors.push(path.required(""));
    } else if !ADDRESS_TYPES.contains(&r#type) {
        errors.push(path.not_supported(r#type, &ADDRESS_TYPES));
    }
    if old.is_some_and(|old| string_member(old, "addressType") != r#type) {
        errors.push(path.invalid(r#type, "field is immutable"));
    }
    let is_unchanged = old.is_some_and(|old| old.get("endpoints") == new.get("endpoints"));
    if matches!(r#type, "IPv4" | "IPv6") && !is_unchanged {
        validate_endpoint_addresses(list_member(new, "endpoints"), errors);
    }
}

fn validate_endpoint_addresses(endpoints: &[Value], errors: &mut FieldErrors) {
    let root = FieldPath::root("endpoints");
    for (idx, endpoint) in endpoints.iter().enumerate() {
        let path = root.index(idx);
        let path = path.child("addresses");
        for (idx, address) in list_member(endpoint, "addresses").iter().enumerate() {
            let address = address.as_str().unwrap_or_default();
            endpoint_address::validate_unless_loopback(&path.index(idx), address, errors);
        }
    }
}
