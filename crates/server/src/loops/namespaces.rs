//! Emptying namespaces that are being deleted.

use std::sync::Arc;
use std::time::Duration;

use object::{DeleteOptions, Propagation, Status};
use resources::Resource;
use serde_json::Value;
use store::{ListRequest, Prefix, Store};

use crate::host::Host;
use crate::object_ref::ObjectRef;
use crate::view::NamespacePhase;

/// How often a namespace that is not empty yet is looked at again.
const RETRY: Duration = Duration::from_millis(200);

/// Looks at terminating namespaces whenever something changed, and again while some are left.
pub(crate) async fn end_namespaces<S: Store>(host: Arc<Host<S>>) {
    let mut seen = 0;
    loop {
        let view = host.follower.view();
        let ending: Vec<String> = (view.namespaces.iter())
            .filter(|(_, own)| own.phase == NamespacePhase::Terminating)
            .map(|(name, _)| name.clone())
            .collect();
        for name in &ending {
            if let Err(status) = end_namespace(&host, name).await
                && status.code != 404
            {
                let why = status.message;
                host.log.warn("a namespace can not be emptied", &[("name", name), ("why", &why)]);
            }
        }
        if !ending.is_empty() {
            tokio::time::sleep(RETRY).await;
            continue;
        }
        while Arc::ptr_eq(&view.namespaces, &host.follower.view().namespaces) {
            seen = host.follower.changed(seen).await;
        }
    }
}

async fn end_namespace<S: Store>(host: &Host<S>, name: &str) -> Result<(), Status> {
    let own = ObjectRef::built_in(("", "v1", "namespaces"), "", name);
    let mut tree = host.own_get(own).await?.into_tree();
    if !object::is_terminating(&tree) {
        return Ok(());
    }
    // Nothing is created once the namespace is stored as ending, since each create depends on its key. The
    // second pass begins after the first is complete: it sees what the first one left and what the deletion
    // of one object made of others.
    for _ in 0..2 {
        if !is_empty(host, name).await? {
            return Ok(());
        }
    }
    let spec = object::object_mut(&mut tree, "spec");
    if let Some(Value::Array(finalizers)) = spec.get_mut("finalizers") {
        finalizers.retain(|finalizer| finalizer != "kubernetes");
    }
    match host.own_update(own.part("finalize"), tree).await {
        Err(status) if status.code == 409 => Ok(()),
        Err(status) => Err(status),
        Ok(_) => Ok(()),
    }
}

/// Deletes what a namespace holds, and reports whether there was nothing.
async fn is_empty<S: Store>(host: &Host<S>, name: &str) -> Result<bool, Status> {
    // Resources that another server has defined meanwhile count, too.
    let current = host.store.current_rev().await;
    let current = current.map_err(|error| Status::internal(&error.to_string()))?;
    host.follower.wait_for(current).await;
    let view = host.follower.view();
    let mut n_found = 0;
    for resource in view.registry.resources() {
        if resource.is_namespaced() && resource.is_stored() {
            n_found += empty(host, resource, name).await?;
        }
    }
    Ok(n_found == 0)
}

/// Deletes what a namespace has of a resource and returns how many objects there were.
async fn empty<S: Store>(
    host: &Host<S>,
    resource: &Resource,
    namespace: &str,
) -> Result<usize, Status> {
    let prefix = resources::prefix(&host.prefix, resource, Some(namespace));
    let Some(prefix) = prefix.and_then(|text| Prefix::new(&text).ok()) else { return Ok(0) };
    let page = host.store.list(&prefix, ListRequest::default()).await;
    let page = page.map_err(|error| Status::internal(&error.to_string()))?;
    let options =
        DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    let n_found = page.items.len();
    for item in page.items {
        let Some((_, name)) = resources::names(&host.prefix, resource, &item.key) else { continue };
        let of = ObjectRef::of(resource, Some(namespace), name);
        match host.own_delete(of, &options).await {
            Err(status) if status.code != 404 => return Err(status),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(n_found)
}
