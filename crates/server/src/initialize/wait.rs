//! What the creator of an object that has to wait for initializers receives, and when (admission §6.5).

use std::sync::Arc;
use std::time::{Duration, Instant};

use admission::{
    TimeoutCause, UninitializedObject, deleted_while_waiting_status, initialization_failure_status,
    initialization_timeout_status,
};
use api_object::{Status, Tree};
use api_resources::Verb;
use store::{Entry, Expect, Key, Mark, Put, Revision, Store, Transaction, WriteError};
use tokio::sync::{oneshot, watch};

use super::tracker::{Job, Outcome, PendingObject, Progress};
use super::visibility::has_uninitialized;
use super::waiting_objects::{Creator, Full, Reservation};
use crate::cluster_ips::ClusterIpChange;
use crate::cluster_snapshot::is_tracked;
use crate::gate::Admitted;
use crate::object_ref::ObjectRef;
use crate::rest::{Call, NotWritten, Shown};

/// What is kept of the time of a request for telling how far the object is.
const ANSWER_TIME: Duration = Duration::from_millis(20);

/// Lets somebody wait for an object.
#[derive(Debug)]
pub(crate) struct Waiting {
    key: Key,
    progress: watch::Receiver<Progress>,
}

impl<S: Store> Call<'_, S> {
    /// Stores a new object that has to wait for initializers. From then on it is followed, whatever
    /// becomes of the request.
    pub(crate) async fn store_uninitialized(
        &self,
        key: Key,
        admitted: &Admitted,
        addresses: &ClusterIpChange,
    ) -> Result<(Revision, Waiting), NotWritten> {
        let (tree, value) =
            (admitted.tree(), bytes::Bytes::from(codec::to_stored(admitted.tree())));
        let user = self.authorized.user();
        let creator = Creator {
            name: authz::user_limit_key(&user.name),
            is_exempt: user.is_in_group("system:masters"),
        };
        let waiting = self.server.snapshot_cache.waiting();
        let reservation = waiting
            .reserve(&self.server.initialization, creator, &key, api_object::uid(tree), value.len())
            .map_err(full)?;
        let reservation = Arc::new(reservation);
        let (record_key, record) = reservation.record.clone();
        let put = Put {
            key: key.clone(),
            value,
            expect: Expect::Absent,
            ttl: self.ttl(),
            mark: self.uninitialized_mark(),
        };
        let transaction = addresses.attach(put.into());
        // Nothing waits that does not count.
        let transaction = transaction.put_beside(record_key, record, Some(Expect::Absent));
        let mut owners = self.owners(tree).await?;
        loop {
            let attempt = owners.attach(transaction.clone());
            let (written, progress) = self.begin_following(attempt, tree, &reservation).await?;
            if let Some(written) = self.renew_owners(&mut owners, written, tree)? {
                let is_tracked = is_tracked(&self.server.prefix, &key);
                let revision = self.settle(written, "create", is_tracked).await?;
                return Ok((revision, Waiting { key, progress }));
            }
        }
    }

    /// Hands a new object over to the task that stores and follows it, and waits until it is stored.
    async fn begin_following(
        &self,
        transaction: Transaction,
        tree: &Tree,
        reservation: &Arc<Reservation>,
    ) -> Result<(Result<Revision, WriteError>, watch::Receiver<Progress>), NotWritten> {
        let (sender, written) = oneshot::channel();
        let (progress, receiver) = watch::channel(Progress::default());
        let pending = PendingObject {
            transaction,
            origin: self.admission.origin,
            request: ObjectRef::of(self.resource, self.namespace, api_object::name(tree))
                .request(Verb::Update),
            tree: tree.clone(),
            written: sender,
            progress,
            reservation: Arc::clone(reservation),
        };
        self.admission.write_progress.begin();
        let storing = async {
            self.server.initialization_tracker.begin(Job::Follow(Box::new(pending))).await;
            written.await
        };
        match self.timed("create", storing).await {
            Ok(written) => Ok((written, receiver)),
            Err(_) => {
                let status = Status::unavailable("apiserver is shutting down");
                Err(NotWritten::Unknown(status))
            }
        }
    }

    /// What says that the resource has uninitialized objects. It is there for good once it is there.
    fn uninitialized_mark(&self) -> Option<Mark> {
        if has_uninitialized(&self.server.snapshot_cache.snapshot(), self.resource) {
            return None;
        }
        Some(Mark::Move { key: self.server.uninitialized_key(self.resource)?, expect: None })
    }

    /// Waits until an object is initialized.
    ///
    /// # Errors
    /// What became of the object otherwise, or that nobody knows yet.
    pub(crate) async fn wait_initialized(
        &mut self,
        created: Shown,
        mut waiting: Waiting,
    ) -> Result<Shown, Status> {
        // Who waits takes no room from those who are waited for.
        self.admission.permit = None;
        let begun = Instant::now();
        let limit = self.admission.deadline.checked_sub(ANSWER_TIME);
        let limit = limit.unwrap_or(self.admission.deadline);
        let concluded = waiting.progress.wait_for(|progress| progress.outcome.is_some());
        let concluded = tokio::time::timeout_at(limit, concluded).await;
        let concluded = concluded.map(|progress| progress.map(|progress| progress.outcome.clone()));
        self.server.admission_metrics.record_initializer_wait(begun.elapsed());
        let (outcome, entry) = match concluded {
            Ok(Ok(Some(concluded))) => concluded,
            Ok(Ok(None) | Err(_)) => {
                return Err(self.not_in_time(&waiting, created, TimeoutCause::WatchLost));
            }
            Err(_) => return Err(self.not_in_time(&waiting, created, TimeoutCause::Deadline)),
        };
        let tree = self.parse(&entry)?;
        match outcome {
            Outcome::Initialized => {
                if is_tracked(&self.server.prefix, &waiting.key) {
                    self.server.snapshot_cache.wait_for(entry.mod_rev).await;
                }
                Ok(Shown { tree, revision: Some(entry.mod_rev) })
            }
            Outcome::Failed => Err(initialization_failure_status(&tree)
                .unwrap_or_else(|| deleted_while_waiting_status(&tree))),
            Outcome::Deleted => Err(deleted_while_waiting_status(&tree)),
            Outcome::StepFailed(idx) => {
                Err(self.timeout(&tree, entry.mod_rev, TimeoutCause::Step(idx)))
            }
            Outcome::Lost => Err(self.timeout(&tree, entry.mod_rev, TimeoutCause::WatchLost)),
        }
    }

    /// The answer if nothing is decided: with the newest state that is known.
    fn not_in_time(&self, waiting: &Waiting, created: Shown, cause: TimeoutCause) -> Status {
        let newest: Option<Entry> = waiting.progress.borrow().entry.clone();
        let newest = newest.and_then(|entry| Some((self.parse(&entry).ok()?, entry.mod_rev)));
        let created = || (created.tree, created.revision.unwrap_or(Revision::ZERO));
        let (tree, revision) = newest.unwrap_or_else(created);
        self.timeout(&tree, revision, cause)
    }

    fn timeout(&self, tree: &Tree, revision: Revision, cause: TimeoutCause) -> Status {
        let resource = self.resource.group_resource();
        let awaited =
            UninitializedObject { resource: &resource, tree, revision: revision.number() };
        initialization_timeout_status(&awaited, cause)
    }
}

/// The answer to a creator when no further object may wait.
fn full(full: Full) -> Status {
    let why = match full {
        Full::Total => "too many objects wait for their initializers, please try again later",
        Full::User => {
            "too many of your objects wait for their initializers, please try again later"
        }
    };
    Status::too_many_requests(why, 1)
}
