//! The validation rules of Endpoints.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use super::endpoint_address;
use crate::json_members::{list_member, string_member};

/// Validates the addresses. An update that leaves the subsets unchanged is valid, so that metadata of older objects can
/// change.
pub(super) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    if old.is_some_and(|old| old.get("subsets") == new.get("subsets")) {
        return;
    }
    let root = FieldPath::root("subsets");
    for (idx, subset) in list_member(new, "subsets").iter().enumerate() {
        for list in ["addresses", "notReadyAddresses"] {
            validate_addresses(list_member(subset, list), &root.index(idx).child(list), errors);
        }
    }
}

fn validate_addresses(addresses: &[Value], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (idx, address) in addresses.iter().enumerate() {
        let path = path.index(idx);
        endpoint_address::validate_unless_loopback(
            &path.child("ip"),
            string_member(address, "ip"),
            errors,
        );
    }
}
