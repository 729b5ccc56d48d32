//! The rules for a node's write to its own Node object.

use admission::Operation;
use api_object::Tree;
use serde_json::Value;

use super::node_label_restriction::forbidden_node_label_changes;
use super::value_equality::is_same_or_both_empty;
use super::{NodeRuleResult, NodeWrite, forbid_node_write, non_null_member, spec};

/// A node writes its own Node, its status included. It may not:
///
/// 1. set `spec.configSource`, which would give it access to the objects that the source names;
/// 2. change its taints, which keep workloads away from it;
/// 3. set or change owner references, through which the garbage collector would delete it (CVE-2025-5187);
/// 4. set labels that belong to administrators.
///
/// A new Node may have taints, because kubelets register with taints. Apart from that, a create is held to the
/// same rules as an update (CVE-2025-4563).
pub(super) fn check_own_node_write(write: &NodeWrite<'_>) -> NodeRuleResult {
    let node = go_compat::quote(write.node_name);
    if write.name != write.node_name {
        let other = go_compat::quote(write.name);
        return forbid_node_write(format!("node {node} is not allowed to modify node {other}"));
    }
    let (object, old) = match (write.operation, write.object, write.old_object) {
        (Operation::Create | Operation::Update, Some(object), old) => (object, old),
        (_, _, _) => return Ok(()),
    };
    match old {
        None => check_own_node_create(&node, object),
        Some(old) => check_own_node_update(&node, object, old),
    }
}

fn check_own_node_create(node: &str, object: &Tree) -> NodeRuleResult {
    if non_null_member(spec(object), "configSource").is_some() {
        return forbid_node_write(format!(
            "node {node} is not allowed to create pods with a non-nil configSource"
        ));
    }
    if !is_same_or_both_empty(metadata_member(object, "ownerReferences"), None) {
        return forbid_node_write(format!("node {node} is not allowed to set ownerReferences"));
    }
    let labels = forbidden_node_label_changes(metadata_member(object, "labels"), None);
    match labels.is_empty() {
        true => Ok(()),
        false => forbid_node_write(format!(
            "node {node} is not allowed to set the following labels: {}",
            labels.join(", ")
        )),
    }
}

fn check_own_node_update(node: &str, object: &Tree, old: &Tree) -> NodeRuleResult {
    let (source, old_source) =
        (non_null_member(spec(object), "configSource"), non_null_member(spec(old), "configSource"));
    // An old kubelet may drop the field, so its removal is allowed.
    if source.is_some() && (old_source.is_none() || !is_same_or_both_empty(source, old_source)) {
        return forbid_node_write(format!(
            "node {node} is not allowed to update configSource to a new non-nil configSource"
        ));
    }
    if !is_same_or_both_empty(spec(object).get("taints"), spec(old).get("taints")) {
        return forbid_node_write(format!("node {node} is not allowed to modify taints"));
    }
    let owners = |tree| metadata_member(tree, "ownerReferences");
    if !is_same_or_both_empty(owners(object), owners(old)) {
        return forbid_node_write(format!("node {node} is not allowed to modify ownerReferences"));
    }
    let labels = |tree| metadata_member(tree, "labels");
    let labels = forbidden_node_label_changes(labels(object), labels(old));
    match labels.is_empty() {
        true => Ok(()),
        false => {
            forbid_node_write(format!("is not allowed to modify labels: {}", labels.join(", ")))
        }
    }
}

fn metadata_member<'t>(tree: &'t Tree, member: &str) -> Option<&'t Value> {
    api_object::metadata(tree).get(member)
}
