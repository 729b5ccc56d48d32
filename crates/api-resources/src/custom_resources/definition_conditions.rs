//! The status conditions of a definition, and the steps before its deletion.

use api_object::{Tree, format_rfc3339, object_member_mut};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::custom_resource_definition::{ConditionStatus, DefinitionCondition};
use crate::json_members::{string_member, value_at_path};

/// The finalizer that keeps a definition until all objects of its resource are deleted.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Sets a condition in the status of a definition. Reports whether the status changed.
///
/// The time of the last transition changes only with the status of the condition.
pub fn set_definition_condition(
    tree: &mut Tree,
    condition: &DefinitionCondition,
    now: Timestamp,
) -> bool {
    let status = object_member_mut(tree, "status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return false };
    let mut next = json!({
        "type": condition.r#type,
        "status": condition.status.name(),
        "lastTransitionTime": format_rfc3339(now),
        "reason": condition.reason,
        "message": condition.message,
    });
    match conditions.iter_mut().find(|it| string_member(*it, "type") == condition.r#type) {
        None => {
            conditions.push(next);
            true
        }
        Some(current) => {
            let since = value_at_path(current, &["lastTransitionTime"]);
            let is_unchanged = string_member(current, "status") == condition.status.name();
            if let Some(time) = next.get_mut("lastTransitionTime")
                && is_unchanged
                && since.is_string()
            {
                *time = since.clone();
            }
            let is_changed = *current != next;
            *current = next;
            is_changed
        }
    }
}

/// Marks a definition as terminating and adds the finalizer that keeps it until its objects are deleted.
pub(crate) fn prepare_definition_delete(
    tree: &mut Tree,
    finalizers: &mut Vec<String>,
    now: Timestamp,
) {
    // A repeated delete must not add a finalizer that was already removed.
    if api_object::is_terminating(tree) {
        return;
    }
    if !finalizers.iter().any(|it| it == CLEANUP_FINALIZER) {
        finalizers.push(CLEANUP_FINALIZER.to_owned());
    }
    let condition = DefinitionCondition {
        r#type: "Terminating".to_owned(),
        status: ConditionStatus::True,
        reason: "InstanceDeletionPending".to_owned(),
        message: "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                  begin soon"
            .to_owned(),
    };
    set_definition_condition(tree, &condition, now);
}
