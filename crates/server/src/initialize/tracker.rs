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

use super::fail::{FailedObject, delete_until_gone};
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
    jobs: mpsc::Sender<TrackerJob>,
}

/// A job that continues when the request that began it ends.
#[derive(Debug)]
pub(crate) enum TrackerJob {
    /// Stores an object and tracks it.
    Track(Box<PendingObject>),
    /// Deletes an object that an initializer failed.
    DeleteFailed(Box<FailedObject>),
}

/// An object that is about to be stored.
#[derive(Debug)]
pub(crate) struct PendingObject {
    pub(super) transaction: Transaction,
    pub(super) tree: Tree,
    pub(super) origin: InitializersOrigin,
    /// The request in the audit events of the server's own writes to the object.
    pub(super) audit_request: RequestInfo,
    /// Receives the result of storing the object.
    pub(super) written: oneshot::Sender<Result<Revision, WriteError>>,
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
    /// An initializer failed the object.
    Failed,
    /// The object was deleted.
    Deleted,
    /// The initializer at this index did not act in time and must not be skipped.
    StepFailed(usize),
    /// The server lost track of the object.
    Lost,
}

impl InitializationTracker {
    /// Creates a queue; the receiver is for [`run_tracker`].
    pub(crate) fn new() -> (Self, mpsc::Receiver<TrackerJob>) {
        let (jobs, receiver) = mpsc::channel(JOBS_MAX);
        (Self { jobs }, receiver)
    }

    /// Queues a job. It is dropped if the server stops.
    pub(super) async fn begin(&self, job: TrackerJob) {
        let _ = self.jobs.send(job).await;
    }
}

/// Runs jobs until it is dropped, which ends them all.
pub(crate) async fn run_tracker(server: Arc<ServerState>, mut jobs: mpsc::Receiver<TrackerJob>) {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            job = jobs.recv() => match job {
                Some(TrackerJob::Track(pending)) => drop(tasks.spawn(store_and_track_object(Arc::clone(&server), *pending))),
                Some(TrackerJob::DeleteFailed(failed)) => drop(tasks.spawn(delete_until_gone(Arc::clone(&server), *failed))),
                None => return,
            },
            Some(ended) = tasks.join_next() => if let Err(error) = ended {
                server.log.error("an object is no longer followed", &[("why", &error)]);
            },
        }
    }
}

/// Stores an object and tracks it.
async fn store_and_track_object(server: Arc<ServerState>, pending: PendingObject) {
    let PendingObject { transaction, tree, origin, audit_request, written, progress, slot } =
        pending;
    let key = transaction.key().clone();
    let watcher = server.snapshot_cache.object_watchers().watch(&key);
    let content = transaction.content();
    let value = content.map(|content| content.value.clone()).unwrap_or_default();
    let ttl = content.and_then(|content| content.ttl);
    let outcome = server.store.write(transaction).await;
    let begun = server.clock.elapsed();
    let revision = match &outcome {
        Ok(revision) => Some(*revision),
        // The object may exist.
        Err(WriteError::Unavailable(_) | WriteError::Timeout) => Some(Revision::ZERO),
        Err(_) => None,
    };
    // The request may have ended.
    let _ = written.send(outcome);
    let Some(mod_rev) = revision else { return };
    slot.keep();
    let steps = InitializerTimers::new(&server.initialization, origin);
    let entry = Entry { value, mod_rev, create_rev: mod_rev };
    let mut tracked = TrackedObject {
        server,
        watcher,
        key,
        ttl,
        audit_request,
        progress,
        steps,
        begun,
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
    steps: InitializerTimers,
    /// When it was stored.
    begun: Duration,
    /// The newest known state, stored and decoded.
    entry: Entry,
    tree: Tree,
}

/// Whether the task goes on.
type Flow = ControlFlow<()>;

impl TrackedObject {
    async fn run(&mut self) {
        let mut flow = match self.entry.mod_rev {
            Revision::ZERO => self.reread().await,
            _ => self.evaluate(),
        };
        while flow.is_continue() && !self.steps.has_ended(self.now()) {
            let due = self.begun.saturating_add(self.steps.next_due_at());
            flow = tokio::select! {
                () = self.watcher.wait_for_events() => self.catch_up().await,
                () = self.server.clock.sleep_until(due) => self.expire_initializers().await,
            };
        }
    }

    /// How old the object is.
    fn now(&self) -> Duration {
        self.server.clock.elapsed().saturating_sub(self.begun)
    }

    async fn catch_up(&mut self) -> Flow {
        let recent = self.watcher.take_events();
        if recent.has_gap {
            self.reread().await?;
        }
        recent.events.into_iter().try_for_each(|event| self.apply_event(event))
    }

    fn apply_event(&mut self, event: Event) -> Flow {
        if event.revision <= self.entry.mod_rev {
            return Flow::Continue(());
        }
        match event.change {
            Change::Create(entry) | Change::Update { entry, .. } => self.replace_state(entry),
            Change::Delete { prev } => {
                self.entry = prev;
                self.conclude(InitializationOutcome::Deleted)
            }
        }
    }

    /// Reads the object, and retries until that succeeds.
    async fn reread(&mut self) -> Flow {
        loop {
            match self.server.store.get(&self.key, At::Newest).await.map(|got| got.entry) {
                Ok(None) => return self.conclude(InitializationOutcome::Deleted),
                Ok(Some(entry)) if entry.mod_rev > self.entry.mod_rev => {
                    return self.replace_state(entry);
                }
                Ok(Some(_)) => return Flow::Continue(()),
                Err(error) => {
                    self.server.log.warn(
                        "an object can not be followed",
                        &[("key", &self.key), ("why", &error)],
                    );
                    let _ = self.conclude(InitializationOutcome::Lost);
                }
            }
            let again = self
                .server
                .clock
                .elapsed()
                .saturating_add(self.server.initialization.stale_retry_interval);
            self.server.clock.sleep_until(again).await;
            if self.steps.has_ended(self.now()) {
                return Flow::Break(());
            }
        }
    }

    /// Replaces the known state of the object. An object that can not be decoded is no longer tracked.
    fn replace_state(&mut self, entry: Entry) -> Flow {
        let Ok(tree) = codec::decode_stored_object(&entry.value) else {
            return self.conclude(InitializationOutcome::Lost);
        };
        if api_object::uid(&tree) != api_object::uid(&self.tree) {
            // The object was deleted and another one of its name was created.
            return self.conclude(InitializationOutcome::Deleted);
        }
        (self.entry, self.tree) = (entry, tree);
        self.evaluate()
    }

    /// Ends the initialization if the known state says so.
    fn evaluate(&mut self) -> Flow {
        let initializers = Initializers::from_object(&self.tree);
        if initializers.result.is_some() {
            return self.conclude(InitializationOutcome::Failed);
        }
        if initializers.is_empty() {
            return self.conclude(InitializationOutcome::Initialized);
        }
        self.steps.observe_pending(&initializers.pending, self.now());
        self.progress.send_modify(|progress| progress.entry = Some(self.entry.clone()));
        Flow::Continue(())
    }

    /// Reports the outcome to the creator. The first outcome counts.
    fn conclude(&self, outcome: InitializationOutcome) -> Flow {
        self.progress.send_modify(|progress| {
            progress.outcome.get_or_insert((outcome, self.entry.clone()));
        });
        Flow::Break(())
    }

    /// Removes or fails the initializers whose time is up.
    async fn expire_initializers(&mut self) -> Flow {
        if self.steps.has_ended(self.now()) {
            return Flow::Break(());
        }
        let confirmed = self.server.confirm_current(Instant::now() + CONFIRM_TIME_MAX).await.ok();
        let snapshot = confirmed.as_ref().map(|confirmed| confirmed.hooks.snapshot.as_ref());
        for expired in self.steps.take_expired(self.now(), snapshot) {
            match expired.action {
                ExpiryAction::Remove => self.remove_initializer(&expired.name).await?,
                ExpiryAction::Fail => {
                    let metrics = &self.server.admission_metrics;
                    metrics.count_initializer_timeout(&expired.name, TimeoutAction::Failed);
                    let _ = self.conclude(InitializationOutcome::StepFailed(expired.idx));
                }
            }
        }
        Flow::Continue(())
    }

    /// Removes an initializer. If another writer was faster, its state is evaluated first; the initializer is
    /// due again if it is still there.
    async fn remove_initializer(&mut self, name: &str) -> Flow {
        let Some(next) = without_initializer(&self.tree, name) else { return Flow::Continue(()) };
        match self.server.write_waiting_object(&self.key, &self.entry, &next, self.ttl).await {
            Ok(entry) => {
                let metrics = &self.server.admission_metrics;
                metrics.count_initializer_timeout(name, TimeoutAction::Removed);
                self.server.audit_loopback_write(
                    &self.audit_request,
                    self.steps.removal_annotation(name),
                    name,
                );
                self.replace_state(entry)
            }
            Err(WriteError::Conflict { current: Some(entry) }) => self.replace_state(entry),
            Err(WriteError::Conflict { current: None }) => {
                self.conclude(InitializationOutcome::Deleted)
            }
            Err(error) => {
                self.server.log.warn(
                    "an initializer can not be taken out",
                    &[("key", &self.key), ("why", &error)],
                );
                self.steps.retry_later(name, self.now());
                Flow::Continue(())
            }
        }
    }
}
