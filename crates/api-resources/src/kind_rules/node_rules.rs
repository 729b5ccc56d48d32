//! Nodes. The addresses of pods and the identity at the cloud provider are given to a node once, because other
//! components route traffic and attach volumes by them.

use std::collections::HashSet;

use api_object::Tree;
use field_errors::{BadValue, FieldErrors, FieldPath};
use serde_json::Value;

use crate::json_members::{
    MemberAccess, list_member, string_list_member, string_member, value_at_path,
};

/// Makes `podCIDR` and `podCIDRs` consistent.
pub(super) fn prepare_node(tree: &mut Tree) {
    let Some(Value::Object(spec)) = tree.get_mut("spec") else { return };
    let cidrs = pod_cidrs(spec);
    if let Some(first) = cidrs.first() {
        spec.insert("podCIDR".to_owned(), first.as_str().into());
        spec.insert("podCIDRs".to_owned(), cidrs.into());
    }
}

/// Validates an update of a node, or of its status.
pub(super) fn validate_node_update(new: &Tree, old: &Tree, errors: &mut FieldErrors) {
    validate_addresses(list_member(value_at_path(new, &["status"]), "addresses"), errors);
    let (spec, old, root) =
        (value_at_path(new, &["spec"]), value_at_path(old, &["spec"]), FieldPath::root("spec"));
    let old_cidrs = pod_cidrs(old);
    if !old_cidrs.is_empty() && pod_cidrs(spec) != old_cidrs {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(root.child("podCIDRs").forbidden(detail));
    }
    let (provider_id, old_provider_id) =
        (string_member(spec, "providerID"), string_member(old, "providerID"));
    if !old_provider_id.is_empty() && provider_id != old_provider_id {
        let detail = match provider_id.is_empty() {
            true => "field cannot be cleared once set",
            false => "field cannot be modified once set",
        };
        let value = BadValue::Json(Value::Null.to_string());
        errors.push(root.child("providerID").invalid(value, detail));
    }
    if string_member(spec, "externalID") != string_member(old, "externalID") {
        errors.push(root.child("externalID").forbidden("may not be updated"));
    }
}

/// Checks that no address occurs twice in the status of a node.
fn validate_addresses(addresses: &[Value], errors: &mut FieldErrors) {
    let root = FieldPath::root("status");
    let path = root.child("addresses");
    let key = |address: &Value| {
        (string_member(address, "type").to_owned(), string_member(address, "address").to_owned())
    };
    let mut seen = HashSet::new();
    for (idx, address) in addresses.iter().enumerate() {
        if !seen.insert(key(address)) {
            let (r#type, address) = key(address);
            let value = serde_json::json!({ "Type": r#type, "Address": address });
            errors.push(path.index(idx).duplicate(BadValue::Json(value.to_string())));
        }
    }
}

/// The address ranges of the pods of a node. `podCIDR` is the first of `podCIDRs`. If they differ, `podCIDR` counts.
fn pod_cidrs(spec: &impl MemberAccess) -> Vec<String> {
    let all = string_list_member(spec, "podCIDRs");
    match string_member(spec, "podCIDR") {
        "" => all,
        first if all.first().is_some_and(|own| own == first) => all,
        first => vec![first.to_owned()],
    }
}
