//! The verb `get`: reads one object.

use api_object::Status;
use store::{At, Entry, Key, ReadError, Revision};

use crate::rest::query::parse_resource_version;
use crate::rest::{RequestContext, VersionedObject};

/// How long a read waits for a revision that the client has seen and this server has not.
const FUTURE_WAIT: std::time::Duration = std::time::Duration::from_secs(3);

/// Reads the authorized object.
pub(crate) async fn get(ctx: &RequestContext<'_>) -> Result<VersionedObject, Status> {
    let (_, entry) = get_stored_entry(ctx).await?;
    ctx.wait_for_turn_if_large(&entry).await;
    Ok(VersionedObject {
        object_tree: ctx.decode_authorized_entry(&entry)?,
        revision: Some(entry.mod_rev),
    })
}

/// Reads the authorized object in its stored form, with its key.
pub(crate) async fn get_stored_entry(ctx: &RequestContext<'_>) -> Result<(Key, Entry), Status> {
    if ctx.query.is_parameter_true("export") {
        return Err(Status::bad_request(
            "the export parameter, deprecated since v1.14, is no longer supported",
        ));
    }
    let at = match ctx.query.parameter_or_empty("resourceVersion") {
        "" => At::Newest,
        text => {
            let revision = parse_resource_version(text)?;
            Box::pin(wait_for_store_revision(ctx, revision, "get")).await?
        }
    };
    let key = ctx.key(ctx.name)?;
    let got = ctx.time_store_request("get", ctx.server.store.get(&key, at)).await;
    let got = got.map_err(|error| ctx.store_read_error_status("get", &error))?;
    let entry = got.entry.ok_or_else(|| ctx.not_found_status(ctx.name))?;
    Ok((key, entry))
}

/// Waits up to [`FUTURE_WAIT`] until the store has a revision.
///
/// # Errors
/// 504 if the store does not have it by then.
pub(super) async fn wait_for_store_revision(
    ctx: &RequestContext<'_>,
    number: u64,
    verb: &str,
) -> Result<At, Status> {
    let revision = Revision::new(number);
    let waiting = ctx.server.store.wait_for_revision(revision);
    match tokio::time::timeout(FUTURE_WAIT, waiting).await {
        Ok(Ok(_)) => Ok(At::NotOlderThan(revision)),
        Ok(Err(error)) => Err(ctx.store_read_error_status(verb, &error)),
        Err(_) => {
            let current = ctx.server.store.current_rev().await;
            let current = current.map_err(|error| ctx.store_read_error_status(verb, &error))?;
            Err(ctx
                .store_read_error_status(verb, &ReadError::Future { requested: revision, current }))
        }
    }
}

/// Reads the newest version of an object, unless a failed transaction has returned it.
pub(crate) async fn read_newest_entry_unless_known(
    ctx: &RequestContext<'_>,
    key: &Key,
    known: Option<Option<Entry>>,
    verb: &str,
) -> Result<Option<Entry>, Status> {
    if let Some(current) = known {
        return Ok(current);
    }
    let got = ctx.time_store_request("get", ctx.server.store.get(key, At::Newest)).await;
    let entry = got.map_err(|error| ctx.store_read_error_status(verb, &error))?.entry;
    if let Some(entry) = &entry {
        ctx.wait_for_turn_if_large(entry).await;
    }
    Ok(entry)
}
