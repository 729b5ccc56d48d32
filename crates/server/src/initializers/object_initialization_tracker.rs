//! Tracks an object from its creation until it is initialized or deleted.
//!
//! Tasks of the server do this. A client that gives up or disconnects does not stop them, not even while the
//! object is being stored.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use admission::{
    ExpiryAction, InitializerTimers, Initializers, InitializersOrigin, without_initializer,
};
use api_object::Tree;
use authz::RequestInfo;
use metrics::InitializerTimeoutAction;
use store::{At, Change, Entry, Event, Key, Revision, Transaction, WriteError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::failed_initialization_deletion::{
    FailedInitializationDeletion, retry_delete_after_failed_initialization,
};
use super::object_watchers::ObjectWatcher;
use super::uninitialized_object_counts::UninitializedObjectSlot;
use crate::server_state::ServerState;

/// The maximum number of jobs in the queue. The limits of [`super::uninitialized_object_counts`] bound the number of
/// tracked objects.
const JOBS_MAX: usize = 1_000;

/// How long an expired timer waits for a confirmed configuration.
const CONFIRM_TIME_MAX: Duration = Duration::from_secs(1);

/// The queue of jobs for the tracking tasks.
#[derive(Debug)]
pub(crate) struct ObjectInitializationTracker {
    initialization_job_sender: mpsc::Sender<ObjectInitializationJob>,
}

/// A job that continues when the request that began it ends.
#[derive(Debug)]
pub(crate) enum ObjectInitializationJob {
    /// Stores an object and tracks it.
    Track(Box<ObjectToStoreAndTrack>),
    /// Deletes an object that an initializer marked as failed.
    DeleteFailed(Box<FailedInitializationDeletion>),
}

/// An object that is about to be stored.
#[derive(Debug)]
pub(crate) struct ObjectToStoreAndTrack {
    pub(super) transaction: Transaction,
    pub(super) object_tree: Tree,
    pub(super) initializers_origin: InitializersOrigin,
    /// The request in the audit events of the server's own writes to the object.
    pub(super) audit_request_info: RequestInfo,
    /// Receives the result of storing the object.
    pub(super) store_result_sender: oneshot::Sender<Result<Revision, WriteError>>,
    pub(super) initialization_progress: watch::Sender<ObjectInitializationProgress>,
    pub(super) uninitialized_slot: Arc<UninitializedObjectSlot>,
}

/// The progress of the initialization, which the request that created the object waits for.
#[derive(Debug, Clone, Default)]
pub(super) struct ObjectInitializationProgress {
    /// The newest known state; `None` if that is the state that the creator stored.
    pub(super) entry: Option<Entry>,
    /// The outcome for the creator, with the state that led to it. It does not change.
    pub(super) initialization_outcome: Option<(ObjectInitializationOutcome, Entry)>,
}

/// The outcome of an initialization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectInitializationOutcome {
    /// All initializers have acted.
    Initialized,
    /// An initializer marked the object as failed.
    Failed,
    /// The object was deleted.
    Deleted,
    /// The initializer at this index did not act in time and must not be skipped.
    StepFailed(usize),
    /// The outcome is unknown, because the server cannot read or decode the object.
    Lost,
}

impl ObjectInitializationTracker {
    /// Creates a queue; the receiver is for [`run_object_initialization_jobs`].
    pub(crate) fn new() -> (Self, mpsc::Receiver<ObjectInitializationJob>) {
        let (jobs, receiver) = mpsc::channel(JOBS_MAX);
        (Self { initialization_job_sender: jobs }, receiver)
    }

    /// Queues a job. It is dropped if the server stops.
    pub(super) async fn enqueue_initialization_job(&self, job: ObjectInitializationJob) {
        let _ = self.initialization_job_sender.send(job).await;
    }
}

/// Runs jobs until it is dropped, which ends them all.
pub(crate) async fn run_object_initialization_jobs(
    server: Arc<ServerState>,
    mut jobs: mpsc::Receiver<ObjectInitializationJob>,
) {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            job = jobs.recv() => match job {
                Some(ObjectInitializationJob::Track(pending)) => {
                    tasks.spawn(store_and_track_object(Arc::clone(&server), *pending));
                }
                Some(ObjectInitializationJob::DeleteFailed(failed)) => {
                    tasks.spawn(retry_delete_after_failed_initialization(Arc::clone(&server), *failed));
                }
                None => return,
            },
            Some(ended) = tasks.join_next() => if let Err(error) = ended {
                server.log.error("the task that tracks an object has failed", &[("why", &error)]);
            },
        }
    }
}

/// Stores an object and tracks it.
async fn store_and_track_object(server: Arc<ServerState>, pending: ObjectToStoreAndTrack) {
    let ObjectToStoreAndTrack {
        transaction,
        object_tree: tree,
        initializers_origin,
        audit_request_info,
        store_result_sender: written_sender,
        initialization_progress: progress,
        uninitialized_slot: slot,
    } = pending;
    let key = transaction.key().clone();
    let watcher = server.snapshot_cache.object_watchers().watch_object(&key);
    let content = transaction.new_content();
    let value = content.map(|content| content.value.clone()).unwrap_or_default();
    let ttl = content.and_then(|content| content.ttl);
    let outcome = server.store.write(transaction).await;
    let stored_at = server.clock.elapsed();
    let revision = match &outcome {
        Ok(revision) => Some(*revision),
        // The object may exist.
        Err(WriteError::Unavailable(_) | WriteError::DiskFull { .. } | WriteError::Timeout) => {
            Some(Revision::ZERO)
        }
        Err(_) => None,
    };
    // The request may have ended.
    let _ = written_sender.send(outcome);
    let Some(mod_rev) = revision else { return };
    slot.mark_object_stored();
    let timers = InitializerTimers::new(&server.initializer_options, initializers_origin);
    let entry = Entry { value, mod_rev, create_rev: mod_rev };
    let mut tracked = TrackedUninitializedObject {
        server,
        object_watcher: watcher,
        key,
        ttl,
        audit_request_info,
        initialization_progress: progress,
        initializer_timers: timers,
        object_stored_at: stored_at,
        entry,
        object_tree: tree,
    };
    tracked.run().await;
}

/// An object that a task tracks.
struct TrackedUninitializedObject {
    server: Arc<ServerState>,
    object_watcher: ObjectWatcher,
    key: Key,
    ttl: Option<Duration>,
    audit_request_info: RequestInfo,
    initialization_progress: watch::Sender<ObjectInitializationProgress>,
    initializer_timers: InitializerTimers,
    /// The time at which the object was stored, on the server's clock.
    object_stored_at: Duration,
    /// The newest known state, stored and decoded.
    entry: Entry,
    object_tree: Tree,
}

/// Whether the tracking task continues.
type TrackingControlFlow = ControlFlow<()>;

impl TrackedUninitializedObject {
    async fn run(&mut self) {
        let mut flow = match self.entry.mod_rev {
            Revision::ZERO => self.reread_object().await,
            _ => self.report_if_initialization_ended(),
        };
        while flow.is_continue() && !self.initializer_timers.have_timers_ended(self.object_age()) {
            let due = self.object_stored_at.saturating_add(self.initializer_timers.next_due_at());
            flow = tokio::select! {
                () = self.object_watcher.wait_for_watcher_events() => self.wait_for_and_apply_events().await,
                () = self.server.clock.wait_until_elapsed(due) => self.expire_initializers().await,
            };
        }
    }

    /// How old the object is.
    fn object_age(&self) -> Duration {
        self.server.clock.elapsed().saturating_sub(self.object_stored_at)
    }

    async fn wait_for_and_apply_events(&mut self) -> TrackingControlFlow {
        let recent = self.object_watcher.take_watcher_events();
        if recent.has_missed_events {
            self.reread_object().await?;
        }
        recent.store_events.into_iter().try_for_each(|event| self.apply_object_event(event))
    }

    fn apply_object_event(&mut self, event: Event) -> TrackingControlFlow {
        if event.revision <= self.entry.mod_rev {
            return TrackingControlFlow::Continue(());
        }
        match event.change {
            Change::Create(entry) | Change::Update { entry, .. } => {
                self.replace_known_object(entry)
            }
            Change::Delete { prev } => {
                self.entry = prev;
                self.report_initialization_outcome(ObjectInitializationOutcome::Deleted)
            }
        }
    }

    /// Reads the object, and retries until that succeeds.
    async fn reread_object(&mut self) -> TrackingControlFlow {
        loop {
            match self.server.store.get(&self.key, At::Newest).await.map(|got| got.entry) {
                Ok(None) => {
                    return self
                        .report_initialization_outcome(ObjectInitializationOutcome::Deleted);
                }
                Ok(Some(entry)) if entry.mod_rev > self.entry.mod_rev => {
                    return self.replace_known_object(entry);
                }
                Ok(Some(_)) => return TrackingControlFlow::Continue(()),
                Err(error) => {
                    self.server.log.warn(
                        "an object that waits for initializers cannot be read",
                        &[("key", &self.key), ("why", &error)],
                    );
                    let _ = self.report_initialization_outcome(ObjectInitializationOutcome::Lost);
                }
            }
            let again =
                self.server.clock.elapsed().saturating_add(
                    self.server.initializer_options.stale_configuration_retry_interval,
                );
            self.server.clock.wait_until_elapsed(again).await;
            if self.initializer_timers.have_timers_ended(self.object_age()) {
                return TrackingControlFlow::Break(());
            }
        }
    }

    /// Replaces the known state of the object. An object that cannot be decoded is no longer tracked.
    fn replace_known_object(&mut self, entry: Entry) -> TrackingControlFlow {
        let Ok(tree) = codec::decode_stored_object(&entry.value) else {
            return self.report_initialization_outcome(ObjectInitializationOutcome::Lost);
        };
        if api_object::uid(&tree) != api_object::uid(&self.object_tree) {
            // The object was deleted, and another one with the same name was created.
            return self.report_initialization_outcome(ObjectInitializationOutcome::Deleted);
        }
        (self.entry, self.object_tree) = (entry, tree);
        self.report_if_initialization_ended()
    }

    /// Reports the outcome if the known state of the object is final.
    fn report_if_initialization_ended(&mut self) -> TrackingControlFlow {
        let initializers = Initializers::from_object(&self.object_tree);
        if initializers.failure_written_by_initializer.is_some() {
            return self.report_initialization_outcome(ObjectInitializationOutcome::Failed);
        }
        if initializers.is_empty() {
            return self.report_initialization_outcome(ObjectInitializationOutcome::Initialized);
        }
        self.initializer_timers
            .observe_pending(&initializers.pending_initializers, self.object_age());
        self.initialization_progress
            .send_modify(|progress| progress.entry = Some(self.entry.clone()));
        TrackingControlFlow::Continue(())
    }

    /// Reports the outcome to the creator. The first outcome counts.
    fn report_initialization_outcome(
        &self,
        outcome: ObjectInitializationOutcome,
    ) -> TrackingControlFlow {
        self.initialization_progress.send_modify(|progress| {
            progress.initialization_outcome.get_or_insert((outcome, self.entry.clone()));
        });
        TrackingControlFlow::Break(())
    }

    /// Removes the initializers that have timed out, or fails the initialization, as their failure policies say.
    async fn expire_initializers(&mut self) -> TrackingControlFlow {
        if self.initializer_timers.have_timers_ended(self.object_age()) {
            return TrackingControlFlow::Break(());
        }
        let confirmed = self
            .server
            .confirm_admission_config_current(Instant::now() + CONFIRM_TIME_MAX)
            .await
            .ok();
        let snapshot =
            confirmed.as_ref().map(|confirmed| confirmed.configured_hooks.hook_index.as_ref());
        for expired in
            self.initializer_timers.take_expired_initializers(self.object_age(), snapshot)
        {
            match expired.expiry_action {
                ExpiryAction::Remove => self.remove_initializer(&expired.name).await?,
                ExpiryAction::Fail => {
                    let metrics = &self.server.admission_metrics;
                    metrics
                        .count_initializer_timeout(&expired.name, InitializerTimeoutAction::Failed);
                    let _ = self.report_initialization_outcome(
                        ObjectInitializationOutcome::StepFailed(expired.pending_idx),
                    );
                }
            }
        }
        TrackingControlFlow::Continue(())
    }

    /// Removes an initializer. After a conflict with another writer the new state is evaluated first; the
    /// initializer times out again if it is still pending.
    async fn remove_initializer(&mut self, name: &str) -> TrackingControlFlow {
        let Some(next) = without_initializer(&self.object_tree, name) else {
            return TrackingControlFlow::Continue(());
        };
        match self.server.write_uninitialized_object(&self.key, &self.entry, &next, self.ttl).await
        {
            Ok(entry) => {
                let metrics = &self.server.admission_metrics;
                metrics.count_initializer_timeout(name, InitializerTimeoutAction::Removed);
                self.server.audit_loopback_write(
                    &self.audit_request_info,
                    self.initializer_timers.removal_annotation_key(name),
                    name,
                );
                self.replace_known_object(entry)
            }
            Err(WriteError::Conflict { current: Some(entry) }) => self.replace_known_object(entry),
            Err(WriteError::Conflict { current: None }) => {
                self.report_initialization_outcome(ObjectInitializationOutcome::Deleted)
            }
            Err(error) => {
                self.server.log.warn(
                    "an initializer cannot be removed from an object",
                    &[("key", &self.key), ("why", &error)],
                );
                self.initializer_timers.postpone_removal(name, self.object_age());
                TrackingControlFlow::Continue(())
            }
        }
    }
}
