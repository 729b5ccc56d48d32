//! Keeps a cache of one resource current by a list and a watch, and proves how fresh the cache is.

mod checkpoint;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use self::checkpoint::{Checkpoint, send_checkpoints};
use crate::api_error::ClusterError;
use crate::client::ClusterClient;
use crate::list_objects::{ListObjectsOutcome, ListRevision, list_objects};
use crate::watch_stream::{WatchChange, WatchEvent, WatchStream, parse_revision};

/// The pause before the first repetition after an error. It doubles up to [`BACKOFF_MAX`].
const BACKOFF_MIN: Duration = Duration::from_millis(100);

/// The longest pause between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// The time beyond its timeout after which a watch that has not ended counts as hung.
const WATCH_END_DELAY_MAX: Duration = Duration::from_secs(5);

/// The number of events that are read ahead of the cache.
const EVENTS_AHEAD_MAX: usize = 64;

/// The number of checkpoints that wait for the watch. The newest ones are kept, because they prove the most.
const CHECKPOINTS_MAX: usize = 8;

/// The resource that a watch covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedResource {
    /// The path of the collection, such as `/apis/rbac.authorization.k8s.io/v1/roles`.
    pub path: String,
    /// The kind of its objects, such as `Role`.
    pub kind: &'static str,
    /// The version of its objects, such as `rbac.authorization.k8s.io/v1`.
    pub api_version: &'static str,
}

/// The intervals of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchIntervals {
    /// The interval of checkpoints, and the duration of one watch request.
    pub checkpoint_interval: Duration,
    /// The age of the last proof at which all objects are listed again.
    pub relist_age: Duration,
}

impl WatchIntervals {
    /// The intervals with which a proof is normally younger than `proof_age_max`: a checkpoint after each third of it, and
    /// a list when two thirds have passed.
    pub fn for_proof_age(proof_age_max: Duration) -> Self {
        Self { checkpoint_interval: proof_age_max / 3, relist_age: proof_age_max * 2 / 3 }
    }

    /// The timeout that a watch request asks for, at least one second.
    fn watch_timeout_seconds(self) -> u64 {
        self.checkpoint_interval.as_secs().max(1)
    }
}

/// An object of the watched resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedObject<T> {
    /// The namespace; empty if the object has none.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The converted object; `None` if it cannot be converted.
    pub object: Option<T>,
}

/// A change of the cache or of the knowledge about it.
#[derive(Debug)]
pub enum WatchUpdate<T> {
    /// These are all objects of the resource.
    Replaced(Vec<WatchedObject<T>>),
    /// An object was created or changed.
    Put(WatchedObject<T>),
    /// An object was deleted.
    Deleted {
        /// The namespace of the object; empty if it has none.
        namespace: String,
        /// The name of the object.
        name: String,
    },
    /// The updates so far contain every change that the cluster stored before this time.
    Proven(Instant),
    /// A request failed and is sent again.
    Failed(ClusterError),
}

/// Converts an object; `None` if it cannot be converted.
pub type WatchConversionFn<'a, T> = &'a (dyn Fn(&Value) -> Option<T> + Sync);

/// Follows a resource until the future is dropped, and reports every update to `on_update`, in order.
///
/// 1. List all objects at the newest revision. The list contains every change before its first request was sent, which is
///    the first proof.
/// 2. Watch the changes after the revision of the list, with bookmarks. Each event and each bookmark moves the revision of
///    the cache. The server ends each watch request after the checkpoint interval and sends a bookmark shortly before, as
///    kube-apiserver does; the next request continues at the revision of the cache.
/// 3. At each checkpoint interval, send a list of one object without a revision, which the server answers from its newest
///    state. Its revision `R`, and the time `t` at which it was sent, are a checkpoint: every change before `t` has a
///    revision of at most `R`.
/// 4. When the revision of the cache reaches `R`, the cache contains every change before `t`, which is the next proof. An
///    event or a bookmark below `R` proves nothing: a watch that is delayed sends such events too. The checkpoint alone
///    proves nothing either: the watch may hang while the server answers lists.
/// 5. If the last proof and the begin of step 2 are older than the relist age, go to step 1. So a hung connection, a proxy that holds events back, and
///    a server without bookmarks cost a list, and never the correctness of a proof.
/// 6. If a watch request ends or breaks, continue it after a pause. If the server no longer has the revision (410), or if
///    `R` is below the revision that the cache had at `t`, such as after a restore of the cluster from a backup, go to
///    step 1.
pub async fn watch_objects<T: Send>(
    client: &ClusterClient,
    resource: &WatchedResource,
    intervals: WatchIntervals,
    convert: WatchConversionFn<'_, T>,
    on_update: &mut (dyn FnMut(WatchUpdate<T>) + Send),
) -> Infallible {
    let mut backoff = BACKOFF_MIN;
    loop {
        let sent_at = Instant::now();
        match list_all_objects(client, resource, convert).await {
            Err(error) => on_update(WatchUpdate::Failed(error)),
            Ok((objects, revision)) => {
                on_update(WatchUpdate::Replaced(objects));
                on_update(WatchUpdate::Proven(sent_at));
                let mut cache =
                    CacheProgress { revision, proven_at: sent_at, checkpoints: VecDeque::new() };
                cache.watch_until_relist(client, resource, intervals, convert, on_update).await;
                if sent_at.elapsed() >= intervals.checkpoint_interval {
                    backoff = BACKOFF_MIN;
                }
            }
        }
        sleep(backoff).await;
        backoff = (backoff * 2).min(BACKOFF_MAX);
    }
}

/// Lists all objects, and returns the revision of the list.
async fn list_all_objects<T: Send>(
    client: &ClusterClient,
    resource: &WatchedResource,
    convert: WatchConversionFn<'_, T>,
) -> Result<(Vec<WatchedObject<T>>, u64), ClusterError> {
    let convert = |object: &Value| Some(convert_object(object, convert));
    let newest = ListRevision::Newest;
    match list_objects(client, &resource.path, &newest, &convert, &mut |_| {}).await? {
        ListObjectsOutcome::Complete(list) => {
            let revision = parse_revision(&list.revision, &resource.path)?;
            Ok((list.items, revision))
        }
        ListObjectsOutcome::RevisionGone => {
            let message = "the server dropped the revision of a list".to_owned();
            Err(ClusterError::Expired { message })
        }
    }
}

fn convert_object<T>(object: &Value, convert: WatchConversionFn<'_, T>) -> WatchedObject<T> {
    let (namespace, name) = namespace_and_name(object);
    WatchedObject { namespace, name, object: convert(object) }
}

fn namespace_and_name(object: &Value) -> (String, String) {
    let metadata = object.get("metadata");
    let text = |name: &str| {
        let text = metadata.and_then(|metadata| metadata.get(name)).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    (text("namespace"), text("name"))
}

/// A message of the watch requests or of the checkpoints to the cache.
enum Message {
    Event(WatchEvent),
    Checkpoint(Checkpoint),
    Failed(ClusterError),
}

/// The position of the cache in the history of the resource.
struct CacheProgress {
    /// The cache contains every change up to this revision.
    revision: u64,
    proven_at: Instant,
    /// Checkpoints that the cache has not reached, oldest first.
    checkpoints: VecDeque<Checkpoint>,
}

impl CacheProgress {
    /// Runs the steps 2 to 6 until step 1 is due.
    async fn watch_until_relist<T: Send>(
        &mut self,
        client: &ClusterClient,
        resource: &WatchedResource,
        intervals: WatchIntervals,
        convert: WatchConversionFn<'_, T>,
        on_update: &mut (dyn FnMut(WatchUpdate<T>) + Send),
    ) {
        let (sender, mut receiver) = mpsc::channel(EVENTS_AHEAD_MAX);
        let applied_revision = AtomicU64::new(self.revision);
        let reading = read_watch_requests(client, resource, intervals, self.revision, &sender);
        let checking = send_checkpoints(client, resource, intervals, &applied_revision, &sender);
        let applying = self.apply_messages(
            resource,
            intervals,
            convert,
            &mut receiver,
            &applied_revision,
            on_update,
        );
        tokio::select! {
            () = applying => {}
            () = reading => {}
            never = checking => match never {},
        }
    }

    /// Applies messages in order, until the last proof is too old or the revisions run backwards.
    ///
    /// The first proof is the time at which the list was sent. A list that takes long would leave the watch no time, and
    /// lists would follow each other without end, so each watch has at least the relist age for its first proof.
    async fn apply_messages<T>(
        &mut self,
        resource: &WatchedResource,
        intervals: WatchIntervals,
        convert: WatchConversionFn<'_, T>,
        receiver: &mut Receiver<Message>,
        applied_revision: &AtomicU64,
        on_update: &mut (dyn FnMut(WatchUpdate<T>) + Send),
    ) {
        let begun_at = Instant::now();
        loop {
            let relist_at = self.proven_at.max(begun_at) + intervals.relist_age;
            let received = timeout_at(relist_at, receiver.recv()).await;
            let Ok(Some(message)) = received else { return };
            match message {
                Message::Failed(error) => on_update(WatchUpdate::Failed(error)),
                Message::Checkpoint(checkpoint) => {
                    if checkpoint.revision < checkpoint.cache_revision {
                        return;
                    }
                    if self.checkpoints.len() >= CHECKPOINTS_MAX {
                        self.checkpoints.pop_front();
                    }
                    self.checkpoints.push_back(checkpoint);
                }
                Message::Event(event) => {
                    self.apply_event(resource, convert, event, on_update);
                    applied_revision.store(self.revision, Ordering::Relaxed);
                }
            }
            self.confirm_checkpoints(on_update);
        }
    }

    fn apply_event<T>(
        &mut self,
        resource: &WatchedResource,
        convert: WatchConversionFn<'_, T>,
        event: WatchEvent,
        on_update: &mut (dyn FnMut(WatchUpdate<T>) + Send),
    ) {
        match event.change {
            WatchChange::Nothing => {}
            WatchChange::Deleted(object) => {
                let (namespace, name) = namespace_and_name(&object);
                on_update(WatchUpdate::Deleted { namespace, name });
            }
            WatchChange::Put(mut object) => {
                if let Some(members) = object.as_object_mut() {
                    members.entry("kind").or_insert_with(|| resource.kind.into());
                    members.entry("apiVersion").or_insert_with(|| resource.api_version.into());
                }
                on_update(WatchUpdate::Put(convert_object(&object, convert)));
            }
        }
        self.revision = event.revision.max(self.revision);
    }

    /// Reports the newest checkpoint that the cache has reached.
    fn confirm_checkpoints<T>(&mut self, on_update: &mut (dyn FnMut(WatchUpdate<T>) + Send)) {
        let revision = self.revision;
        let mut proven_at = None;
        while let Some(checkpoint) = self.checkpoints.pop_front_if(|own| own.revision <= revision) {
            proven_at = Some(checkpoint.sent_at);
        }
        if let Some(proven_at) = proven_at {
            self.proven_at = self.proven_at.max(proven_at);
            on_update(WatchUpdate::Proven(self.proven_at));
        }
    }
}

/// Sends one watch request after the other, each from the last revision that was read. Returns when the server no longer
/// has the revision.
async fn read_watch_requests(
    client: &ClusterClient,
    resource: &WatchedResource,
    intervals: WatchIntervals,
    mut revision: u64,
    sender: &Sender<Message>,
) {
    let timeout_seconds = intervals.watch_timeout_seconds();
    let duration_max = Duration::from_secs(timeout_seconds) + WATCH_END_DELAY_MAX;
    let mut backoff = BACKOFF_MIN;
    loop {
        let begun = Instant::now();
        let reading = read_watch_request(client, resource, timeout_seconds, &mut revision, sender);
        // A watch that does not end by itself is hung, and reading it further would never fail.
        match timeout(duration_max, reading).await {
            Ok(Ok(())) => backoff = BACKOFF_MIN,
            Err(_) => {}
            Ok(Err(ClusterError::Expired { message })) => {
                let expired = ClusterError::Expired { message };
                // The receiver lives as long as this future.
                let _ = sender.send(Message::Failed(expired)).await;
                return;
            }
            Ok(Err(error)) => {
                let _ = sender.send(Message::Failed(error)).await;
            }
        }
        if begun.elapsed() >= Duration::from_secs(timeout_seconds) / 2 {
            backoff = BACKOFF_MIN;
            continue;
        }
        sleep(backoff).await;
        backoff = (backoff * 2).min(BACKOFF_MAX);
    }
}

/// Reads one watch request to its end, and moves `revision` along.
async fn read_watch_request(
    client: &ClusterClient,
    resource: &WatchedResource,
    timeout_seconds: u64,
    revision: &mut u64,
    sender: &Sender<Message>,
) -> Result<(), ClusterError> {
    let mut stream = WatchStream::open(client, &resource.path, *revision, timeout_seconds).await?;
    while let Some(event) = stream.next_event().await? {
        let event_revision = event.revision;
        if sender.send(Message::Event(event)).await.is_err() {
            return Ok(());
        }
        *revision = event_revision.max(*revision);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELIST_AGE: Duration = Duration::from_secs(20);

    /// Applies messages to a cache whose list took longer than the relist age. Returns the times from the end of the list
    /// to the reported proofs, and to the next list.
    async fn watch_after_slow_list(
        messages: Vec<(Duration, Message)>,
    ) -> (Vec<Duration>, Duration) {
        let sent_at = Instant::now();
        tokio::time::advance(RELIST_AGE * 3).await;
        let listed_at = Instant::now();
        let mut cache =
            CacheProgress { revision: 10, proven_at: sent_at, checkpoints: VecDeque::new() };
        let resource =
            WatchedResource { path: "/roles".to_owned(), kind: "Role", api_version: "v1" };
        let intervals =
            WatchIntervals { checkpoint_interval: RELIST_AGE / 2, relist_age: RELIST_AGE };
        let (sender, mut receiver) = mpsc::channel(EVENTS_AHEAD_MAX);
        let sending = async {
            for (pause, message) in messages {
                tokio::time::advance(pause).await;
                sender.send(message).await.unwrap();
            }
            std::future::pending::<()>().await;
        };
        let mut proofs = Vec::new();
        let mut on_update = |update: WatchUpdate<()>| {
            if let WatchUpdate::Proven(at) = update {
                proofs.push(at - listed_at);
            }
        };
        let applied_revision = AtomicU64::new(10);
        let applying = cache.apply_messages(
            &resource,
            intervals,
            &|_| None,
            &mut receiver,
            &applied_revision,
            &mut on_update,
        );
        tokio::select! {
            // The watch begins before the time advances.
            biased;
            () = applying => {}
            () = sending => {}
        }
        (proofs, listed_at.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_list_leaves_the_watch_its_whole_time() {
        let (proofs, relisted_after) = watch_after_slow_list(Vec::new()).await;
        assert_eq!((proofs, relisted_after), (Vec::new(), RELIST_AGE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_proof_after_a_slow_list_has_its_own_time() {
        let second = Duration::from_secs(1);
        let sent_at = Instant::now() + RELIST_AGE * 3 + second * 4;
        let checkpoint = Checkpoint { sent_at, revision: 11, cache_revision: 10 };
        let bookmark = WatchEvent { change: WatchChange::Nothing, revision: 11 };
        let messages = vec![
            (second * 5, Message::Checkpoint(checkpoint)),
            (second * 5, Message::Event(bookmark)),
        ];
        let (proofs, relisted_after) = watch_after_slow_list(messages).await;
        assert_eq!((proofs, relisted_after), (vec![second * 4], second * 4 + RELIST_AGE));
    }
}
