//! The rules for a node's writes to the status of PersistentVolumeClaims: it reports the progress of a volume
//! resize.

use admission::Operation;
use api_object::Tree;
use serde_json::Value;

use super::value_equality::is_same_or_both_empty;
use super::{NodeRuleResult, NodeWrite, forbid_node_write};

/// The members of the status that a node may change.
const RESIZE_MEMBERS: [&str; 4] =
    ["capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"];

/// Checks that only the progress of a resize changes.
///
/// Kubernetes shows the difference of both objects as Go prints it; here the message names the members.
pub(super) fn check_volume_claim_status_by_node(write: &NodeWrite<'_>) -> NodeRuleResult {
    let (Operation::Update, Some(claim), Some(old)) =
        (write.operation, write.object, write.old_object)
    else {
        let operation = go_compat::quote(write.operation.name());
        return forbid_node_write(format!("unexpected operation {operation}"));
    };
    let (new, old) = (without_resize_progress(claim), without_resize_progress(old));
    if is_same_or_both_empty(Some(&new), Some(&old)) {
        return Ok(());
    }
    let mut members: Vec<&str> = [&new, &old]
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|own| own.keys().map(String::as_str))
        .filter(|member| !is_same_or_both_empty(new.get(member), old.get(member)))
        .collect();
    members.sort_unstable();
    members.dedup();
    let node = go_compat::quote(write.node_name);
    forbid_node_write(format!(
        "node {node} is not allowed to update fields other than status.quantity and \
         status.conditions: {} differs",
        members.join(", ")
    ))
}

/// Returns the claim without the status members that a node may change.
fn without_resize_progress(claim: &Tree) -> Value {
    let mut claim = Value::Object(claim.clone());
    let parts: [(&str, &[&str]); 2] =
        [("metadata", &["resourceVersion", "managedFields"]), ("status", &RESIZE_MEMBERS)];
    for (part, members) in parts {
        if let Some(own) = claim.get_mut(part).and_then(Value::as_object_mut) {
            own.retain(|member, _| !members.contains(&member.as_str()));
        }
    }
    claim
}
