//! Objects of definitions that no path leads to: the definition serves no version, or it is gone and the
//! objects were made by a server that did not know that yet. They are found by where they are stored.

use std::num::NonZeroUsize;
use std::ops::Bound;

use api_object::{GroupResource, Status, Tree};
use api_resources::{Definition, Verb};
use jiff::Timestamp;
use store::{At, Delete, Expect, Item, Key, ListRequest, Prefix, Put, Store, WriteError};

use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

const GROUP: &str = "apiextensions.k8s.io";
const DEFINITIONS: &str = "customresourcedefinitions";

/// Says in the audit log why an object was deleted that no path leads to.
const ANNOTATION: &str = "leftover.apiextensions.portcullis.io/reason";

/// How many objects are read at once.
const PAGE_ITEMS: Option<NonZeroUsize> = NonZeroUsize::new(500);

/// What the keys of a definition's objects begin with.
pub(super) fn prefix<S: Store>(server: &ServerState<S>, definition: &Definition) -> Option<Prefix> {
    let text = api_resources::definition_prefix(&server.prefix, definition)?;
    Prefix::new(&text).ok()
}

/// Removes the objects of earlier definitions of the name, before this one is served for the first time.
///
/// An object belongs to an earlier definition exactly if the store knew it before this one; a status that
/// somebody wrote or lost says nothing about that, so no object of a definition that lives is at risk.
pub(super) async fn remove<S: Store>(
    server: &ServerState<S>,
    definition: &Definition,
) -> Result<(), Status> {
    let Some(prefix) = prefix(server, definition) else { return Ok(()) };
    let Some(key) = definition_key(server, &definition.name) else { return Ok(()) };
    let got = server.store.get(&key, At::Newest).await.map_err(|error| unread(&error))?;
    let Some(entry) = got.entry else { return Ok(()) };
    let mut n_removed = 0_usize;
    let mut from = Bound::Unbounded;
    loop {
        let request = ListRequest { from, limit: PAGE_ITEMS, at: At::Newest };
        let page = server.store.list(&prefix, request).await.map_err(|error| unread(&error))?;
        let Some(last) = page.items.last().map(|item| item.key.clone()) else { break };
        for item in page.items.iter().filter(|item| item.entry.create_rev < entry.create_rev) {
            delete(server, definition, item, "it is of an earlier definition").await?;
            n_removed += 1;
        }
        if page.remaining == 0 {
            break;
        }
        from = Bound::Excluded(last);
    }
    if n_removed > 0 {
        let facts: [crate::log::Fact<'_>; 2] = [("name", &definition.name), ("count", &n_removed)];
        server.log.warn("objects of an earlier definition were removed", &facts);
    }
    Ok(())
}

/// Ends an object that no path leads to. One that somebody has to finalize first stays; that is possible
/// when the definition serves a version again.
pub(super) async fn end<S: Store>(
    server: &ServerState<S>,
    definition: &Definition,
    item: &Item,
) -> Result<(), Status> {
    let tree: Option<Tree> = codec::from_stored(&item.entry.value).ok();
    let Some(mut tree) = tree.filter(|tree| !api_object::finalizers(tree).is_empty()) else {
        return delete(server, definition, item, "its definition goes and serves it nowhere").await;
    };
    let kept: Vec<String> = api_object::finalizers(&tree).into_iter().map(str::to_owned).collect();
    if !api_object::mark_for_deletion(&mut tree, &kept, &api_object::rfc3339(Timestamp::now())) {
        return Ok(());
    }
    let put = Put {
        key: item.key.clone(),
        value: codec::to_stored(&tree).into(),
        expect: Expect::At(item.entry.mod_rev),
        ttl: None,
        mark: None,
    };
    settle(&item.key, server.store.put(put).await.map(drop))
}

/// Deletes an object in the store and records why. No hook is asked: to the API there is no such object.
async fn delete<S: Store>(
    server: &ServerState<S>,
    definition: &Definition,
    item: &Item,
    why: &str,
) -> Result<(), Status> {
    let expect = Expect::At(item.entry.mod_rev);
    let delete = Delete { key: item.key.clone(), expect, mark: None };
    settle(&item.key, server.store.delete(delete).await.map(drop))?;
    let prefix = api_resources::definition_prefix(&server.prefix, definition).unwrap_or_default();
    let names = item.key.strip_prefix(prefix.as_str()).unwrap_or_default();
    let (namespace, name) = names.split_once('/').unwrap_or(("", names));
    let version = definition.storage_version().map_or("", |version| version.name.as_str());
    let resource = (definition.group.as_str(), version, definition.names.plural.as_str());
    let request = ObjectRef::built_in(resource, namespace, name).request(Verb::Delete);
    server.record_own_write(&request, ANNOTATION.to_owned(), why);
    Ok(())
}

/// The answer to a write. An object that changed meanwhile is looked at again with the definition.
fn settle(key: &Key, written: Result<(), WriteError>) -> Result<(), Status> {
    written.map_err(|error| match error {
        WriteError::Conflict { .. } => {
            let objects = GroupResource::new(GROUP, DEFINITIONS);
            Status::conflict(&objects, key.as_str(), "an object of it has been modified")
        }
        other => Status::internal(&other.to_string()),
    })
}

fn definition_key<S: Store>(server: &ServerState<S>, name: &str) -> Option<Key> {
    let cluster = server.snapshot_cache.snapshot();
    let definitions = cluster.registry.resource(GROUP, "v1", DEFINITIONS)?;
    Key::new(&api_resources::key(&server.prefix, definitions, None, name)?).ok()
}

fn unread(error: &store::ReadError) -> Status {
    Status::internal(&error.to_string())
}
