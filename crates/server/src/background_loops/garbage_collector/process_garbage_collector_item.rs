//! Processes one work item of the garbage collector.

use std::sync::Arc;

use api_object::{
    DeleteOptions, DeletionPropagation, FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Status, Tree,
    owner_references,
};
use api_resources::Resource;
use serde_json::Value;
use store::Key;

use super::owner_graph::{GarbageCollectorWorkItem, SharedOwnerGraph};
use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;
use crate::undecodable_objects::is_undecodable_status;

pub(super) async fn process_garbage_collector_item(
    server: &ServerState,
    graph: &SharedOwnerGraph,
    item: &GarbageCollectorWorkItem,
) -> Result<(), Status> {
    let Some(object) = read_live_object(server, item.key()).await? else { return Ok(()) };
    match item {
        GarbageCollectorWorkItem::CheckOwners(_) => delete_if_owners_gone(server, object).await,
        GarbageCollectorWorkItem::ReleaseOwner(_) => {
            delete_dependents_and_finalizer(server, graph, object).await
        }
    }
}

/// Deletes an object whose owners are all gone, or removes the references to those that are gone.
async fn delete_if_owners_gone(server: &ServerState, mut object: LiveObject) -> Result<(), Status> {
    let namespace = api_object::namespace(&object.object_tree);
    let mut remaining = Vec::new();
    let mut n_gone = 0;
    for owner in owner_references(&object.object_tree) {
        match find_owner_state(server, owner, namespace).await? {
            OwnerState::Present | OwnerState::WaitsForDependents => remaining.push(owner.clone()),
            OwnerState::Gone => n_gone += 1,
        }
    }
    if n_gone == 0 {
        return Ok(());
    }
    if remaining.is_empty() {
        return object.delete_live_object(server).await;
    }
    object.set_metadata_member("ownerReferences", remaining.into());
    object.update_live_object(server).await
}

/// Removes the finalizer of an owner that is being deleted:
///
/// 1. With the finalizer `orphan`, remove the owner from all dependents.
/// 2. With the finalizer `foregroundDeletion`, delete each dependent that has no other owner, and remove
///    the owner from those that have one. Stop if a dependent that blocks the deletion still exists.
/// 3. Remove the finalizer.
async fn delete_dependents_and_finalizer(
    server: &ServerState,
    graph: &SharedOwnerGraph,
    mut owner: LiveObject,
) -> Result<(), Status> {
    if !api_object::is_terminating(&owner.object_tree) {
        return Ok(());
    }
    let keys = graph.dependents_of(api_object::uid(&owner.object_tree));
    let has = |finalizer: &str| api_object::finalizers(&owner.object_tree).contains(&finalizer);
    let done = if has(ORPHAN_FINALIZER) {
        for key in &keys {
            let Some(dependent) = read_live_object(server, key).await? else { continue };
            dependent.remove_owner_reference(server, &owner).await?;
        }
        ORPHAN_FINALIZER
    } else if has(FOREGROUND_FINALIZER) {
        let mut is_blocked = false;
        for key in &keys {
            let Some(dependent) = read_live_object(server, key).await? else { continue };
            let Some(reference) = dependent.owner_reference_to(&owner) else { continue };
            let is_blocking = reference["blockOwnerDeletion"] == Value::Bool(true);
            if dependent.has_other_owner(server, &owner).await? {
                dependent.remove_owner_reference(server, &owner).await?;
                continue;
            }
            if !api_object::is_terminating(&dependent.object_tree) {
                dependent.delete_live_object(server).await?;
            }
            is_blocked |= is_blocking && read_live_object(server, key).await?.is_some();
        }
        if is_blocked {
            return Ok(());
        }
        FOREGROUND_FINALIZER
    } else {
        return Ok(());
    };
    let finalizers = api_object::finalizers(&owner.object_tree).into_iter();
    let remaining: Vec<String> =
        finalizers.filter(|finalizer| *finalizer != done).map(str::to_owned).collect();
    owner.set_metadata_member("finalizers", remaining.into());
    owner.update_live_object(server).await
}

/// Ignores 404 and 409, which say that another writer changed or deleted the object: its event creates a new work
/// item.
fn ignore_concurrent_change<T>(result: Result<T, Status>) -> Result<(), Status> {
    match result {
        Err(status) if status.is_status_from_this_server() && matches!(status.code, 404 | 409) => {
            Ok(())
        }
        result => result.map(drop),
    }
}

/// The state of the owner that a reference names.
enum OwnerState {
    Present,
    /// The owner is being deleted in the foreground.
    WaitsForDependents,
    Gone,
}

/// Looks for an owner under the key that the reference implies. An owner of a resource that the registry
/// does not know counts as present, because the resource may be served again later.
async fn find_owner_state(
    server: &ServerState,
    reference: &Value,
    namespace: &str,
) -> Result<OwnerState, Status> {
    let text = |member: &str| reference[member].as_str().unwrap_or_default();
    let Some(version) = api_object::GroupVersion::parse_api_version(text("apiVersion")) else {
        return Ok(OwnerState::Present);
    };
    let cluster = server.snapshot_cache.snapshot();
    let resource = cluster.resource_registry.resources().find(|resource| {
        resource.group == version.group && resource.kind == text("kind") && resource.is_stored()
    });
    let Some(resource) = resource else { return Ok(OwnerState::Present) };
    if resource.is_namespaced() && namespace.is_empty() {
        // A cluster-scoped object has no owner in a namespace, so there is no key to look under.
        return Ok(OwnerState::Present);
    }
    let namespace = resource.is_namespaced().then_some(namespace);
    let key =
        api_resources::object_key(&server.store_key_prefix, resource, namespace, text("name"));
    let Some(key) = key.and_then(|key| Key::new(&key).ok()) else { return Ok(OwnerState::Gone) };
    let got = server.store.get(&key, store::At::Newest).await;
    let got = got.map_err(|error| Status::internal_error(&error.to_string()))?;
    let Some(entry) = got.entry else { return Ok(OwnerState::Gone) };
    // An owner that cannot be decoded counts as present, so that nothing is deleted because of it.
    let Ok(tree) = codec::decode_stored_object(&entry.value) else {
        return Ok(OwnerState::Present);
    };
    if api_object::uid(&tree) != text("uid") {
        return Ok(OwnerState::Gone);
    }
    let is_waiting = api_object::is_terminating(&tree)
        && api_object::finalizers(&tree).contains(&FOREGROUND_FINALIZER);
    Ok(if is_waiting { OwnerState::WaitsForDependents } else { OwnerState::Present })
}

/// An object that was read by its key.
struct LiveObject {
    resource: Arc<Resource>,
    namespace: Option<String>,
    name: String,
    object_tree: Tree,
}

impl LiveObject {
    fn object_ref(&self) -> ObjectRef<'_> {
        ObjectRef::for_resource(&self.resource, self.namespace.as_deref(), &self.name)
    }

    fn set_metadata_member(&mut self, member: &str, value: Value) {
        api_object::metadata_mut(&mut self.object_tree).insert(member.to_owned(), value);
    }

    async fn update_live_object(&self, server: &ServerState) -> Result<(), Status> {
        let tree = self.object_tree.clone();
        ignore_concurrent_change(server.loopback_update(self.object_ref(), tree).await)
    }

    async fn delete_live_object(&self, server: &ServerState) -> Result<(), Status> {
        let options = DeleteOptions {
            propagation_policy: Some(DeletionPropagation::Background),
            uid: Some(api_object::uid(&self.object_tree).to_owned()),
            ..DeleteOptions::default()
        };
        ignore_concurrent_change(server.loopback_delete(self.object_ref(), &options).await)
    }

    /// The reference of this object to an owner. An equal uid is not enough: the reference must name the
    /// owner's group, kind and name, and an owner in a namespace owns nothing outside of it.
    fn owner_reference_to(&self, owner: &Self) -> Option<&Value> {
        let is_in_scope = owner.namespace.is_none() || owner.namespace == self.namespace;
        owner_references(&self.object_tree).iter().find(|reference| {
            let version = reference["apiVersion"].as_str().unwrap_or_default();
            let version = api_object::GroupVersion::parse_api_version(version);
            is_in_scope
                && reference["uid"] == api_object::uid(&owner.object_tree)
                && reference["name"] == owner.name.as_str()
                && reference["kind"] == owner.resource.kind.as_str()
                && version.is_some_and(|version| version.group == owner.resource.group)
        })
    }

    /// Whether another owner, which is not being deleted, owns this object.
    async fn has_other_owner(&self, server: &ServerState, owner: &Self) -> Result<bool, Status> {
        let namespace = api_object::namespace(&self.object_tree);
        for other in owner_references(&self.object_tree) {
            let is_other = other["uid"] != api_object::uid(&owner.object_tree);
            if is_other
                && matches!(find_owner_state(server, other, namespace).await?, OwnerState::Present)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes the reference to an owner from this object, if it has one.
    async fn remove_owner_reference(
        mut self,
        server: &ServerState,
        owner: &Self,
    ) -> Result<(), Status> {
        if self.owner_reference_to(owner).is_none() {
            return Ok(());
        }
        let mut remaining = owner_references(&self.object_tree).to_vec();
        remaining.retain(|reference| reference["uid"] != api_object::uid(&owner.object_tree));
        self.set_metadata_member("ownerReferences", remaining.into());
        self.update_live_object(server).await
    }
}

/// Reads the object under a key through the API, as a client would.
async fn read_live_object(server: &ServerState, key: &Key) -> Result<Option<LiveObject>, Status> {
    let cluster = server.snapshot_cache.snapshot();
    let found = cluster.resource_registry.resources().find_map(|resource| {
        let (namespace, name) =
            api_resources::namespace_and_name_in_key(&server.store_key_prefix, resource, key)?;
        Some((resource, namespace, name))
    });
    let Some((resource, namespace, name)) = found else { return Ok(None) };
    match server.loopback_get(ObjectRef::for_resource(resource, namespace, name)).await {
        Ok(shown) => Ok(Some(LiveObject {
            resource: Arc::clone(resource),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            object_tree: shown.into_tree_with_resource_version(),
        })),
        // The owners and dependents of an object that cannot be decoded are unknown.
        Err(status) if status.code == 404 || is_undecodable_status(&status) => Ok(None),
        Err(status) => Err(status),
    }
}
