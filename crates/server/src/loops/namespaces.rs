//! Emptying namespaces that are being deleted.

use std::sync::Arc;

use api_object::{DeleteOptions, Propagation, Status};
use api_resources::Resource;
use serde_json::Value;
use store::{ListRequest, Prefix, Store};

use super::endings::{Endings, end_by, is_going};
use crate::cluster_snapshot::NamespacePhase;
use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

/// Looks at terminating namespaces whenever something changed.
pub(crate) async fn end_namespaces<S: Store>(server: Arc<ServerState<S>>) {
    let mut endings = Endings::default();
    let mut seen = 0;
    loop {
        let cluster = server.snapshot_cache.snapshot();
        for (name, own) in cluster.namespaces.iter() {
            if own.phase == NamespacePhase::Terminating {
                endings.begin(name, || try_to_end(Arc::clone(&server), name.clone()));
            }
        }
        tokio::select! {
            () = endings.next_ended() => {}
            next = server.snapshot_cache.changed(seen) => seen = next,
        }
    }
}

async fn try_to_end<S: Store>(server: Arc<ServerState<S>>, name: String) {
    let attempt = || end_namespace(&server, &name);
    end_by(server.log, "a namespace can not be emptied", &name, attempt).await;
}

/// Deletes what is in a namespace that ends, and then the namespace. Returns how many objects are left;
/// `None` if the namespace stays.
async fn end_namespace<S: Store>(
    server: &ServerState<S>,
    name: &str,
) -> Result<Option<usize>, Status> {
    let own = ObjectRef::built_in(("", "v1", "namespaces"), "", name);
    let mut tree = server.own_get(own).await?.into_tree();
    if !api_object::is_terminating(&tree) {
        return Ok(None);
    }
    // Nothing is created once the namespace is stored as ending, since each create depends on its key. The
    // second pass begins after the first is complete: it sees what the first one left and what the deletion
    // of one object made of others.
    for _ in 0..2 {
        let n_found = delete_contents(server, name).await?;
        if n_found > 0 {
            return Ok(Some(n_found));
        }
    }
    let spec = api_object::object_mut(&mut tree, "spec");
    if let Some(Value::Array(finalizers)) = spec.get_mut("finalizers") {
        finalizers.retain(|finalizer| finalizer != "kubernetes");
    }
    match server.own_update(own.part("finalize"), tree).await {
        Err(status) if status.is_from_this_server() && status.code == 409 => Ok(Some(0)),
        Err(status) => Err(status),
        // It is gone, or finalizers of others hold it.
        Ok(_) => Ok(Some(0)),
    }
}

/// Deletes everything in a namespace and returns how many objects there were. An object that cannot be
/// deleted now, perhaps because its owner fills the store, does not keep the others.
///
/// # Errors
/// The first refusal, after all objects were tried.
async fn delete_contents<S: Store>(server: &ServerState<S>, name: &str) -> Result<usize, Status> {
    // Resources that another server has defined meanwhile count, too.
    let current = server.store.current_rev().await;
    let current = current.map_err(|error| Status::internal(&error.to_string()))?;
    server.snapshot_cache.wait_for(current).await;
    let cluster = server.snapshot_cache.snapshot();
    let (mut n_found, mut refused) = (0, None);
    for resource in cluster.registry.resources() {
        if resource.is_namespaced() && resource.is_stored() {
            n_found += delete_all_of(server, resource, name, &mut refused).await?;
        }
    }
    refused.map_or(Ok(n_found), Err)
}

/// Deletes what a namespace has of a resource and returns how many objects there were.
async fn delete_all_of<S: Store>(
    server: &ServerState<S>,
    resource: &Resource,
    namespace: &str,
    refused: &mut Option<Status>,
) -> Result<usize, Status> {
    let prefix = api_resources::prefix(&server.prefix, resource, Some(namespace));
    let Some(prefix) = prefix.and_then(|text| Prefix::new(&text).ok()) else { return Ok(0) };
    let page = server.store.list(&prefix, ListRequest::default()).await;
    let page = page.map_err(|error| Status::internal(&error.to_string()))?;
    let options =
        DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    let n_found = page.items.len();
    for item in page.items {
        if is_going(&item.entry.value) {
            continue;
        }
        let Some((_, name)) = api_resources::names(&server.prefix, resource, &item.key) else {
            continue;
        };
        let of = ObjectRef::of(resource, Some(namespace), name);
        match server.own_delete(of, &options).await {
            Err(status) if status.is_from_this_server() && status.code == 404 => {}
            Err(status) if refused.is_none() => *refused = Some(status),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(n_found)
}
