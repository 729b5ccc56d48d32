//! Reads one object that may be uninitialized.

use admission::{has_pending_initializers, repair_on_read};
use api_object::{Status, Tree};
use store::{Entry, Key, WriteError};

use crate::admission::FreshnessError;
use crate::cluster_snapshot::is_snapshot_key;
use crate::error_status::{UninitializedObject, object_being_initialized_status};
use crate::rest::{RequestContext, VersionedObject, get_stored_entry};

/// The bytes of a resourceVersion in JSON, with its name.
const RESOURCE_VERSION_BYTES: usize = 48;

/// The response to a client that reads an uninitialized object by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UninitializedGetMode {
    /// The uninitialized object itself.
    #[default]
    Object,
    /// 202 with a Status that says that the object will exist.
    Accepted,
}

/// The result of a read.
pub(crate) enum GetResult {
    /// The object as it is stored.
    Object(VersionedObject),
    /// The same as JSON that ends in a line feed, made of the stored bytes without decoding them.
    Json(Vec<u8>),
    /// A Status for an uninitialized object, which says that the object will exist.
    Accepted(Tree),
}

/// Reads one object for a client:
///
/// 1. Read the stored object.
/// 2. If the timeout of an initializer has passed long ago, repair the object by one step.
/// 3. Return the object, or a Status if it is uninitialized and the client did not ask for that.
///
/// If `accepts_json`, an object whose version was read and checked before is not decoded again.
pub(crate) async fn get_with_initializer_repair(
    ctx: &RequestContext<'_>,
    accepts_json: bool,
) -> Result<GetResult, Status> {
    let includes_uninitialized = ctx.query.includes_uninitialized()?;
    let (key, entry) = get_stored_entry(ctx).await?;
    if accepts_json && let Some(json) = splice_json_of_checked_revision(ctx, &key, &entry)? {
        return Ok(GetResult::Json(json));
    }
    let entry = match super::is_stored_uninitialized(&entry.value) {
        true => Box::pin(repair_if_initializer_late(ctx, key, entry)).await?,
        false => entry,
    };
    build_get_result(ctx, &entry, includes_uninitialized)
}

/// The JSON of a stored object that all clients see, if an earlier read decoded this version and found that it is
/// the object of its key. The first read of a version checks it.
fn splice_json_of_checked_revision(
    ctx: &RequestContext<'_>,
    key: &Key,
    entry: &Entry,
) -> Result<Option<Vec<u8>>, Status> {
    // Objects of custom resources may be stored in another version.
    if ctx.resource.is_custom_resource() || super::is_stored_uninitialized(&entry.value) {
        return Ok(None);
    }
    let versions = &ctx.server.decodable_object_cache;
    if !versions.is_object_revision_checked(key, entry.mod_rev) {
        ctx.decode_authorized_entry(entry)?;
        versions.remember_checked_object_revision(key, entry.mod_rev);
    }
    let mut json = Vec::with_capacity(entry.value.len() + RESOURCE_VERSION_BYTES);
    let type_meta = codec::IncludeTypeMeta::Keep;
    let spliced =
        codec::splice_resource_version(&entry.value, entry.mod_rev.as_u64(), type_meta, &mut json);
    json.push(b'\n');
    Ok(spliced.is_ok().then_some(json))
}

fn build_get_result(
    ctx: &RequestContext<'_>,
    entry: &Entry,
    includes_uninitialized: bool,
) -> Result<GetResult, Status> {
    let tree = ctx.decode_authorized_entry(entry)?;
    let is_shown = includes_uninitialized
        || ctx.server.uninitialized_get_mode == UninitializedGetMode::Object
        || !ctx.server.initializer_options.are_initializers_enabled
        || !has_pending_initializers(&tree);
    if is_shown {
        return Ok(GetResult::Object(VersionedObject {
            object_tree: tree,
            revision: Some(entry.mod_rev),
        }));
    }
    let resource = ctx.resource.group_resource();
    let revision = entry.mod_rev.as_u64();
    let status = object_being_initialized_status(&UninitializedObject {
        resource: &resource,
        object_tree: &tree,
        revision,
    });
    let status = serde_json::to_value(&status).ok();
    Ok(GetResult::Accepted(status.and_then(|own| own.as_object().cloned()).unwrap_or_default()))
}

/// Repairs an uninitialized object if the timeout of an initializer has passed long ago, and returns the stored object
/// after that. The read succeeds even if the repair fails.
async fn repair_if_initializer_late(
    ctx: &RequestContext<'_>,
    key: Key,
    entry: Entry,
) -> Result<Entry, Status> {
    // A task of this server tracks the object.
    if ctx.server.snapshot_cache.object_watchers().is_key_watched(&key) {
        return Ok(entry);
    }
    let Ok(tree) = codec::decode_stored_object(&entry.value) else { return Ok(entry) };
    let (options, now) = (&ctx.server.initializer_options, ctx.server.clock.wall_time());
    // The local snapshot shows for most objects that no repair is due, without a read of the store.
    let cluster = ctx.server.snapshot_cache.snapshot();
    if repair_on_read(options, &tree, now, Some(&cluster.configured_hooks.hook_index)).is_none() {
        return Ok(entry);
    }
    let confirmed = match ctx.server.confirm_admission_config_current(ctx.deadline).await {
        Ok(confirmed) => Some(confirmed),
        // A reader must not be able to choose an old configuration with a short deadline.
        Err(FreshnessError::DeadlineExceeded) => return Ok(entry),
        Err(_) => None,
    };
    let snapshot =
        confirmed.as_ref().map(|confirmed| confirmed.configured_hooks.hook_index.as_ref());
    let Some(repair) = repair_on_read(options, &tree, now, snapshot) else { return Ok(entry) };
    match ctx
        .server
        .write_uninitialized_object(&key, &entry, &repair.repaired_object, ctx.ttl())
        .await
    {
        Ok(entry) => {
            ctx.server.admission_metrics.count_read_repair(&repair.initializer_name);
            if is_snapshot_key(&ctx.server.store_key_prefix, &key) {
                ctx.server.snapshot_cache.wait_for_revision(entry.mod_rev).await;
            }
            Ok(entry)
        }
        // Another writer was faster.
        Err(WriteError::Conflict { current: Some(entry) }) => Ok(entry),
        Err(WriteError::Conflict { current: None }) => Err(ctx.not_found_status(ctx.name)),
        Err(error) => {
            ctx.server.log.warn("an object cannot be repaired", &[("key", &key), ("why", &error)]);
            Ok(entry)
        }
    }
}
