//! Stores an object that has initializers, and lets its creator wait for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api_object::{Status, Tree};
use api_resources::Verb;
use store::{Entry, Expect, Key, Put, Revision, SharedRevision, Transaction, WriteError};
use tokio::sync::{oneshot, watch};

use super::initialization_tracker::{
    InitializationJob, InitializationOutcome, InitializationProgress, PendingObject,
};
use super::uninitialized_visibility::has_uninitialized_objects;
use super::waiting_objects::{ObjectCreator, WaitingLimitExceeded, WaitingSlot};
use crate::admission::Admitted;
use crate::cluster_ips::ClusterIpChange;
use crate::cluster_snapshot::is_tracked;
use crate::error_status::{
    InitializationTimeoutCause, UninitializedObject, deleted_while_waiting_status,
    initialization_failure_status, initialization_timeout_status,
};
use crate::object_ref::ObjectRef;
use crate::rest::{
    CreatePreconditions, RequestContext, VersionedObject, WriteFailure, WriteResult,
    await_write_visible,
};

/// A wait ends this long before the deadline of its request, so that the response can still be sent.
const RESPONSE_TIME: Duration = Duration::from_millis(20);

/// Lets a request wait until an object is initialized.
#[derive(Debug)]
pub(crate) struct InitializationWait {
    key: Key,
    progress: watch::Receiver<InitializationProgress>,
}

/// Stores a new object that has initializers. A task of the server tracks it from then on, even if
/// the request ends.
///
/// INVARIANT: the configuration of such a write is confirmed. A write with initializers matches the
/// configuration, or was exempt, and only a write without matches is assumed.
pub(crate) async fn store_uninitialized_object(
    ctx: &RequestContext<'_>,
    key: Key,
    admitted: Admitted,
    addresses: &ClusterIpChange,
) -> Result<(VersionedObject, InitializationWait), WriteFailure> {
    let (tree, value) =
        (admitted.tree(), bytes::Bytes::from(codec::encode_stored_object(admitted.tree())));
    let user = ctx.authorized.user();
    let creator = ObjectCreator {
        name: authz::user_limit_key(&user.name),
        is_exempt_from_limits: user.is_in_group("system:masters"),
    };
    let waiting = ctx.server.snapshot_cache.waiting_objects();
    let slot = waiting
        .reserve_waiting_slot(
            &ctx.server.initializer_options,
            creator,
            &key,
            api_object::uid(tree),
            value.len(),
        )
        .map_err(limit_exceeded_status)?;
    let slot = Arc::new(slot);
    let (record_key, record) = slot.record.clone();
    let put = Put {
        key: key.clone(),
        value,
        expect: Expect::Absent,
        ttl: ctx.ttl(),
        shared_revision: uninitialized_shared_revision(ctx),
    };
    let transaction = addresses.add_to_transaction(put.into());
    // The record counts the object against the limits, so both are written in one transaction.
    let transaction = transaction.also_put(record_key, record, Some(Expect::Absent));
    let mut preconditions = CreatePreconditions::check_parents(ctx, &admitted).await?;
    loop {
        let transaction = preconditions.add_to_transaction(transaction.clone());
        let (written, progress) = store_and_track(ctx, transaction, &admitted, &slot).await?;
        if let Some(written) = preconditions.recheck_failed_parent(ctx, written, &admitted)? {
            let is_tracked = is_tracked(&ctx.server.prefix, &key);
            let revision = await_write_visible(ctx, written, "create", is_tracked).await?;
            let shown = VersionedObject { tree: admitted.into_tree(), revision: Some(revision) };
            return Ok((shown, InitializationWait { key, progress }));
        }
    }
}

/// Hands a new object over to the task that stores and tracks it, and waits until it is stored.
async fn store_and_track(
    ctx: &RequestContext<'_>,
    transaction: Transaction,
    admitted: &Admitted,
    slot: &Arc<WaitingSlot>,
) -> Result<(Result<Revision, WriteError>, watch::Receiver<InitializationProgress>), WriteFailure> {
    let tree = admitted.tree();
    let (sender, written) = oneshot::channel();
    let (progress, receiver) = watch::channel(InitializationProgress::default());
    let pending = PendingObject {
        transaction,
        initializers_origin: admitted.initializer_origin(),
        audit_request: ObjectRef::of_resource(ctx.resource, ctx.namespace, api_object::name(tree))
            .to_request(Verb::Update),
        tree: tree.clone(),
        written_sender: sender,
        progress,
        slot: Arc::clone(slot),
    };
    ctx.write_progress.mark_begun();
    let storing = async {
        ctx.server
            .initialization_tracker
            .enqueue(InitializationJob::Track(Box::new(pending)))
            .await;
        written.await
    };
    match ctx.time_store_request("create", storing).await {
        Ok(written) => Ok((written, receiver)),
        Err(_) => {
            let status = Status::unavailable("apiserver is shutting down");
            Err(WriteFailure::OutcomeUnknown(status))
        }
    }
}

/// The key that marks the resource as one with uninitialized objects, unless it exists. It is never deleted.
fn uninitialized_shared_revision(ctx: &RequestContext<'_>) -> Option<SharedRevision> {
    if has_uninitialized_objects(&ctx.server.snapshot_cache.snapshot(), ctx.resource) {
        return None;
    }
    Some(SharedRevision::Bump {
        key: ctx.server.uninitialized_resource_key(ctx.resource)?,
        expect: None,
    })
}

/// Waits until the initializers of a written object have processed it.
///
/// # Errors
/// The failure or deletion of the object, or 504 if neither is known in time.
pub(crate) async fn wait_for_initializers(
    ctx: &RequestContext<'_>,
    written: WriteResult,
) -> Result<WriteResult, Status> {
    let WriteResult { object: created, code, initialization_wait: Some(mut wait) } = written else {
        return Ok(written);
    };
    let begun = Instant::now();
    let limit = ctx.deadline.checked_sub(RESPONSE_TIME).unwrap_or(ctx.deadline);
    let concluded = wait.progress.wait_for(|progress| progress.outcome.is_some());
    let concluded = tokio::time::timeout_at(limit, concluded).await;
    let concluded = concluded.map(|progress| progress.map(|progress| progress.outcome.clone()));
    ctx.server.admission_metrics.record_initializer_wait(begun.elapsed());
    let (outcome, entry) = match concluded {
        Ok(Ok(Some(concluded))) => concluded,
        Ok(Ok(None) | Err(_)) => {
            return Err(unknown_outcome_status(
                ctx,
                &wait,
                created,
                InitializationTimeoutCause::WatchLost,
            ));
        }
        Err(_) => {
            return Err(unknown_outcome_status(
                ctx,
                &wait,
                created,
                InitializationTimeoutCause::Deadline,
            ));
        }
    };
    let tree = ctx.decode_entry(&entry)?;
    match outcome {
        InitializationOutcome::Initialized => {
            if is_tracked(&ctx.server.prefix, &wait.key) {
                ctx.server.snapshot_cache.wait_for_revision(entry.mod_rev).await;
            }
            let object = VersionedObject { tree, revision: Some(entry.mod_rev) };
            Ok(WriteResult { object, code, initialization_wait: None })
        }
        InitializationOutcome::Failed => Err(initialization_failure_status(&tree)
            .unwrap_or_else(|| deleted_while_waiting_status(&tree))),
        InitializationOutcome::Deleted => Err(deleted_while_waiting_status(&tree)),
        InitializationOutcome::StepFailed(idx) => Err(wait_timeout_status(
            ctx,
            &tree,
            entry.mod_rev,
            InitializationTimeoutCause::Step(idx),
        )),
        InitializationOutcome::Lost => Err(wait_timeout_status(
            ctx,
            &tree,
            entry.mod_rev,
            InitializationTimeoutCause::WatchLost,
        )),
    }
}

/// The response if the outcome is not known in time, with the newest known state of the object.
fn unknown_outcome_status(
    ctx: &RequestContext<'_>,
    wait: &InitializationWait,
    created: VersionedObject,
    cause: InitializationTimeoutCause,
) -> Status {
    let newest: Option<Entry> = wait.progress.borrow().entry.clone();
    let newest = newest.and_then(|entry| Some((ctx.decode_entry(&entry).ok()?, entry.mod_rev)));
    let created = || (created.tree, created.revision.unwrap_or(Revision::ZERO));
    let (tree, revision) = newest.unwrap_or_else(created);
    wait_timeout_status(ctx, &tree, revision, cause)
}

fn wait_timeout_status(
    ctx: &RequestContext<'_>,
    tree: &Tree,
    revision: Revision,
    cause: InitializationTimeoutCause,
) -> Status {
    let resource = ctx.resource.group_resource();
    let awaited = UninitializedObject { resource: &resource, tree, revision: revision.number() };
    initialization_timeout_status(&awaited, cause)
}

/// The response to a creator when no further object may wait.
fn limit_exceeded_status(exceeded: WaitingLimitExceeded) -> Status {
    let why = match exceeded {
        WaitingLimitExceeded::Total => {
            "too many objects wait for their initializers, please try again later"
        }
        WaitingLimitExceeded::User => {
            "too many of your objects wait for their initializers, please try again later"
        }
    };
    Status::too_many_requests(why, 1)
}
