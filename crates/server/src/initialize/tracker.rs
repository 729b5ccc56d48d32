//! What follows an object from its creation until it is initialized or gone (admission §6.6).
//!
//! All of it happens in tasks of the server: neither an impatient creator nor one that has hung up stops
//! it, not even while the object is being stored.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use admission::{
    ExpiryAction, InitializerTimers, Initializers, InitializersOrigin, without_initializer,
};
use api_object::Tree;
use authz::RequestInfo;
use metrics::TimeoutAction;
use store::{At, Change, Entry, Event, Key, Revision, Store, Transaction, WriteError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::fail::{Failed, end_failed};
use super::object_watchers::Onlooker;
use super::waiting_objects::Reservation;
use crate::server_state::ServerState;

/// How many jobs may wait to be begun. How many objects are followed is bounded by how many may wait for
/// initializers, see [`super::waiting_objects`].
const JOBS_MAX: usize = 1_000;

/// How long a timer that fires waits for the configuration before it counts as stale.
const STAND_MAX: Duration = Duration::from_secs(1);

/// How the tasks are reached.
#[derive(Debug)]
pub(crate) struct InitializationTracker {
    jobs: mpsc::Sender<Job>,
}

/// Something that goes on whatever becomes of who began it.
#[derive(Debug)]
pub(crate) enum Job {
    /// An object is stored and followed.
    Follow(Box<PendingObject>),
    /// An object that failed goes.
    End(Box<Failed>),
}

/// An object that is about to be stored.
#[derive(Debug)]
pub(crate) struct PendingObject {
    pub(super) transaction: Transaction,
    pub(super) tree: Tree,
    pub(super) origin: InitializersOrigin,
    /// How the server's own writes to it stand in the audit log.
    pub(super) request: RequestInfo,
    /// What became of storing it.
    pub(super) written: oneshot::Sender<Result<Revision, WriteError>>,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) reservation: Arc<Reservation>,
}

/// How far an object is, for its creator.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    /// The newest state that is known; `None` if that is what the creator stored.
    pub(super) entry: Option<Entry>,
    /// What the creator is told, with the state in which that became clear. It does not change.
    pub(super) outcome: Option<(Outcome, Entry)>,
}

/// What becomes of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Everybody has acted.
    Initialized,
    /// Somebody has given up on the object.
    Failed,
    /// The object is gone.
    Deleted,
    /// The entry at this place did not act in time and must not be skipped.
    StepFailed(usize),
    /// Nobody knows what becomes of the object.
    Lost,
}

impl InitializationTracker {
    /// Jobs come out of the receiver, for [`oversee_all`].
    pub(crate) fn new() -> (Self, mpsc::Receiver<Job>) {
        let (jobs, receiver) = mpsc::channel(JOBS_MAX);
        (Self { jobs }, receiver)
    }

    /// Begins a job. It comes to nothing if the server is about to end.
    pub(super) async fn begin(&self, job: Job) {
        let _ = self.jobs.send(job).await;
    }
}

/// Does jobs until it is dropped, which ends them all.
pub(crate) async fn oversee_all<S: Store>(
    server: Arc<ServerState<S>>,
    mut jobs: mpsc::Receiver<Job>,
) {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            job = jobs.recv() => match job {
                Some(Job::Follow(pending)) => drop(tasks.spawn(follow(Arc::clone(&server), *pending))),
                Some(Job::End(failed)) => drop(tasks.spawn(end_failed(Arc::clone(&server), *failed))),
                None => return,
            },
            Some(ended) = tasks.join_next() => if let Err(error) = ended {
                server.log.error("an object is no longer followed", &[("why", &error)]);
            },
        }
    }
}

/// Stores an object and follows it.
async fn follow<S: Store>(server: Arc<ServerState<S>>, pending: PendingObject) {
    let PendingObject { transaction, tree, origin, request, written, progress, reservation } =
        pending;
    let key = transaction.key().clone();
    let onlooker = server.snapshot_cache.object_watchers().follow(&key);
    let content = transaction.content();
    let value = content.map(|content| content.value.clone()).unwrap_or_default();
    let ttl = content.and_then(|content| content.ttl);
    let outcome = server.store.write(transaction).await;
    let begun = server.clock.elapsed();
    let revision = match &outcome {
        Ok(revision) => Some(*revision),
        // It may turn out to be there.
        Err(WriteError::Unavailable(_) | WriteError::Timeout) => Some(Revision::ZERO),
        Err(_) => None,
    };
    // The creator may be gone.
    let _ = written.send(outcome);
    let Some(mod_rev) = revision else { return };
    reservation.keep();
    let steps = InitializerTimers::new(&server.initialization, origin);
    let entry = Entry { value, mod_rev, create_rev: mod_rev };
    let mut case =
        Case { server, onlooker, key, ttl, request, progress, steps, begun, entry, tree };
    case.run().await;
}

/// An object that is followed.
struct Case<S: Store> {
    server: Arc<ServerState<S>>,
    onlooker: Onlooker,
    key: Key,
    ttl: Option<Duration>,
    request: RequestInfo,
    progress: watch::Sender<Progress>,
    steps: InitializerTimers,
    /// When it was stored.
    begun: Duration,
    /// The newest state that is known, and what is in it.
    entry: Entry,
    tree: Tree,
}

/// Whether there is more to come.
type Flow = ControlFlow<()>;

impl<S: Store> Case<S> {
    async fn run(&mut self) {
        let mut flow = match self.entry.mod_rev {
            Revision::ZERO => self.reread().await,
            _ => self.look_at_tree(),
        };
        while flow.is_continue() && !self.steps.has_ended(self.now()) {
            let due = self.begun.saturating_add(self.steps.next_due());
            flow = tokio::select! {
                () = self.onlooker.changed() => self.catch_up().await,
                () = self.server.clock.sleep_until(due) => self.fire().await,
            };
        }
    }

    /// How old the object is.
    fn now(&self) -> Duration {
        self.server.clock.elapsed().saturating_sub(self.begun)
    }

    async fn catch_up(&mut self) -> Flow {
        let seen = self.onlooker.take();
        if seen.has_gap {
            self.reread().await?;
        }
        seen.events.into_iter().try_for_each(|event| self.see(event))
    }

    fn see(&mut self, event: Event) -> Flow {
        if event.revision <= self.entry.mod_rev {
            return Flow::Continue(());
        }
        match event.change {
            Change::Create(entry) | Change::Update { entry, .. } => self.take(entry),
            Change::Delete { prev } => {
                self.entry = prev;
                self.conclude(Outcome::Deleted)
            }
        }
    }

    /// Finds out what the object is like, however long that takes.
    async fn reread(&mut self) -> Flow {
        loop {
            match self.server.store.get(&self.key, At::Newest).await.map(|got| got.entry) {
                Ok(None) => return self.conclude(Outcome::Deleted),
                Ok(Some(entry)) if entry.mod_rev > self.entry.mod_rev => return self.take(entry),
                Ok(Some(_)) => return Flow::Continue(()),
                Err(error) => {
                    self.server.log.warn(
                        "an object can not be followed",
                        &[("key", &self.key), ("why", &error)],
                    );
                    let _ = self.conclude(Outcome::Lost);
                }
            }
            let again =
                self.server.clock.elapsed().saturating_add(self.server.initialization.stale_retry);
            self.server.clock.sleep_until(again).await;
            if self.steps.has_ended(self.now()) {
                return Flow::Break(());
            }
        }
    }

    /// Takes notice of a state of the object. What can not be read any more is nobody's to follow.
    fn take(&mut self, entry: Entry) -> Flow {
        let Ok(tree) = codec::from_stored(&entry.value) else {
            return self.conclude(Outcome::Lost);
        };
        if api_object::uid(&tree) != api_object::uid(&self.tree) {
            // Somebody has deleted it and made another one of its name.
            return self.conclude(Outcome::Deleted);
        }
        (self.entry, self.tree) = (entry, tree);
        self.look_at_tree()
    }

    fn look_at_tree(&mut self) -> Flow {
        let initializers = Initializers::from_object(&self.tree);
        if initializers.result.is_some() {
            return self.conclude(Outcome::Failed);
        }
        if initializers.is_empty() {
            return self.conclude(Outcome::Initialized);
        }
        self.steps.observe(&initializers.pending, self.now());
        self.progress.send_modify(|progress| progress.entry = Some(self.entry.clone()));
        Flow::Continue(())
    }

    /// Tells the creator. Only the first time counts.
    fn conclude(&self, outcome: Outcome) -> Flow {
        self.progress.send_modify(|progress| {
            progress.outcome.get_or_insert((outcome, self.entry.clone()));
        });
        Flow::Break(())
    }

    /// Does what is due.
    async fn fire(&mut self) -> Flow {
        if self.steps.has_ended(self.now()) {
            return Flow::Break(());
        }
        let standing = self.server.stand(Instant::now() + STAND_MAX).await.ok();
        let snapshot = standing.as_ref().map(|standing| standing.hooks.snapshot.as_ref());
        for expired in self.steps.take_expired(self.now(), snapshot) {
            match expired.action {
                ExpiryAction::Remove => self.remove(&expired.name).await?,
                ExpiryAction::Fail => {
                    let metrics = &self.server.admission_metrics;
                    metrics.count_initializer_timeout(&expired.name, TimeoutAction::Failed);
                    let _ = self.conclude(Outcome::StepFailed(expired.idx));
                }
            }
        }
        Flow::Continue(())
    }

    /// Takes out an entry. If somebody was faster, what they wrote is looked at first; the entry is still
    /// due, if it is still there.
    async fn remove(&mut self, name: &str) -> Flow {
        let Some(next) = without_initializer(&self.tree, name) else { return Flow::Continue(()) };
        match self.server.write_own(&self.key, &self.entry, &next, self.ttl).await {
            Ok(entry) => {
                let metrics = &self.server.admission_metrics;
                metrics.count_initializer_timeout(name, TimeoutAction::Removed);
                self.server.audit_loopback_write(
                    &self.request,
                    self.steps.removal_annotation(name),
                    name,
                );
                self.take(entry)
            }
            Err(WriteError::Conflict { current: Some(entry) }) => self.take(entry),
            Err(WriteError::Conflict { current: None }) => self.conclude(Outcome::Deleted),
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
