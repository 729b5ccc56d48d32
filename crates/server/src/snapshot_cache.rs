//! Keeps the snapshot that decisions are made from as new as the store, as an informer does.
//!
//! One watch over the whole prefix feeds the snapshot, so it always shows one revision of the store. A write
//! is acknowledged only after the snapshot of this server contains it, so a grant that was acknowledged
//! holds for the next request.

use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use authz_chain::{AuthorizerSlot, ConfigurationError};
use authz_rbac::Role;
use component_base::Log;
use flow_control::FlowController;
use store::{At, Change, Item, ListRequest, Prefix, ReadError, Revision, Store, WatchError};
use tokio::sync::{mpsc, watch};

use crate::admission::admission_config_revision_key;
use crate::cluster_snapshot::{
    ClusterSnapshot, SnapshotUpdateReport, TRACKED_PATHS, service_directory_path,
};
use crate::initializers::{ObjectWatchers, UninitializedObjectCounts, is_stored_initialized};
use crate::service_directory::ServiceDirectory;

/// How many objects one read returns at the start.
const PAGE_ITEMS_MAX: usize = 10_000;
/// The delay before a watch that failed is started again.
const RETRY: Duration = Duration::from_millis(500);
/// How many lists of stale roles are queued. Further ones are dropped: the next change of a role reports
/// whatever is still stale.
const STALE_ROLES_QUEUE_MAX: usize = 64;

/// The newest snapshot, and the means to wait for a newer one.
pub(crate) struct SnapshotCache {
    store: Arc<dyn Store>,
    /// Without a slash at the end.
    store_key_prefix: String,
    snapshot_slot: ArcSwap<ClusterSnapshot>,
    /// Held while the next snapshot is built from the newest one: objects and authorizers change
    /// independently, and neither change may undo the other. It is never held over an await.
    snapshot_update_lock: Mutex<()>,
    service_directory: Arc<ServiceDirectory>,
    published_revision: watch::Sender<u64>,
    is_synced: AtomicBool,
    stale_roles_sender: mpsc::Sender<Vec<Arc<Role>>>,
    object_watchers: Arc<ObjectWatchers>,
    uninitialized_object_counts: Arc<UninitializedObjectCounts>,
    /// Configured from the flow schemas and priority levels of each new snapshot.
    flow_controller: Arc<FlowController>,
    log: Log,
}

impl SnapshotCache {
    /// Reads all tracked objects once. Stale aggregated roles are sent to the receiver from then on.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn start(
        store: Arc<dyn Store>,
        prefix: &str,
        empty: ClusterSnapshot,
        service_directory: Arc<ServiceDirectory>,
        flow_controller: Arc<FlowController>,
        log: Log,
    ) -> Result<(Arc<Self>, mpsc::Receiver<Vec<Arc<Role>>>), ReadError> {
        let (stale_roles_sender, receiver) = mpsc::channel(STALE_ROLES_QUEUE_MAX);
        let snapshot_cache = Self {
            store,
            store_key_prefix: prefix.to_owned(),
            snapshot_slot: ArcSwap::from_pointee(empty.clone()),
            snapshot_update_lock: Mutex::new(()),
            service_directory,
            published_revision: watch::Sender::new(0),
            is_synced: AtomicBool::new(false),
            stale_roles_sender,
            object_watchers: Arc::default(),
            uninitialized_object_counts: Arc::new(UninitializedObjectCounts::new(prefix)),
            flow_controller,
            log,
        };
        empty.flow_control_objects.configure_flow_controller(&snapshot_cache.flow_controller);
        snapshot_cache.load_snapshot(&empty).await?;
        Ok((Arc::new(snapshot_cache), receiver))
    }

    /// The watchers of single objects.
    pub(crate) fn object_watchers(&self) -> &Arc<ObjectWatchers> {
        &self.object_watchers
    }

    /// The objects that wait for initializers.
    pub(crate) fn uninitialized_object_counts(&self) -> &Arc<UninitializedObjectCounts> {
        &self.uninitialized_object_counts
    }

    /// Returns the newest snapshot of this server.
    pub(crate) fn snapshot(&self) -> Arc<ClusterSnapshot> {
        self.snapshot_slot.load_full()
    }

    /// Replaces the authorizers for requests that begin from now on.
    ///
    /// # Errors
    /// Two authorizers have the same name; nothing changes then.
    pub(crate) fn replace_authorizers(
        &self,
        authorizer_slots: &Arc<[AuthorizerSlot]>,
    ) -> Result<(), ConfigurationError> {
        let _guard = self.lock_snapshot_updates();
        let next = self.snapshot_slot.load().with_authorizers(authorizer_slots)?;
        self.snapshot_slot.store(Arc::new(next));
        Ok(())
    }

    fn lock_snapshot_updates(&self) -> MutexGuard<'_, ()> {
        self.snapshot_update_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the watch that feeds the snapshot is running.
    pub(crate) fn is_synced(&self) -> bool {
        self.is_synced.load(Ordering::Acquire)
    }

    /// Waits until the snapshot contains everything up to a revision.
    pub(crate) async fn wait_for_revision(&self, revision: Revision) {
        if self.snapshot_slot.load().revision >= revision {
            return;
        }
        let mut published = self.published_revision.subscribe();
        // The sender lives as long as this value, so waiting does not fail.
        let _ = published.wait_for(|published| *published >= revision.as_u64()).await;
    }

    /// Waits until the snapshot is newer than a revision, and returns the revision of the snapshot.
    pub(crate) async fn wait_for_revision_after(&self, revision: u64) -> u64 {
        let mut published = self.published_revision.subscribe();
        // The sender lives as long as this value, so waiting does not fail.
        let _ = published.wait_for(|published| *published > revision).await;
        self.snapshot_slot.load().revision.as_u64()
    }

    /// Applies the changes of the store until the task is dropped.
    pub(crate) async fn run(self: Arc<Self>, empty: ClusterSnapshot) {
        loop {
            let why = match self.watch_and_update_snapshot().await {
                WatchError::Compacted { .. } => match self.load_snapshot(&empty).await {
                    Ok(()) => {
                        self.object_watchers.report_missed_events();
                        continue;
                    }
                    Err(error) => error.to_string(),
                },
                WatchError::Unavailable(error) => error.to_string(),
            };
            self.is_synced.store(false, Ordering::Release);
            self.log.warn("the store cannot be watched", &[("why", &why)]);
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn watch_and_update_snapshot(&self) -> WatchError {
        let Ok(prefix) = Prefix::new(&format!("{}/", self.store_key_prefix)) else {
            return unavailable_error("the prefix of the store is malformed");
        };
        let after = self.snapshot_slot.load().revision;
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
                self.update_service_directory(&event.key, value);
            }
            let _guard = self.lock_snapshot_updates();
            let old = self.snapshot_slot.load();
            let (next, report) = old.with_store_events(
                &self.store_key_prefix,
                &batch.events,
                batch.complete_through_revision,
            );
            self.publish_snapshot(next, report);
            self.object_watchers.dispatch_store_events(&batch.events);
            self.uninitialized_object_counts.apply_store_events(&batch.events);
        }
    }

    /// Stores the address of a Service or an EndpointSlice in the directory.
    fn update_service_directory(&self, key: &store::Key, value: Option<&bytes::Bytes>) {
        let Some(path) = service_directory_path(&self.store_key_prefix, key.as_str()) else {
            return;
        };
        let value = value.filter(is_stored_initialized).map(AsRef::as_ref);
        if let Err(why) = self.service_directory.apply_service_or_endpoints(path, value) {
            self.log.error("a stored object cannot be read", &[("key", &key), ("why", &why)]);
        }
    }

    /// Builds the snapshot from all tracked objects at one revision of the store.
    async fn load_snapshot(&self, empty: &ClusterSnapshot) -> Result<(), ReadError> {
        let mut items: Vec<Item> = Vec::new();
        let mut at = At::Newest;
        let mut revision = Revision::ZERO;
        for path in TRACKED_PATHS {
            let Ok(prefix) = Prefix::new(&format!("{}/{path}/", self.store_key_prefix)) else {
                continue;
            };
            let mut from = Bound::Unbounded;
            loop {
                let limit = NonZeroUsize::new(PAGE_ITEMS_MAX);
                let request = ListRequest { from, items_max: limit, page_bytes_max: None, at };
                let page = self.store.list(&prefix, request).await?;
                revision = page.revision;
                at = At::Exactly(revision);
                let last = page.items.last().map(|item| item.key.clone());
                items.extend(page.items);
                match last {
                    Some(key) if page.n_remaining_items > 0 => from = Bound::Excluded(key),
                    _ => break,
                }
            }
        }
        // The config revision key is a single key and no prefix.
        if let Ok(key) = admission_config_revision_key(&self.store_key_prefix) {
            let entry = self.store.get(&key, at).await?.entry;
            items.extend(entry.map(|entry| Item { key, entry }));
        }
        self.uninitialized_object_counts.replace_uninitialized_records(&items);
        self.service_directory.clear();
        for item in &items {
            self.update_service_directory(&item.key, Some(&item.entry.value));
        }
        // The connections to hooks and the state of their circuit breakers are kept.
        let mut empty = empty.clone();
        empty.configured_hooks =
            self.snapshot_slot.load().configured_hooks.without_configurations();
        let (cluster, report) = empty.with_stored_items(&self.store_key_prefix, &items, revision);
        let _guard = self.lock_snapshot_updates();
        // The authorizers may have changed since the server started with an empty snapshot. These slots have
        // built a chain before, so their names are unique.
        let cluster = cluster
            .with_authorizers(self.snapshot_slot.load().authorizer_slots())
            .unwrap_or(cluster);
        self.publish_snapshot(cluster, report);
        Ok(())
    }

    /// Makes a snapshot the newest one. The caller holds the update lock, so that the flow controller is not
    /// configured concurrently.
    fn publish_snapshot(&self, cluster: ClusterSnapshot, report: SnapshotUpdateReport) {
        let revision = cluster.revision;
        if !Arc::ptr_eq(
            &cluster.flow_control_objects,
            &self.snapshot_slot.load().flow_control_objects,
        ) {
            cluster.flow_control_objects.configure_flow_controller(&self.flow_controller);
        }
        self.snapshot_slot.store(Arc::new(cluster));
        self.published_revision.send_replace(revision.as_u64());
        for (key, why) in &report.undecodable_objects {
            self.log.error("a stored object cannot be read", &[("key", key), ("why", why)]);
        }
        if !report.stale_aggregated_roles.is_empty() {
            // A full queue means that the same roles are being written already.
            let _ = self.stale_roles_sender.try_send(report.stale_aggregated_roles);
        }
    }
}

fn unavailable_error(reason: &str) -> WatchError {
    WatchError::Unavailable(store::Unavailable { reason: reason.into() })
}
