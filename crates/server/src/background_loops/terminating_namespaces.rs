//! Deletes terminating namespaces and their contents.

use std::sync::Arc;

use api_object::{DeleteOptions, DeletionPropagation, Status, Tree};
use api_resources::Resource;
use jiff::Timestamp;
use serde_json::Value;
use store::{ListRequest, Prefix};

use super::deletion_tasks::{DeletionTasks, decode_if_terminating, retry_until_deleted};
use super::namespace_conditions::RemainingNamespaceContents;
use crate::cluster_snapshot::NamespacePhase;
use crate::object_ref::ObjectRef;
use crate::rest::DeleteResult;
use crate::server_state::ServerState;

/// Starts a task for each terminating namespace, whenever the snapshot changes.
pub(crate) async fn delete_terminating_namespaces(server: Arc<ServerState>) {
    let mut tasks = DeletionTasks::default();
    let mut seen_revision = 0;
    loop {
        let cluster = server.snapshot_cache.snapshot();
        for (name, namespace) in cluster.namespaces.iter() {
            if namespace.namespace_phase == NamespacePhase::Terminating {
                tasks
                    .start(name, || delete_namespace_until_gone(Arc::clone(&server), name.clone()));
            }
        }
        tokio::select! {
            () = tasks.wait_for_any_deletion_task() => {}
            revision = server.snapshot_cache.wait_for_revision_after(seen_revision) => {
                seen_revision = revision;
            }
        }
    }
}

async fn delete_namespace_until_gone(server: Arc<ServerState>, name: String) {
    let attempt = || try_to_delete_namespace(&server, &name);
    retry_until_deleted(server.log, "a namespace cannot be emptied", &name, attempt).await;
}

/// Deletes the contents of a terminating namespace, and then the namespace. Returns how many objects were
/// found; `None` if the namespace is not terminating. The conditions of a namespace that stays say what is left in it.
async fn try_to_delete_namespace(
    server: &ServerState,
    name: &str,
) -> Result<Option<usize>, Status> {
    let namespace_ref = ObjectRef::new(("", "v1", "namespaces"), "", name);
    let mut tree = server.loopback_get(namespace_ref).await?.into_tree_with_resource_version();
    if !api_object::is_terminating(&tree) {
        return Ok(None);
    }
    // No object is created once the namespace is stored as terminating, since each create depends on its
    // key. The second pass begins after the first is complete: it finds objects that the first one left and
    // objects that the deletion of others created.
    for _ in 0..2 {
        let mut left = RemainingNamespaceContents::default();
        let deleted = delete_namespace_contents(server, name, &mut left).await;
        if !matches!(deleted, Ok(0)) {
            update_namespace_conditions(server, namespace_ref, tree, &left).await;
            return deleted.map(Some);
        }
    }
    if !api_object::finalizers(&tree).is_empty() {
        // Another controller keeps the namespace, which is empty by now.
        let left = RemainingNamespaceContents::default();
        update_namespace_conditions(server, namespace_ref, tree, &left).await;
        tree = server.loopback_get(namespace_ref).await?.into_tree_with_resource_version();
    }
    let spec = api_object::object_member_mut(&mut tree, "spec");
    if let Some(Value::Array(finalizers)) = spec.get_mut("finalizers") {
        finalizers.retain(|finalizer| finalizer != "kubernetes");
    }
    match server.loopback_update(namespace_ref.with_subresource("finalize"), tree).await {
        Err(status) if status.is_status_from_this_server() && status.code == 409 => Ok(Some(0)),
        Err(status) => Err(status),
        // The namespace is gone, or finalizers of other controllers keep it.
        Ok(_) => Ok(Some(0)),
    }
}

/// Writes the conditions of a namespace, which say what delays its deletion. The deletion does not depend on them.
async fn update_namespace_conditions(
    server: &ServerState,
    namespace_ref: ObjectRef<'_>,
    mut tree: Tree,
    left: &RemainingNamespaceContents,
) {
    let name = api_object::name(&tree).to_owned();
    if !left.write_namespace_conditions(&mut tree, &api_object::format_rfc3339(Timestamp::now())) {
        return;
    }
    match server.loopback_update(namespace_ref.with_subresource("status"), tree).await {
        // Another server works on the namespace as well, or it is gone.
        Err(status) if status.is_status_from_this_server() && matches!(status.code, 404 | 409) => {}
        Err(status) => {
            let why = &status.message;
            let what = "the conditions of a namespace cannot be written";
            server.log.warn(what, &[("name", &name), ("why", why)]);
        }
        Ok(_) => {}
    }
}

/// Deletes all objects in a namespace and returns how many there were. An object that cannot be deleted
/// now, perhaps because its tenant fills the store, does not keep the others from being deleted.
///
/// # Errors
/// The first refusal, after all objects were tried.
async fn delete_namespace_contents(
    server: &ServerState,
    name: &str,
    left: &mut RemainingNamespaceContents,
) -> Result<usize, Status> {
    // The registry must include resources that another server has defined in the meantime.
    let current = server.store.current_rev().await;
    let current = current.map_err(|error| Status::internal_error(&error.to_string()))?;
    server.snapshot_cache.wait_for_revision(current).await;
    let cluster = server.snapshot_cache.snapshot();
    let (mut n_found, mut first_refusal) = (0, None);
    for resource in cluster.resource_registry.resources() {
        if resource.is_namespaced() && resource.is_stored() {
            n_found += delete_namespace_objects_of_resource(
                server,
                resource,
                name,
                left,
                &mut first_refusal,
            )
            .await?;
        }
    }
    first_refusal.map_or(Ok(n_found), Err)
}

/// Deletes the objects of one resource in a namespace and returns how many there were.
async fn delete_namespace_objects_of_resource(
    server: &ServerState,
    resource: &Resource,
    namespace: &str,
    left: &mut RemainingNamespaceContents,
    first_refusal: &mut Option<Status>,
) -> Result<usize, Status> {
    let prefix =
        api_resources::list_key_prefix(&server.store_key_prefix, resource, Some(namespace));
    let Some(prefix) = prefix.and_then(|text| Prefix::new(&text).ok()) else { return Ok(0) };
    let page = server.store.list(&prefix, ListRequest::default()).await;
    let page = page.map_err(|error| Status::internal_error(&error.to_string()))?;
    let options = DeleteOptions {
        propagation_policy: Some(DeletionPropagation::Background),
        ..DeleteOptions::default()
    };
    let n_found = page.items.len();
    for item in page.items {
        if let Some(tree) = decode_if_terminating(&item.entry.value) {
            left.record_remaining_object(resource, &api_object::finalizers(&tree));
            continue;
        }
        let Some((_, name)) =
            api_resources::namespace_and_name_in_key(&server.store_key_prefix, resource, &item.key)
        else {
            continue;
        };
        let object_ref = ObjectRef::for_resource(resource, Some(namespace), name);
        match server.loopback_delete(object_ref, &options).await {
            Ok(DeleteResult::Removed(_)) => {}
            Ok(DeleteResult::Terminating(shown)) => {
                left.record_remaining_object(resource, &api_object::finalizers(&shown.object_tree));
            }
            Err(status) if status.is_status_from_this_server() && status.code == 404 => {}
            Err(status) => {
                left.record_remaining_object(resource, &[]);
                left.record_deletion_failure(resource, &status.message);
                first_refusal.get_or_insert(status);
            }
        }
    }
    Ok(n_found)
}
