//! Actions on pods that are subresources: a Binding assigns a pod to a node, an Eviction deletes a pod if the
//! budgets of its workload allow that.
//!
//! As in Kubernetes, admission hooks review the action and not the update or the deletion of the pod that follows
//! from it. The configuration of hooks is confirmed first, because the action may be repeated when another writer
//! changes the pod, and the hooks are called once.

mod disruption_budgets;
mod pod_binding;
mod pod_eviction;

pub(crate) use pod_binding::bind_pod;
pub(crate) use pod_eviction::evict_pod;

use api_object::{Status, Tree};
use jiff::Timestamp;
use serde_json::{Value, json};
use store::{Entry, Key};

use crate::initializers::is_stored_uninitialized;
use crate::respond::Reply;
use crate::rest::{RequestContext, WriteFailure, read_newest_entry_unless_known};

/// Reads the pod of the request as it is stored now. A pod that waits for initializers counts as absent.
///
/// # Errors
/// 404 if there is no such pod, or the error of the read.
async fn read_pod(ctx: &RequestContext<'_>, key: &Key) -> Result<(Entry, Tree), Status> {
    let entry = read_newest_entry_unless_known(ctx, key, None, "get").await?;
    let entry = entry.filter(|entry| !is_stored_uninitialized(&entry.value));
    let entry = entry.ok_or_else(|| ctx.not_found_status(ctx.name))?;
    let pod = ctx.decode_authorized_entry(&entry)?;
    Ok((entry, pod))
}

/// The response of a write that failed; `None` if the action can be repeated with the pod as it is now.
fn final_status_unless_conflict(ctx: &RequestContext<'_>, failure: WriteFailure) -> Option<Status> {
    match failure {
        WriteFailure::Conflict(_) => None,
        WriteFailure::Rejected(status) | WriteFailure::OutcomeUnknown(status) => Some(status),
        // The configuration was confirmed, and a pod has no address.
        WriteFailure::ConfigRevisionMoved | WriteFailure::AddressTaken => {
            Some(Status::store_unavailable(&ctx.resource.group_resource(), "create"))
        }
    }
}

/// The response to an action that succeeded.
fn action_success_reply() -> Reply {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Reply::Tree { code: 201, tree: status.as_object().cloned().unwrap_or_default() }
}

/// Sets a condition in the status of a pod. Its transition time changes with its status only.
fn set_pod_condition(pod: &mut Tree, mut condition: Tree, now: Timestamp) {
    let status = api_object::object_member_mut(pod, "status");
    let conditions = status.entry("conditions".to_owned()).or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = Value::Array(Vec::new());
    }
    let Value::Array(conditions) = conditions else { return };
    let r#type = condition.get("type").cloned();
    let former = conditions.iter_mut().find(|own| own.get("type") == r#type.as_ref());
    let is_same_status =
        former.as_ref().is_some_and(|own| own.get("status") == condition.get("status"));
    let time = former.as_ref().and_then(|own| own.get("lastTransitionTime")).cloned();
    let time = time.filter(|_| is_same_status);
    let time = time.unwrap_or_else(|| api_object::format_rfc3339(now).into());
    condition.insert("lastTransitionTime".to_owned(), time);
    match former {
        Some(former) => *former = Value::Object(condition),
        None => conditions.push(Value::Object(condition)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_condition_changes_with_its_status() {
        let now = Timestamp::UNIX_EPOCH;
        let condition = |status: &str| {
            json!({"type": "A", "status": status}).as_object().cloned().unwrap_or_default()
        };
        let stored =
            |status: &str| json!({"type": "A", "status": status, "lastTransitionTime": "t"});
        for (before, set, want) in [
            (json!(null), "True", "1970-01-01T00:00:00Z"),
            (json!([{"type": "B"}]), "True", "1970-01-01T00:00:00Z"),
            (json!([stored("True")]), "True", "t"),
            (json!([stored("False")]), "True", "1970-01-01T00:00:00Z"),
        ] {
            let n_others = before
                .as_array()
                .map_or(0, |own| own.iter().filter(|own| own["type"] != "A").count());
            let mut pod = json!({"status": {"conditions": before}});
            let pod = pod.as_object_mut().unwrap();
            set_pod_condition(pod, condition(set), now);
            let conditions = pod["status"]["conditions"].as_array().unwrap();
            assert_eq!(conditions.len(), n_others + 1);
            assert_eq!(conditions[n_others]["lastTransitionTime"], want, "{before}");
        }
    }
}
