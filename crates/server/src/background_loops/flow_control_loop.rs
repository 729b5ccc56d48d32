//! Maintains flow schemas and priority levels: the default objects, and the condition of schemas without a level.

use std::sync::Arc;
use std::time::Duration;

use api_object::{Status, Tree};
use jiff::Timestamp;
use manifests::flow_control::{DANGLING, Kind};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::bootstrap::{default_flow_control_changes, flow_control_object_ref};
use crate::cluster_snapshot::FlowControlObjects;
use crate::server_state::ServerState;

/// The interval at which missing and stale default objects are written, as in Kubernetes. Two versions of the
/// server with different defaults then write each object at most twice a minute.
const RESTORATION_INTERVAL: Duration = Duration::from_secs(60);

/// The members of a condition that are compared to decide whether it is up to date.
const SHOWN_MEMBERS: [&str; 3] = ["status", "reason", "message"];

/// Writes conditions whenever a schema or a level changes, and default objects periodically.
pub(crate) async fn maintain_flow_control(server: Arc<ServerState>) {
    let mut restores_at = Instant::now() + RESTORATION_INTERVAL;
    let mut seen_revision = 0;
    let mut seen_objects: Option<Arc<FlowControlObjects>> = None;
    loop {
        let objects = Arc::clone(&server.snapshot_cache.snapshot().flow_control_objects);
        if !seen_objects.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &objects)) {
            write_dangling_conditions(&server, &objects).await;
            seen_objects = Some(objects);
        }
        tokio::select! {
            () = tokio::time::sleep_until(restores_at) => {
                restore_flow_control_defaults(&server).await;
                // A condition that could not be written is tried again.
                seen_objects = None;
                restores_at = Instant::now() + RESTORATION_INTERVAL;
            }
            revision = server.snapshot_cache.wait_for_revision_after(seen_revision) => {
                seen_revision = revision;
            }
        }
    }
}

/// Writes the default objects that are missing or stale.
async fn restore_flow_control_defaults(server: &ServerState) {
    let objects = Arc::clone(&server.snapshot_cache.snapshot().flow_control_objects);
    let changes = match default_flow_control_changes(&objects) {
        Ok(changes) => changes,
        Err(error) => {
            return server.log.error("default objects cannot be encoded", &[("why", &error)]);
        }
    };
    for change in changes {
        let name = change.name().to_owned();
        if let Err(status) = change.write_default_flow_control_change(server).await {
            let fields: &[(&str, &dyn std::fmt::Display)] =
                &[("name", &name), ("why", &status.message)];
            server.log.warn("a default object of flow control cannot be written", fields);
        }
    }
}

/// Writes the `Dangling` condition of each schema whose stored condition is out of date. Independent writes run
/// concurrently.
pub(crate) async fn write_dangling_conditions(
    server: &Arc<ServerState>,
    objects: &Arc<FlowControlObjects>,
) {
    let mut writes = JoinSet::new();
    for (name, stored) in &objects.flow_schemas {
        if with_dangling_condition(&stored.object_tree, objects).is_some() {
            let (server, name) = (Arc::clone(server), name.clone());
            writes.spawn(async move {
                if let Err(status) = write_dangling_condition(&server, &name).await {
                    let fields: &[(&str, &dyn std::fmt::Display)] =
                        &[("name", &name), ("why", &status.message)];
                    server.log.warn("the status of a flow schema cannot be written", fields);
                }
            });
        }
    }
    while writes.join_next().await.is_some() {}
}

/// Writes the condition of one schema. The snapshot must be as new as the schema that was read: another server
/// may have written the condition because of a level that an older snapshot does not have.
async fn write_dangling_condition(server: &ServerState, name: &str) -> Result<(), Status> {
    let object_ref = flow_control_object_ref(Kind::FlowSchema, name);
    let current = match server.loopback_get(object_ref).await {
        Ok(current) => current,
        Err(status) if status.is_status_from_this_server() && status.code == 404 => return Ok(()),
        Err(status) => return Err(status),
    };
    if let Some(revision) = current.revision {
        server.snapshot_cache.wait_for_revision(revision).await;
    }
    let cluster = server.snapshot_cache.snapshot();
    let updated = with_dangling_condition(
        &current.into_tree_with_resource_version(),
        &cluster.flow_control_objects,
    );
    let Some(updated) = updated else { return Ok(()) };
    match server.loopback_update(object_ref.with_subresource("status"), updated).await {
        // Another server wrote the same condition, or the schema has changed and is looked at again.
        Err(status) if status.is_status_from_this_server() && matches!(status.code, 404 | 409) => {
            Ok(())
        }
        written => written.map(drop),
    }
}

/// Returns the schema with an up-to-date `Dangling` condition; `None` if the stored one is up to date. The texts
/// are those of Kubernetes.
fn with_dangling_condition(tree: &Tree, objects: &FlowControlObjects) -> Option<Tree> {
    let level = tree.get("spec").and_then(|spec| spec.get("priorityLevelConfiguration"));
    let level = level.and_then(|level| level.get("name")).and_then(Value::as_str);
    let level = level.unwrap_or_default();
    let (status, reason, outcome) = match objects.priority_levels.contains_key(level) {
        true => ("False", "Found", "and it exists"),
        false => ("True", "NotFound", "but there is no such object"),
    };
    let level = go_compat::quote(level);
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {level} {outcome}"
    );
    let is_dangling = |condition: &&mut Value| condition.get("type") == Some(&DANGLING.into());
    let mut tree = tree.clone();
    let conditions = api_object::object_member_mut(&mut tree, "status")
        .entry("conditions")
        .or_insert_with(|| json!([]));
    if conditions.is_null() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return None };
    let condition = json!({
        "type": DANGLING,
        "status": status,
        "lastTransitionTime": api_object::format_rfc3339(Timestamp::now()),
        "reason": reason,
        "message": message,
    });
    match conditions.iter_mut().find(is_dangling) {
        Some(own) if SHOWN_MEMBERS.iter().all(|it| own.get(it) == condition.get(it)) => {
            return None;
        }
        Some(own) => *own = condition,
        None => conditions.push(condition),
    }
    Some(tree)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_snapshot::StoredPriorityLevel;

    /// The objects with the level of the schema below, or without it.
    fn objects(exists: bool) -> FlowControlObjects {
        let mut objects = FlowControlObjects::default();
        if exists {
            let level = flow_control::bootstrap_objects::mandatory_priority_levels()
                .remove(0)
                .priority_level;
            let stored = StoredPriorityLevel { priority_level: level, object_tree: Arc::default() };
            objects.priority_levels.insert("low".to_owned(), stored);
        }
        objects
    }

    fn schema(conditions: Value) -> Tree {
        let value = json!({
            "spec": {"priorityLevelConfiguration": {"name": "low"}},
            "status": {"conditions": conditions},
        });
        match value {
            Value::Object(tree) => tree,
            _ => Tree::new(),
        }
    }

    #[test]
    fn the_condition_is_written_only_if_it_differs() {
        let other = json!({"type": "Other", "status": "True"});
        for (exists, status, reason, message) in [
            (
                true,
                "False",
                "Found",
                "This FlowSchema references the PriorityLevelConfiguration object named \"low\" and it exists",
            ),
            (
                false,
                "True",
                "NotFound",
                "This FlowSchema references the PriorityLevelConfiguration object named \"low\" but there is no \
                 such object",
            ),
        ] {
            for before in [json!([other]), json!([other, {"type": DANGLING, "status": "?"}])] {
                let written = with_dangling_condition(&schema(before), &objects(exists));
                let written = written.expect("a change");
                let conditions = written["status"]["conditions"].as_array().expect("a list");
                assert_eq!(conditions.len(), 2);
                assert_eq!(conditions[0], other);
                assert_eq!(conditions[1]["status"], status);
                assert_eq!(conditions[1]["reason"], reason);
                assert_eq!(conditions[1]["message"], message);
                assert_eq!(with_dangling_condition(&written, &objects(exists)), None);
                assert!(with_dangling_condition(&written, &objects(!exists)).is_some());
            }
        }
        for before in [json!(null), json!([])] {
            assert!(with_dangling_condition(&schema(before), &objects(true)).is_some());
        }
    }
}
