//! Keeping the picture that decisions are made from as new as the store.
//!
//! One watch over the whole prefix feeds it, so it always shows one state of the store. Whoever has
//! written waits until the picture has the write before the client is told, so a grant that was
//! acknowledged holds for the next request.

use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use authz_chain::{AuthorizerSlot, ConfigurationError};
use store::{At, Change, Item, ListRequest, Prefix, ReadError, Revision, Store, Watch, WatchError};
use tokio::sync::{mpsc, watch};

use crate::admission::config_revision_key;
use crate::cluster_snapshot::{ClusterSnapshot, Noticed, TRACKED_PATHS, address_path};
use crate::initialize::{ObjectWatchers, WaitingObjects, is_visible};
use crate::log::Log;
use crate::service_directory::ServiceDirectory;

/// How many objects are read at once at start.
const PAGE_ITEMS: usize = 10_000;
/// How long to wait before a store that can not be followed is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// How many notices may wait to be acted upon. More are dropped: the next change of a role notices
/// whatever is still stale.
const NOTICES_MAX: usize = 64;

/// The newest picture, and how to wait for a newer one.
pub(crate) struct SnapshotCache<S> {
    store: Arc<S>,
    /// Without a slash at the end.
    prefix: String,
    cluster: ArcSwap<ClusterSnapshot>,
    /// Held by whoever makes the next picture from the last one: objects and authorizers change
    /// independently, and neither may undo the other.
    changing: Mutex<()>,
    directory: Arc<ServiceDirectory>,
    reached: watch::Sender<u64>,
    is_synced: AtomicBool,
    notices: mpsc::Sender<Noticed>,
    object_watchers: Arc<ObjectWatchers>,
    waiting: Arc<WaitingObjects>,
    log: Log,
}

impl<S: Store> SnapshotCache<S> {
    /// Reads everything once. What is noticed from then on is sent to the receiver.
    ///
    /// # Errors
    /// The store can not be read.
    pub(crate) async fn start(
        store: Arc<S>,
        prefix: &str,
        empty: ClusterSnapshot,
        directory: Arc<ServiceDirectory>,
        log: Log,
    ) -> Result<(Arc<Self>, mpsc::Receiver<Noticed>), ReadError> {
        let (notices, receiver) = mpsc::channel(NOTICES_MAX);
        let snapshot_cache = Self {
            store,
            prefix: prefix.to_owned(),
            cluster: ArcSwap::from_pointee(empty.clone()),
            changing: Mutex::new(()),
            directory,
            reached: watch::Sender::new(0),
            is_synced: AtomicBool::new(false),
            notices,
            object_watchers: Arc::default(),
            waiting: Arc::new(WaitingObjects::new(prefix)),
            log,
        };
        snapshot_cache.load(&empty).await?;
        Ok((Arc::new(snapshot_cache), receiver))
    }

    /// Who follows what happens to single objects.
    pub(crate) fn object_watchers(&self) -> &Arc<ObjectWatchers> {
        &self.object_watchers
    }

    /// The objects that wait for initializers.
    pub(crate) fn waiting(&self) -> &Arc<WaitingObjects> {
        &self.waiting
    }

    /// The newest picture.
    pub(crate) fn snapshot(&self) -> Arc<ClusterSnapshot> {
        self.cluster.load_full()
    }

    /// Puts other authorizers around the objects, for requests that begin from now on.
    ///
    /// # Errors
    /// Two authorizers have one name; then nothing changes.
    pub(crate) fn replace_authorizers(
        &self,
        slots: &Arc<[AuthorizerSlot]>,
    ) -> Result<(), ConfigurationError> {
        let _changing = self.changing();
        let next = self.cluster.load().with_seats(slots)?;
        self.cluster.store(Arc::new(next));
        Ok(())
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the picture follows the store right now.
    pub(crate) fn is_synced(&self) -> bool {
        self.is_synced.load(Ordering::Acquire)
    }

    /// Waits until the picture has everything up to a revision.
    pub(crate) async fn wait_for(&self, revision: Revision) {
        if self.cluster.load().revision >= revision {
            return;
        }
        let mut reached = self.reached.subscribe();
        // The sender lives as long as this value, so waiting does not fail.
        let _ = reached.wait_for(|reached| *reached >= revision.number()).await;
    }

    /// Waits until the picture is newer than a revision, and returns its own.
    pub(crate) async fn changed(&self, than: u64) -> u64 {
        let mut reached = self.reached.subscribe();
        // As above.
        let _ = reached.wait_for(|reached| *reached > than).await;
        self.cluster.load().revision.number()
    }

    /// Follows the store until the task is dropped.
    pub(crate) async fn run(self: Arc<Self>, empty: ClusterSnapshot) {
        loop {
            let why = match self.follow().await {
                WatchError::Compacted { .. } => match self.load(&empty).await {
                    Ok(()) => {
                        self.object_watchers.mark_gap();
                        continue;
                    }
                    Err(error) => error.to_string(),
                },
                WatchError::Unavailable(error) => error.to_string(),
            };
            self.is_synced.store(false, Ordering::Release);
            self.log.warn("the store can not be followed", &[("why", &why)]);
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn follow(&self) -> WatchError {
        let Ok(prefix) = Prefix::new(&format!("{}/", self.prefix)) else {
            return unavailable("the prefix of the store is malformed");
        };
        let after = self.cluster.load().revision;
        let mut watch = match self.store.watch(prefix, after).await {
            Ok(watch) => watch,
            Err(error) => return error,
        };
        self.is_synced.store(true, Ordering::Release);
        loop {
            let batch = match watch.next().await {
                Ok(batch) => batch,
                Err(error) => return error,
            };
            for event in &batch.events {
                let value = match &event.change {
                    Change::Create(entry) | Change::Update { entry, .. } => Some(&entry.value),
                    Change::Delete { .. } => None,
                };
                self.locate(&event.key, value);
            }
            let _changing = self.changing();
            let old = self.cluster.load();
            let (next, noticed) = old.with_events(&self.prefix, &batch.events, batch.through);
            self.publish(next, noticed);
            self.object_watchers.apply_events(&batch.events);
            self.waiting.apply_events(&batch.events);
        }
    }

    /// Remembers where a service is.
    fn locate(&self, key: &store::Key, value: Option<&bytes::Bytes>) {
        let Some(path) = address_path(&self.prefix, key.as_str()) else { return };
        let value = value.filter(is_visible).map(AsRef::as_ref);
        if let Err(why) = self.directory.apply(path, value) {
            self.log.error("a stored object can not be read", &[("key", &key), ("why", &why)]);
        }
    }

    /// Makes the picture from all objects of one state of the store.
    async fn load(&self, empty: &ClusterSnapshot) -> Result<(), ReadError> {
        let mut items: Vec<Item> = Vec::new();
        let mut at = At::Newest;
        let mut revision = Revision::ZERO;
        for path in TRACKED_PATHS {
            let Ok(prefix) = Prefix::new(&format!("{}/{path}/", self.prefix)) else { continue };
            let mut from = Bound::Unbounded;
            loop {
                let request = ListRequest { from, limit: NonZeroUsize::new(PAGE_ITEMS), at };
                let page = self.store.list(&prefix, request).await?;
                revision = page.revision;
                at = At::Exactly(revision);
                let last = page.items.last().map(|item| item.key.clone());
                items.extend(page.items);
                match last {
                    Some(key) if page.remaining > 0 => from = Bound::Excluded(key),
                    _ => break,
                }
            }
        }
        // The mark has no keys below it.
        if let Ok(key) = config_revision_key(&self.prefix) {
            let mark = self.store.get(&key, at).await?.entry;
            items.extend(mark.map(|entry| Item { key, entry }));
        }
        self.waiting.replace_records(&items);
        self.directory.clear();
        for item in &items {
            self.locate(&item.key, Some(&item.entry.value));
        }
        // What is known of the ways to hooks stays.
        let mut empty = empty.clone();
        empty.hooks = self.cluster.load().hooks.cleared();
        let (cluster, noticed) = empty.with_items(&self.prefix, &items, revision);
        let _changing = self.changing();
        // The authorizers may have changed since the server began with an empty picture. They have
        // made a chain before, so they make one again.
        let cluster = cluster.with_seats(self.cluster.load().slots()).unwrap_or(cluster);
        self.publish(cluster, noticed);
        Ok(())
    }

    fn publish(&self, cluster: ClusterSnapshot, noticed: Noticed) {
        let revision = cluster.revision;
        self.cluster.store(Arc::new(cluster));
        self.reached.send_replace(revision.number());
        for (key, why) in &noticed.unreadable {
            self.log.error("a stored object can not be read", &[("key", key), ("why", why)]);
        }
        if !noticed.stale_roles.is_empty() {
            // A full queue means that the same roles are being written already.
            let _ = self.notices.try_send(noticed);
        }
    }
}

fn unavailable(reason: &str) -> WatchError {
    WatchError::Unavailable(store::Unavailable { reason: reason.into() })
}
