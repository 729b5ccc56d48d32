//! The validation rules of EndpointSlices.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};

use crate::json_members::string_member;

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
}
