//! The life of CustomResourceDefinitions: which names they get, that their resources are served, and
//! that their objects go before they do.

mod leftovers;

use std::sync::Arc;
use std::time::Duration;

use api_object::{DeleteOptions, Propagation, Status, Tree};
use api_resources::{CLEANUP_FINALIZER, Definition};
use jiff::Timestamp;
use store::{ListRequest, Store};

use super::endings::{Endings, end_by, is_going};
use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

/// How often a definition that is not settled yet is looked at again.
const RETRY: Duration = Duration::from_millis(200);

const DEFINITIONS: (&str, &str, &str) = ("apiextensions.k8s.io", "v1", "customresourcedefinitions");

/// Looks at definitions whenever one changed, and again while one is going.
pub(crate) async fn establish_definitions<S: Store>(server: Arc<ServerState<S>>) {
    let mut endings = Endings::default();
    let mut seen = 0;
    loop {
        let cluster = server.snapshot_cache.snapshot();
        let mut is_busy = false;
        for (name, stored) in cluster.definitions.iter() {
            if api_object::is_terminating(&stored.tree) {
                endings.begin(name, || try_to_end(Arc::clone(&server), name.clone()));
                continue;
            }
            match settle(&server, name).await {
                Ok(is_open) => is_busy |= is_open,
                // Somebody else changes or deletes it; that wakes us again.
                Err(status) if status.is_from_this_server() && matches!(status.code, 404 | 409) => {
                    is_busy = true;
                }
                Err(status) => {
                    let why = status.message;
                    let facts: [crate::log::Fact<'_>; 2] = [("name", name), ("why", &why)];
                    server.log.warn("a definition can not be settled", &facts);
                    is_busy = true;
                }
            }
        }
        if is_busy {
            tokio::time::sleep(RETRY).await;
            continue;
        }
        while Arc::ptr_eq(&cluster.definitions, &server.snapshot_cache.snapshot().definitions) {
            tokio::select! {
                () = endings.next_ended() => break,
                next = server.snapshot_cache.changed(seen) => seen = next,
            }
        }
        server.metrics.forget_unserved(&server.snapshot_cache.snapshot().registry);
    }
}

/// Takes one definition a step further; `true` if there will be another.
async fn settle<S: Store>(server: &ServerState<S>, name: &str) -> Result<bool, Status> {
    let own = ObjectRef::built_in(DEFINITIONS, "", name);
    let mut tree = server.own_get(own).await?.into_tree();
    if api_object::is_terminating(&tree) {
        return Ok(true);
    }
    if let Some(definition) = Definition::read(&tree).filter(|own| !own.is_served()) {
        leftovers::remove(server, &definition).await?;
    }
    let now = Timestamp::now();
    let cluster = server.snapshot_cache.snapshot();
    let others = cluster.definitions.iter().filter(|(own, _)| own.as_str() != name);
    let others: Vec<Definition> =
        others.filter_map(|(_, own)| Definition::read(&own.tree)).collect();
    if api_resources::accept_names(&mut tree, &others, now) {
        // The write returns when the resource is served, for decisions and routes see it by then.
        tree = server.own_update(own.part("status"), tree).await?.into_tree();
    }
    if api_resources::mark_established(&mut tree, now) {
        server.own_update(own.part("status"), tree).await?;
    }
    Ok(false)
}

async fn try_to_end<S: Store>(server: Arc<ServerState<S>>, name: String) {
    let attempt = || end(&server, &name);
    end_by(server.log, "a definition can not be emptied", &name, attempt).await;
}

/// Deletes the objects of a definition that ends, and then the definition. Returns how many objects are
/// left; `None` if the definition stays.
async fn end<S: Store>(server: &ServerState<S>, name: &str) -> Result<Option<usize>, Status> {
    let own = ObjectRef::built_in(DEFINITIONS, "", name);
    let mut tree = server.own_get(own).await?.into_tree();
    if !api_object::is_terminating(&tree) {
        return Ok(None);
    }
    if !api_object::finalizers(&tree).contains(&CLEANUP_FINALIZER) {
        return Ok(Some(0));
    }
    // Nothing is created once the definition is known to end, since each create depends on its key. The
    // second pass sees what was on its way during the first.
    for _ in 0..2 {
        let n_found = empty(server, &tree).await?;
        if n_found > 0 {
            return Ok(Some(n_found));
        }
    }
    let mut kept: Vec<String> =
        api_object::finalizers(&tree).into_iter().map(str::to_owned).collect();
    kept.retain(|finalizer| finalizer != CLEANUP_FINALIZER);
    api_object::metadata_mut(&mut tree).insert("finalizers".to_owned(), kept.into());
    server.own_update(own, tree).await?;
    Ok(Some(0))
}

/// Deletes the objects of a definition, wherever it is or was served, and returns how many there were. What
/// the API serves is deleted through it. An object that can not be deleted now does not keep the others.
async fn empty<S: Store>(server: &ServerState<S>, tree: &Tree) -> Result<usize, Status> {
    let Some(definition) = Definition::read(tree) else { return Ok(0) };
    let Some(prefix) = leftovers::prefix(server, &definition) else { return Ok(0) };
    let cluster = server.snapshot_cache.snapshot();
    let served = cluster.registry.resources().find(|resource| {
        resource.is_custom()
            && resource.group == definition.group
            && resource.plural == definition.names.plural
    });
    let page = server.store.list(&prefix, ListRequest::default()).await;
    let page = page.map_err(|error| Status::internal(&error.to_string()))?;
    let options =
        DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    let mut refused = None;
    for item in &page.items {
        let names = served.and_then(|resource| {
            let (namespace, name) = api_resources::names(&server.prefix, resource, &item.key)?;
            Some(ObjectRef::of(resource, namespace, name))
        });
        let Some(of) = names else {
            leftovers::end(server, &definition, item).await?;
            continue;
        };
        if is_going(&item.entry.value) {
            continue;
        }
        match server.own_delete(of, &options).await {
            Err(status) if status.is_from_this_server() && status.code == 404 => {}
            Err(status) => refused = refused.or(Some(status)),
            Ok(_) => {}
        }
    }
    refused.map_or(Ok(page.items.len()), Err)
}
