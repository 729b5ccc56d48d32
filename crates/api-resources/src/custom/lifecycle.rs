//! The conditions of a definition, and its end.

use api_object::{Tree, object_mut, rfc3339};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::definition::{Condition, ConditionStatus};
use crate::tree::{at, text};

/// The finalizer that keeps a definition until all objects of its resource are deleted.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Says in the status of a definition what is the case. Reports whether that is news.
///
/// The time of the last transition changes only with the status of the condition.
pub fn set_condition(tree: &mut Tree, condition: &Condition, now: Timestamp) -> bool {
    let status = object_mut(tree, "status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return false };
    let mut next = json!({
        "type": condition.r#type,
        "status": condition.status.name(),
        "lastTransitionTime": rfc3339(now),
        "reason": condition.reason,
        "message": condition.message,
    });
    match conditions.iter_mut().find(|it| text(*it, "type") == condition.r#type) {
        None => {
            conditions.push(next);
            true
        }
        Some(current) => {
            let since = at(current, &["lastTransitionTime"]);
            let is_unchanged = text(current, "status") == condition.status.name();
            if let Some(time) = next.get_mut("lastTransitionTime")
                && is_unchanged
                && since.is_string()
            {
                *time = since.clone();
            }
            let is_news = *current != next;
            *current = next;
            is_news
        }
    }
}

/// Objects go before their definition does.
pub(crate) fn prepare_delete(tree: &mut Tree, finalizers: &mut Vec<String>, now: Timestamp) {
    // Who asks again while it is under way must not bring back what has been done.
    if api_object::is_terminating(tree) {
        return;
    }
    if !finalizers.iter().any(|it| it == CLEANUP_FINALIZER) {
        finalizers.push(CLEANUP_FINALIZER.to_owned());
    }
    let condition = Condition {
        r#type: "Terminating".to_owned(),
        status: ConditionStatus::True,
        reason: "InstanceDeletionPending".to_owned(),
        message: "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                  begin soon"
            .to_owned(),
    };
    set_condition(tree, &condition, now);
}
