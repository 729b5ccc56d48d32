//! Sweeps abandoned objects: those that wait for initializers while no server tracks them, because their server
//! is gone.
//!
//! 1. At start, and at intervals, delete objects that an initializer marked as failed, in case the server
//!    that should have done that died.
//! 2. Delete the records of objects that no longer wait or were never stored.

use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use api_resources::Verb;
use store::{At, Delete, ExpectedKeyState, Key, ListRequest, Prefix, ReadError, WriteError};

use super::failed_initialization_deletion::FailedInitializationDeletion;
use super::object_initialization_tracker::ObjectInitializationJob;
use super::uninitialized_object_counts::{
    AbandonedInitializationCandidate, UninitializedObjectState,
};
use super::uninitialized_visibility::is_stored_uninitialized;
use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

/// The interval of sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// Other servers act on an object only this long after its own server should have acted. It is longer than a
/// request may take.
const OWNER_GRACE_PERIOD: Duration = Duration::from_secs(90);
/// The delay before a failed read of the store is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The number of objects of one read.
const PAGE_ITEMS: usize = 500;

/// Why the check of one object failed.
#[derive(Debug, thiserror::Error)]
enum AbandonedInitializationSweepError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Sweeps until the task is dropped.
pub(crate) async fn sweep_abandoned_initializations(server: Arc<ServerState>) {
    while let Err(error) = count_unrecorded_uninitialized_objects(&server).await {
        server.log.warn("objects that wait for initializers cannot be read", &[("why", &error)]);
        tokio::time::sleep(RETRY_DELAY).await;
    }
    // Objects that failed before this start have no server that deletes them. The first pass reads the
    // objects in the state Unread; the second deletes those that it found to have failed.
    sweep_abandoned_initializations_once(&server, true, Duration::ZERO).await;
    sweep_abandoned_initializations_once(&server, true, Duration::ZERO).await;
    let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
    loop {
        let with_objects = tokio::select! {
            _ = ticks.tick() => true,
            () = server.snapshot_cache.uninitialized_object_counts().wait_for_deletable_uninitialized_record() => false,
        };
        sweep_abandoned_initializations_once(&server, with_objects, OWNER_GRACE_PERIOD).await;
    }
}

/// Counts the waiting objects without a record, which an older version of the server stored.
async fn count_unrecorded_uninitialized_objects(server: &ServerState) -> Result<(), ReadError> {
    let paths = Arc::clone(&server.snapshot_cache.snapshot().paths_with_uninitialized_objects);
    for path in paths.iter() {
        let Ok(prefix) = Prefix::new(&format!("{}/{path}/", server.store_key_prefix)) else {
            continue;
        };
        let mut from = Bound::Unbounded;
        loop {
            let limit = NonZeroUsize::new(PAGE_ITEMS);
            let page = server
                .store
                .list(&prefix, ListRequest { from, items_max: limit, ..ListRequest::default() })
                .await?;
            for item in page.items.iter().filter(|item| is_stored_uninitialized(&item.entry.value))
            {
                server
                    .snapshot_cache
                    .uninitialized_object_counts()
                    .count_unrecorded_uninitialized_object(&item.key, &item.entry.value);
            }
            match page.items.last() {
                Some(last) if page.n_remaining_items > 0 => {
                    from = Bound::Excluded(last.key.clone())
                }
                _ => break,
            }
        }
    }
    Ok(())
}

async fn sweep_abandoned_initializations_once(
    server: &ServerState,
    with_objects: bool,
    grace: Duration,
) {
    for record in server
        .snapshot_cache
        .uninitialized_object_counts()
        .abandoned_initialization_candidates(with_objects)
    {
        let outcome = match record.uninitialized_object_state {
            UninitializedObjectState::NotCounted => {
                delete_uninitialized_record(server, &record).await
            }
            UninitializedObjectState::Creating
            | UninitializedObjectState::Unread
            | UninitializedObjectState::Waiting
            | UninitializedObjectState::Failed => {
                sweep_abandoned_initialization(server, &record, grace).await
            }
        };
        if let Err(why) = outcome {
            let why = format!("{why}, it is tried again");
            server.log.warn(
                "an object that waits for initializers cannot be checked",
                &[("key", &record.key), ("why", &why)],
            );
        }
    }
}

async fn sweep_abandoned_initialization(
    server: &ServerState,
    record: &AbandonedInitializationCandidate,
    grace: Duration,
) -> Result<(), AbandonedInitializationSweepError> {
    let waiting = server.snapshot_cache.uninitialized_object_counts();
    let got = server.store.get(&record.key, At::Newest).await?;
    waiting.record_read_object(&record.key, got.entry.as_ref().map(|entry| &entry.value));
    let Some(entry) = got.entry else {
        return stop_counting_missing_object(server, record);
    };
    let Ok(tree) = codec::decode_stored_object(&entry.value) else { return Ok(()) };
    if api_object::uid(&tree) != record.uid {
        return stop_counting_missing_object(server, record);
    }
    if record.uninitialized_object_state == UninitializedObjectState::Failed
        && record.object_state_age >= grace
        && super::has_failed_initialization(&tree)
    {
        let cluster = server.snapshot_cache.snapshot();
        let request = cluster.resource_registry.resources().find_map(|resource| {
            let (namespace, name) = api_resources::namespace_and_name_in_key(
                &server.store_key_prefix,
                resource,
                &record.key,
            )?;
            Some(ObjectRef::for_resource(resource, namespace, name).to_request_info(Verb::Delete))
        });
        let failed = FailedInitializationDeletion::left_by_dead_server(
            record.key.clone(),
            tree,
            entry.mod_rev,
            request,
        );
        server
            .object_initialization_tracker
            .enqueue_initialization_job(ObjectInitializationJob::DeleteFailed(Box::new(failed)))
            .await;
    }
    Ok(())
}

/// Stops counting an object that does not exist, after the grace period: a write with an unknown outcome may
/// still happen.
fn stop_counting_missing_object(
    server: &ServerState,
    record: &AbandonedInitializationCandidate,
) -> Result<(), AbandonedInitializationSweepError> {
    if record.object_state_age >= OWNER_GRACE_PERIOD {
        server
            .snapshot_cache
            .uninitialized_object_counts()
            .stop_counting_uninitialized_object(&record.uid);
    }
    Ok(())
}

async fn delete_uninitialized_record(
    server: &ServerState,
    record: &AbandonedInitializationCandidate,
) -> Result<(), AbandonedInitializationSweepError> {
    let waiting = server.snapshot_cache.uninitialized_object_counts();
    if let Some(key) = waiting.uninitialized_record_key(&record.uid) {
        delete_newest_uninitialized_record(server, &key).await?;
    }
    waiting.remove_counted_object(&record.uid);
    Ok(())
}

async fn delete_newest_uninitialized_record(
    server: &ServerState,
    key: &Key,
) -> Result<(), AbandonedInitializationSweepError> {
    let got = server.store.get(key, At::Newest).await?;
    let Some(entry) = got.entry else { return Ok(()) };
    let delete = Delete {
        key: key.clone(),
        expected_state: ExpectedKeyState::At(entry.mod_rev),
        key_group_revision_action: None,
    };
    match server.store.delete(delete).await {
        // Another server was faster: no server writes a record twice.
        Ok(_) | Err(WriteError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
