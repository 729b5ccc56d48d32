//! The life of CustomResourceDefinitions: which names they get, that their resources are served, and
//! that their objects go before they do.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use object::{DeleteOptions, Propagation, Status, Tree};
use resources::{CLEANUP_FINALIZER, Definition};
use store::{ListRequest, Prefix, Store};

use crate::host::Host;
use crate::object_ref::ObjectRef;

/// How often a definition that is not settled yet is looked at again.
const RETRY: Duration = Duration::from_millis(200);

const DEFINITIONS: (&str, &str, &str) = ("apiextensions.k8s.io", "v1", "customresourcedefinitions");

/// Looks at definitions whenever one changed, and again while one is going.
pub(crate) async fn establish_definitions<S: Store>(host: Arc<Host<S>>) {
    let mut seen = 0;
    loop {
        let view = host.follower.view();
        let mut is_busy = false;
        for name in view.definitions.keys() {
            match settle(&host, name).await {
                Ok(is_open) => is_busy |= is_open,
                // Somebody else changes or deletes it; that wakes us again.
                Err(status) if matches!(status.code, 404 | 409) => is_busy = true,
                Err(status) => {
                    let why = status.message;
                    let facts: [crate::log::Fact<'_>; 2] = [("name", name), ("why", &why)];
                    host.log.warn("a definition can not be settled", &facts);
                    is_busy = true;
                }
            }
        }
        if is_busy {
            tokio::time::sleep(RETRY).await;
            continue;
        }
        while Arc::ptr_eq(&view.definitions, &host.follower.view().definitions) {
            seen = host.follower.changed(seen).await;
        }
    }
}

/// Takes one definition a step further; `true` if there will be another.
async fn settle<S: Store>(host: &Host<S>, name: &str) -> Result<bool, Status> {
    let own = ObjectRef::built_in(DEFINITIONS, "", name);
    let mut tree = host.own_get(own).await?.into_tree();
    if object::is_terminating(&tree) {
        return end(host, own, tree).await;
    }
    let now = Timestamp::now();
    let view = host.follower.view();
    let others = view.definitions.iter().filter(|(own, _)| own.as_str() != name);
    let others: Vec<Definition> = others.filter_map(|(_, tree)| Definition::read(tree)).collect();
    if resources::settle_names(&mut tree, &others, now) {
        // The write returns when the resource is served, for decisions and routes see it by then.
        tree = host.own_update(own.part("status"), tree).await?.into_tree();
    }
    if resources::establish(&mut tree, now) {
        host.own_update(own.part("status"), tree).await?;
    }
    Ok(false)
}

/// Deletes the objects of a definition, and lets it go when none is left.
async fn end<S: Store>(host: &Host<S>, own: ObjectRef<'_>, mut tree: Tree) -> Result<bool, Status> {
    if !object::finalizers(&tree).contains(&CLEANUP_FINALIZER) {
        return Ok(false);
    }
    if empty(host, &tree).await? > 0 {
        return Ok(true);
    }
    let mut kept: Vec<String> = object::finalizers(&tree).into_iter().map(str::to_owned).collect();
    kept.retain(|finalizer| finalizer != CLEANUP_FINALIZER);
    object::metadata_mut(&mut tree).insert("finalizers".to_owned(), kept.into());
    host.own_update(own, tree).await?;
    Ok(false)
}

/// Deletes the objects of a definition and returns how many are still there.
async fn empty<S: Store>(host: &Host<S>, tree: &Tree) -> Result<usize, Status> {
    let Some(definition) = Definition::read(tree) else { return Ok(0) };
    let view = host.follower.view();
    let found = view.registry.resources().find(|resource| {
        resource.is_custom()
            && resource.group == definition.group
            && resource.plural == definition.names.plural
    });
    // What was never served has no objects.
    let Some(resource) = found else { return Ok(0) };
    let prefix = resources::prefix(&host.prefix, resource, None);
    let Some(prefix) = prefix.and_then(|text| Prefix::new(&text).ok()) else { return Ok(0) };
    let page = host.store.list(&prefix, ListRequest::default()).await;
    let page = page.map_err(|error| Status::internal(&error.to_string()))?;
    let options =
        DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    let mut n_left = 0;
    for item in page.items {
        let names = resources::names(&host.prefix, resource, &item.key);
        let Some((namespace, name)) = names else { continue };
        let of = ObjectRef::of(resource, namespace, name);
        match host.own_delete(of, &options).await {
            Ok(crate::rest::Deleted::Begun(_)) => n_left += 1,
            Err(status) if status.code != 404 => return Err(status),
            Ok(crate::rest::Deleted::Gone(_)) | Err(_) => {}
        }
    }
    Ok(n_left)
}
