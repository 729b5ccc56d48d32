//! Custom objects that the API does not serve: their definition serves no version, or the definition was
//! deleted and a server that did not know that created them. They are found by the prefix of their keys.

use std::num::NonZeroUsize;
use std::ops::Bound;

use api_object::{GroupResource, Status, Tree};
use api_resources::{CustomResourceDefinition, Verb};
use component_base::LogField;
use jiff::Timestamp;
use store::{At, Delete, ExpectedKeyState, Item, Key, ListRequest, Prefix, Put, WriteError};

use super::DEFINITIONS;
use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

/// The audit annotation with the reason for the deletion of an unserved object.
const REASON_ANNOTATION: &str = "leftover.apiextensions.portcullis.io/reason";

const PAGE_ITEMS_MAX: Option<NonZeroUsize> = NonZeroUsize::new(500);

/// The prefix of the keys of a definition's objects.
pub(super) fn crd_objects_prefix(
    server: &ServerState,
    definition: &CustomResourceDefinition,
) -> Option<Prefix> {
    let text = api_resources::definition_key_prefix(&server.store_key_prefix, definition)?;
    Prefix::new(&text).ok()
}

/// Deletes the objects of earlier definitions of the name, before this definition is served for the first
/// time.
///
/// An object belongs to an earlier definition exactly if it was created at an earlier revision than this
/// definition. The status of the definition is not considered, since clients can write it.
pub(super) async fn delete_objects_of_earlier_crds(
    server: &ServerState,
    definition: &CustomResourceDefinition,
) -> Result<(), Status> {
    let Some(prefix) = crd_objects_prefix(server, definition) else { return Ok(()) };
    let Some(key) = crd_key(server, &definition.name) else { return Ok(()) };
    let got = server
        .store
        .get(&key, At::Newest)
        .await
        .map_err(|error| store_read_error_status(&error))?;
    let Some(entry) = got.entry else { return Ok(()) };
    let mut n_removed = 0_usize;
    let mut from = Bound::Unbounded;
    loop {
        let request = ListRequest { from, items_max: PAGE_ITEMS_MAX, ..ListRequest::default() };
        let page = server
            .store
            .list(&prefix, request)
            .await
            .map_err(|error| store_read_error_status(&error))?;
        let Some(last) = page.items.last().map(|item| item.key.clone()) else { break };
        for item in page.items.iter().filter(|item| item.entry.create_rev < entry.create_rev) {
            delete_unserved_object_and_audit(
                server,
                definition,
                item,
                "it is of an earlier definition",
            )
            .await?;
            n_removed += 1;
        }
        if page.n_remaining_items == 0 {
            break;
        }
        from = Bound::Excluded(last);
    }
    if n_removed > 0 {
        let fields: [LogField<'_>; 2] = [("name", &definition.name), ("count", &n_removed)];
        server.log.warn("objects of an earlier definition were removed", &fields);
    }
    Ok(())
}

/// Deletes an unserved object. An object with finalizers is only marked as terminating; its finalizers can
/// be removed when the definition serves a version again.
pub(super) async fn delete_or_mark_unserved_object(
    server: &ServerState,
    definition: &CustomResourceDefinition,
    item: &Item,
) -> Result<(), Status> {
    let tree: Option<Tree> = codec::decode_stored_object(&item.entry.value).ok();
    let Some(mut tree) = tree.filter(|tree| !api_object::finalizers(tree).is_empty()) else {
        let why = "its definition goes and serves it nowhere";
        return delete_unserved_object_and_audit(server, definition, item, why).await;
    };
    let finalizers: Vec<String> =
        api_object::finalizers(&tree).into_iter().map(str::to_owned).collect();
    if !api_object::mark_for_deletion(
        &mut tree,
        &finalizers,
        &api_object::format_rfc3339(Timestamp::now()),
    ) {
        return Ok(());
    }
    let put = Put {
        key: item.key.clone(),
        value: codec::encode_stored_object(&tree).into(),
        expected_state: ExpectedKeyState::At(item.entry.mod_rev),
        ttl: None,
        key_group_revision_action: None,
    };
    server
        .store
        .put(put)
        .await
        .map(drop)
        .map_err(|error| store_write_error_status(&item.key, &error))
}

/// Deletes an object from the store and records the reason in the audit log. No hook is called, because the
/// API has no such object.
async fn delete_unserved_object_and_audit(
    server: &ServerState,
    definition: &CustomResourceDefinition,
    item: &Item,
    why: &str,
) -> Result<(), Status> {
    let expect = ExpectedKeyState::At(item.entry.mod_rev);
    let delete =
        Delete { key: item.key.clone(), expected_state: expect, key_group_revision_action: None };
    server
        .store
        .delete(delete)
        .await
        .map_err(|error| store_write_error_status(&item.key, &error))?;
    let prefix = api_resources::definition_key_prefix(&server.store_key_prefix, definition)
        .unwrap_or_default();
    let names = item.key.strip_prefix(prefix.as_str()).unwrap_or_default();
    let (namespace, name) = names.split_once('/').unwrap_or(("", names));
    let version = definition.storage_version().map_or("", |version| version.name.as_str());
    let resource = (definition.group.as_str(), version, definition.requested_names.plural.as_str());
    let request = ObjectRef::new(resource, namespace, name).to_request_info(Verb::Delete);
    server.audit_loopback_write(&request, REASON_ANNOTATION.to_owned(), why);
    Ok(())
}

/// A conflict becomes 409, after which the definition is reconciled again.
fn store_write_error_status(key: &Key, error: &WriteError) -> Status {
    let (group, _, plural) = DEFINITIONS;
    match error {
        WriteError::Conflict { .. } => {
            let resource = GroupResource::new(group, plural);
            Status::conflict(&resource, key.as_str(), "an object of it has been modified")
        }
        other => Status::internal_error(&other.to_string()),
    }
}

fn store_read_error_status(error: &store::ReadError) -> Status {
    Status::internal_error(&error.to_string())
}

fn crd_key(server: &ServerState, name: &str) -> Option<Key> {
    let (group, version, plural) = DEFINITIONS;
    let cluster = server.snapshot_cache.snapshot();
    let definitions = cluster.resource_registry.resource(group, version, plural)?;
    Key::new(&api_resources::object_key(&server.store_key_prefix, definitions, None, name)?).ok()
}
