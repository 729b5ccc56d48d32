//! Stores an object that has initializers, and lets its creator wait for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api_object::{Status, Tree};
use api_resources::Verb;
use store::{
    Entry, ExpectedKeyState, Key, KeyGroupRevisionAction, Put, Revision, Transaction, WriteError,
};
use tokio::sync::{oneshot, watch};

use super::object_initialization_tracker::{
    ObjectInitializationJob, ObjectInitializationOutcome, ObjectInitializationProgress,
    ObjectToStoreAndTrack,
};
use super::uninitialized_object_counts::{
    CreatingUser, UninitializedLimitExceeded, UninitializedObjectSlot,
};
use super::uninitialized_visibility::ever_had_uninitialized_objects;
use crate::admission::AdmittedObject;
use crate::cluster_ips::ClusterIpChange;
use crate::cluster_snapshot::is_snapshot_key;
use crate::error_status::{
    ObjectInitializationTimeoutCause, UninitializedObject, deleted_during_initialization_status,
    object_initialization_failure_status, object_initialization_timeout_status,
};
use crate::object_ref::ObjectRef;
use crate::rest::{
    CreatePreconditions, RequestContext, VersionedObject, WriteFailure, WriteResult,
    await_write_visible,
};

/// The wait ends this long before the deadline of the request, so that the server can still send the response.
const RESPONSE_TIME: Duration = Duration::from_millis(20);

/// Lets a request wait until an object is initialized.
#[derive(Debug)]
pub(crate) struct ObjectInitializationWait {
    key: Key,
    initialization_progress: watch::Receiver<ObjectInitializationProgress>,
}

/// Stores a new object that has initializers. A task of the server tracks it from then on, even if
/// the request ends.
///
/// INVARIANT: the configuration of such a write is confirmed. A write with initializers matches the
/// configuration, or was exempt, and only a write without matches is assumed.
pub(crate) async fn store_uninitialized_object(
    ctx: &RequestContext<'_>,
    key: Key,
    admitted: AdmittedObject,
    addresses: &ClusterIpChange,
) -> Result<(VersionedObject, ObjectInitializationWait), WriteFailure> {
    let (tree, value) = (
        admitted.object_tree(),
        bytes::Bytes::from(codec::encode_stored_object(admitted.object_tree())),
    );
    let user = ctx.authorization_proof.user();
    let creator = CreatingUser {
        name: authz::user_limit_key(&user.name),
        is_exempt_from_limits: user.is_in_group("system:masters"),
    };
    let waiting = ctx.server.snapshot_cache.uninitialized_object_counts();
    let slot = waiting
        .reserve_uninitialized_slot(
            &ctx.server.initializer_options,
            creator,
            &key,
            api_object::uid(tree),
            value.len(),
        )
        .map_err(uninitialized_limit_exceeded_status)?;
    let slot = Arc::new(slot);
    let (record_key, record) = slot.uninitialized_record.clone();
    let put = Put {
        key: key.clone(),
        value,
        expected_state: ExpectedKeyState::Absent,
        ttl: ctx.ttl(),
        key_group_revision_action: uninitialized_resource_marker(ctx),
    };
    let transaction = addresses.add_ip_reservations_to_transaction(put.into());
    // The record counts the object against the limits, so both are written in one transaction.
    let transaction = transaction.add_put(record_key, record, Some(ExpectedKeyState::Absent));
    let mut preconditions = CreatePreconditions::check_namespace_and_crd(ctx, &admitted).await?;
    loop {
        let transaction = preconditions.add_preconditions_to_transaction(transaction.clone());
        let (written, progress) =
            enqueue_and_wait_until_stored(ctx, transaction, &admitted, &slot).await?;
        if let Some(written) =
            preconditions.recheck_changed_precondition(ctx, written, &admitted)?
        {
            let is_snapshot_key = is_snapshot_key(&ctx.server.store_key_prefix, &key);
            let revision = await_write_visible(ctx, written, "create", is_snapshot_key).await?;
            let shown =
                VersionedObject { object_tree: admitted.into_tree(), revision: Some(revision) };
            return Ok((
                shown,
                ObjectInitializationWait { key, initialization_progress: progress },
            ));
        }
    }
}

/// Hands a new object over to the task that stores and tracks it, and waits until it is stored.
async fn enqueue_and_wait_until_stored(
    ctx: &RequestContext<'_>,
    transaction: Transaction,
    admitted: &AdmittedObject,
    slot: &Arc<UninitializedObjectSlot>,
) -> Result<
    (Result<Revision, WriteError>, watch::Receiver<ObjectInitializationProgress>),
    WriteFailure,
> {
    let tree = admitted.object_tree();
    let (sender, written) = oneshot::channel();
    let (progress, receiver) = watch::channel(ObjectInitializationProgress::default());
    let pending = ObjectToStoreAndTrack {
        transaction,
        initializers_origin: admitted.initializers_origin(),
        audit_request_info: ObjectRef::for_resource(
            ctx.resource,
            ctx.namespace,
            api_object::name(tree),
        )
        .to_request_info(Verb::Update),
        object_tree: tree.clone(),
        store_result_sender: sender,
        initialization_progress: progress,
        uninitialized_slot: Arc::clone(slot),
    };
    ctx.write_begun_flag.mark_write_begun();
    let storing = async {
        ctx.server
            .object_initialization_tracker
            .enqueue_initialization_job(ObjectInitializationJob::Track(Box::new(pending)))
            .await;
        written.await
    };
    match ctx.time_store_request("create", storing).await {
        Ok(written) => Ok((written, receiver)),
        Err(_) => {
            let status = Status::service_unavailable("apiserver is shutting down");
            Err(WriteFailure::OutcomeUnknown(status))
        }
    }
}

/// The key that marks the resource as one with uninitialized objects, unless it exists. It is never deleted.
fn uninitialized_resource_marker(ctx: &RequestContext<'_>) -> Option<KeyGroupRevisionAction> {
    if ever_had_uninitialized_objects(&ctx.server.snapshot_cache.snapshot(), ctx.resource) {
        return None;
    }
    Some(KeyGroupRevisionAction::Bump {
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
    let WriteResult { object: created, code, object_initialization_wait: Some(mut wait) } = written
    else {
        return Ok(written);
    };
    let begun = Instant::now();
    let limit = ctx.deadline.checked_sub(RESPONSE_TIME).unwrap_or(ctx.deadline);
    let concluded =
        wait.initialization_progress.wait_for(|progress| progress.initialization_outcome.is_some());
    let concluded = tokio::time::timeout_at(limit, concluded).await;
    let concluded =
        concluded.map(|progress| progress.map(|progress| progress.initialization_outcome.clone()));
    ctx.server.admission_metrics.record_initializer_wait(begun.elapsed());
    let (outcome, entry) = match concluded {
        Ok(Ok(Some(concluded))) => concluded,
        Ok(Ok(None) | Err(_)) => {
            return Err(initialization_outcome_unknown_status(
                ctx,
                &wait,
                created,
                ObjectInitializationTimeoutCause::WatchLost,
            ));
        }
        Err(_) => {
            return Err(initialization_outcome_unknown_status(
                ctx,
                &wait,
                created,
                ObjectInitializationTimeoutCause::Deadline,
            ));
        }
    };
    let tree = ctx.decode_entry(&entry)?;
    match outcome {
        ObjectInitializationOutcome::Initialized => {
            if is_snapshot_key(&ctx.server.store_key_prefix, &wait.key) {
                ctx.server.snapshot_cache.wait_for_revision(entry.mod_rev).await;
            }
            let object = VersionedObject { object_tree: tree, revision: Some(entry.mod_rev) };
            Ok(WriteResult { object, code, object_initialization_wait: None })
        }
        ObjectInitializationOutcome::Failed => Err(object_initialization_failure_status(&tree)
            .unwrap_or_else(|| deleted_during_initialization_status(&tree))),
        ObjectInitializationOutcome::Deleted => Err(deleted_during_initialization_status(&tree)),
        ObjectInitializationOutcome::StepFailed(idx) => Err(initialization_wait_timeout_status(
            ctx,
            &tree,
            entry.mod_rev,
            ObjectInitializationTimeoutCause::Step(idx),
        )),
        ObjectInitializationOutcome::Lost => Err(initialization_wait_timeout_status(
            ctx,
            &tree,
            entry.mod_rev,
            ObjectInitializationTimeoutCause::WatchLost,
        )),
    }
}

/// The response if the outcome is not known in time, with the newest known state of the object.
fn initialization_outcome_unknown_status(
    ctx: &RequestContext<'_>,
    wait: &ObjectInitializationWait,
    created: VersionedObject,
    cause: ObjectInitializationTimeoutCause,
) -> Status {
    let newest: Option<Entry> = wait.initialization_progress.borrow().entry.clone();
    let newest = newest.and_then(|entry| Some((ctx.decode_entry(&entry).ok()?, entry.mod_rev)));
    let created = || (created.object_tree, created.revision.unwrap_or(Revision::ZERO));
    let (tree, revision) = newest.unwrap_or_else(created);
    initialization_wait_timeout_status(ctx, &tree, revision, cause)
}

fn initialization_wait_timeout_status(
    ctx: &RequestContext<'_>,
    tree: &Tree,
    revision: Revision,
    cause: ObjectInitializationTimeoutCause,
) -> Status {
    let resource = ctx.resource.group_resource();
    let awaited =
        UninitializedObject { resource: &resource, object_tree: tree, revision: revision.as_u64() };
    object_initialization_timeout_status(&awaited, cause)
}

/// The response to a create that would exceed the limit of uninitialized objects.
fn uninitialized_limit_exceeded_status(exceeded: UninitializedLimitExceeded) -> Status {
    let why = match exceeded {
        UninitializedLimitExceeded::Total => {
            "too many objects wait for their initializers, please try again later"
        }
        UninitializedLimitExceeded::User => {
            "too many of your objects wait for their initializers, please try again later"
        }
    };
    Status::too_many_requests(why, 1)
}
