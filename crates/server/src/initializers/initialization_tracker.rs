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
use metrics::TimeoutAction;
use store::{At, Change, Entry, Event, Key, Revision, Transaction, WriteError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::failed_objects::{FailedInitialization, delete_failed_until_gone};
use super::object_watchers::ObjectWatcher;
use super::waiting_objects::WaitingSlot;
use crate::server_state::ServerState;

/// The most jobs in the queue. The limits of [`super::waiting_objects`] bound the number of tracked objects.
const JOBS_MAX: usize = 1_000;

/// How long an expired timer waits for a confirmed configuration.
const CONFIRM_TIME_MAX: Duration = Duration::from_secs(1);

/// The queue of jobs for the tracking tasks.
#[derive(Debug)]
pub(crate) struct InitializationTracker {
    job_sender: mpsc::Sender<InitializationJob>,
}

/// A job that continues when the request that began it ends.
#[derive(Debug)]
pub(crate) enum InitializationJob {
    /// Stores an object and tracks it.
    Track(Box<PendingObject>),
    /// Deletes an object that an initializer marked as failed.
    DeleteFailed(Box<FailedInitialization>),
}

/// An object that is about to be stored.
#[derive(Debug)]
pub(crate) struct PendingObject {
    pub(super) transaction: Transaction,
    pub(super) tree: Tree,
    pub(super) initializers_origin: InitializersOrigin,
    /// The request in the audit events of the server's own writes to the object.
    pub(super) audit_request: RequestInfo,
    /// Receives the result of storing the object.
    pub(super) written_sender: oneshot::Sender<Result<Revision, WriteError>>,
    pub(super) progress: watch::Sender<InitializationProgress>,
    pub(super) slot: Arc<WaitingSlot>,
}

/// The progress of the initialization, for the creator of the object.
#[derive(Debug, Clone, Default)]
pub(super) struct InitializationProgress {
    /// The newest known state; `None` if that is the state that the creator stored.
    pub(super) entry: Option<Entry>,
    /// The outcome for the creator, with the state that led to it. It does not change.
    pub(super) outcome: Option<(InitializationOutcome, Entry)>,
}

/// The outcome of an initialization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InitializationOutcome {
    /// All initializers have acted.
    Initialized,
    /// An initializer marked the object as failed.
    Failed,
    /// The object was deleted.
    Deleted,
    /// The initializer at this index did not act in time and must not be skipped.
    StepFailed(usize),
    /// The server lost track of the object.
    Lost,
}

impl InitializationTracker {
    /// Creates a queue; the receiver is for [`run_initialization_jobs`].
    pub(crate) fn new() -> (Self, mpsc::Receiver<InitializationJob>) {
        let (jobs, receiver) = mpsc::channel(JOBS_MAX);
        (Self { job_sender: jobs }, receiver)
    }

    /// Queues a job. It is dropped if the server stops.
    pub(super) async fn enqueue(&self, job: InitializationJob) {
        let _ = self.job_sender.send(job).await;
    }
}

/// Runs jobs until it is dropped, which ends them all.
pub(crate) async fn run_initialization_jobs(
    server: Arc<ServerState>,
    mut jobs: mpsc::Receiver<InitializationJob>,
) {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            job = jobs.recv() => match job {
                Some(InitializationJob::Track(pending)) => {
                    tasks.spawn(store_and_track_object(Arc::clone(&server), *pending));
                }
                Some(InitializationJob::DeleteFailed(failed)) => {
                    tasks.spawn(delete_failed_until_gone(Arc::clone(&server), *failed));
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
async fn store_and_track_object(server: Arc<ServerState>, pending: PendingObject) {
    let PendingObject {
        transaction,
        tree,
        initializers_origin,
        audit_request,
        written_sender,
        progress,
        slot,
    } = pending;
    let key = transaction.key().clone();
    let watcher = server.snapshot_cache.object_watchers().watch(&key);
    let content = transaction.content();
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
    slot.mark_stored();
    let timers = InitializerTimers::new(&server.initializer_options, initializers_origin);
    let entry = Entry { value, mod_rev, create_rev: mod_rev };
    let mut tracked = TrackedObject {
        server,
        watcher,
        key,
        ttl,
        audit_request,
        progress,
        timers,
        stored_at,
        entry,
        tree,
    };
    tracked.run().await;
}

/// An object that a task tracks.
struct TrackedObject {
    server: Arc<ServerState>,
    watcher: ObjectWatcher,
    key: Key,
    ttl: Option<Duration>,
    audit_request: RequestInfo,
    progress: watch::Sender<InitializationProgress>,
    timers: InitializerTimers,
    /// When it was stored.
    stored_at: Duration,
    /// The newest known state, stored and decoded.
    entry: Entry,
    tree: Tree,
}

/// Whether the task goes on.
type TrackingFlow = ControlFlow<()>;

impl TrackedObject {
    async fn run(&mut self) {
        let mut flow = match self.entry.mod_rev {
            Revision::ZERO => self.read_again().await,
            _ => self.report_if_finished(),
        };
        while flow.is_continue() && !self.timers.have_timers_ended(self.object_age()) {
            let due = self.stored_at.saturating_add(self.timers.next_due_at());
            flow = tokio::select! {
                () = self.watcher.wait_for_events() => self.apply_watched_events().await,
                () = self.server.clock.wait_until(due) => self.expire_initializers().await,
            };
        }
    }

    /// How old the object is.
    fn object_age(&self) -> Duration {
        self.server.clock.elapsed().saturating_sub(self.stored_at)
    }

    async fn apply_watched_events(&mut self) -> TrackingFlow {
        let recent = self.watcher.take_events();
        if recent.has_missed_events {
            self.read_again().await?;
        }
        recent.events.into_iter().try_for_each(|event| self.apply_event(event))
    }

    fn apply_event(&mut self, event: Event) -> TrackingFlow {
        if event.revision <= self.entry.mod_rev {
            return TrackingFlow::Continue(());
        }
        match event.change {
            Change::Create(entry) | Change::Update { entry, .. } => self.replace_state(entry),
            Change::Delete { prev } => {
                self.entry = prev;
                self.report_outcome(InitializationOutcome::Deleted)
            }
        }
    }

    /// Reads the object, and retries until that succeeds.
    async fn read_again(&mut self) -> TrackingFlow {
        loop {
            match self.server.store.get(&self.key, At::Newest).await.map(|got| got.entry) {
                Ok(None) => return self.report_outcome(InitializationOutcome::Deleted),
                Ok(Some(entry)) if entry.mod_rev > self.entry.mod_rev => {
                    return self.replace_state(entry);
                }
                Ok(Some(_)) => return TrackingFlow::Continue(()),
                Err(error) => {
                    self.server.log.warn(
                        "an object that waits for initializers can not be read",
                        &[("key", &self.key), ("why", &error)],
                    );
                    let _ = self.report_outcome(InitializationOutcome::Lost);
                }
            }
            let again = self
                .server
                .clock
                .elapsed()
                .saturating_add(self.server.initializer_options.stale_retry_interval);
            self.server.clock.wait_until(again).await;
            if self.timers.have_timers_ended(self.object_age()) {
                return TrackingFlow::Break(());
            }
        }
    }

    /// Replaces the known state of the object. An object that can not be decoded is no longer tracked.
    fn replace_state(&mut self, entry: Entry) -> TrackingFlow {
        let Ok(tree) = codec::decode_stored_object(&entry.value) else {
            return self.report_outcome(InitializationOutcome::Lost);
        };
        if api_object::uid(&tree) != api_object::uid(&self.tree) {
            // The object was deleted and another one of its name was created.
            return self.report_outcome(InitializationOutcome::Deleted);
        }
        (self.entry, self.tree) = (entry, tree);
        self.report_if_finished()
    }

    /// Ends the initialization if the known state says so.
    fn report_if_finished(&mut self) -> TrackingFlow {
        let initializers = Initializers::from_object(&self.tree);
        if initializers.failure_status.is_some() {
            return self.report_outcome(InitializationOutcome::Failed);
        }
        if initializers.is_empty() {
            return self.report_outcome(InitializationOutcome::Initialized);
        }
        self.timers.observe_pending(&initializers.pending_initializers, self.object_age());
        self.progress.send_modify(|progress| progress.entry = Some(self.entry.clone()));
        TrackingFlow::Continue(())
    }

    /// Reports the outcome to the creator. The first outcome counts.
    fn report_outcome(&self, outcome: InitializationOutcome) -> TrackingFlow {
        self.progress.send_modify(|progress| {
            progress.outcome.get_or_insert((outcome, self.entry.clone()));
        });
        TrackingFlow::Break(())
    }

    /// Removes or fails the initializers whose time is up.
    async fn expire_initializers(&mut self) -> TrackingFlow {
        if self.timers.have_timers_ended(self.object_age()) {
            return TrackingFlow::Break(());
        }
        let confirmed = self.server.confirm_current(Instant::now() + CONFIRM_TIME_MAX).await.ok();
        let snapshot = confirmed.as_ref().map(|confirmed| confirmed.hooks.snapshot.as_ref());
        for expired in self.timers.take_expired_initializers(self.object_age(), snapshot) {
            match expired.expiry_action {
                ExpiryAction::Remove => self.remove_initializer(&expired.name).await?,
                ExpiryAction::Fail => {
                    let metrics = &self.server.admission_metrics;
                    metrics.count_initializer_timeout(&expired.name, TimeoutAction::Failed);
                    let _ =
                        self.report_outcome(InitializationOutcome::StepFailed(expired.pending_idx));
                }
            }
        }
        TrackingFlow::Continue(())
    }

    /// Removes an initializer. If another writer was faster, its state is evaluated first; the initializer is
    /// due again if it is still there.
    async fn remove_initializer(&mut self, name: &str) -> TrackingFlow {
        let Some(next) = without_initializer(&self.tree, name) else {
            return TrackingFlow::Continue(());
        };
        match self.server.write_waiting_object(&self.key, &self.entry, &next, self.ttl).await {
            Ok(entry) => {
                let metrics = &self.server.admission_metrics;
                metrics.count_initializer_timeout(name, TimeoutAction::Removed);
                self.server.audit_loopback_write(
                    &self.audit_request,
                    self.timers.removal_annotation_key(name),
                    name,
                );
                self.replace_state(entry)
            }
            Err(WriteError::Conflict { current: Some(entry) }) => self.replace_state(entry),
            Err(WriteError::Conflict { current: None }) => {
                self.report_outcome(InitializationOutcome::Deleted)
            }
            Err(error) => {
                self.server.log.warn(
                    "an initializer can not be removed from an object",
                    &[("key", &self.key), ("why", &error)],
                );
                self.timers.postpone_removal(name, self.object_age());
                TrackingFlow::Continue(())
            }
        }
    }
}
