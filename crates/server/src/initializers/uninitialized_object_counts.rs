//! Counts the objects that wait for initializers, by their creators.
//!
//! Waiting objects are in the store, so a limit on them has to count those of other servers and of earlier
//! processes, and has to know their creators. For every waiting object the store has a record with the key
//! of the object and its creator, written in the same transaction. The counts follow from the records and
//! from the events of the objects:
//! 1. A create [reserves](UninitializedObjectCounts::reserve_uninitialized_slot) a slot, in memory.
//! 2. A record that this or another server writes counts from then on.
//! 3. An object that is initialized or deleted no longer counts. [`super::abandoned_object_sweep`] deletes
//!    its record.
//!
//! On one server the limits are exact. Several servers learn of each other's records by the watch, so
//! together they may exceed a limit by the objects that are created within the delay of the watch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use admission::{InitializerOptions, WaitingObjectLimits};
use api_object::Tree;
use bytes::Bytes;
use serde_json::{Value, json};
use store::{Change, Event, Item, Key};
use tokio::sync::Notify;

/// The path of the records, below the prefix of the store. Each has the uid of its object as its name.
pub(crate) const WAITING_PATH: &str = "waitingobjects";

/// All waiting objects that this server knows.
#[derive(Debug)]
pub(crate) struct UninitializedObjectCounts {
    /// The prefix of the keys of records.
    key_prefix: String,
    index: Mutex<UninitializedObjectIndex>,
    /// Notified when a record can be deleted.
    uninitialized_record_became_deletable: Notify,
}

#[derive(Debug, Default)]
struct UninitializedObjectIndex {
    objects_by_uid: HashMap<String, CountedUninitializedObject>,
    /// Usually one uid per key; two while an object and its successor of the same name are both known.
    uids_by_key: HashMap<Key, Vec<String>>,
    uninitialized_usage_by_user: HashMap<Arc<str>, UninitializedObjectUsage>,
    total_uninitialized_usage: UninitializedObjectUsage,
}

/// The number of uninitialized objects, and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct UninitializedObjectUsage {
    pub(super) n_objects: usize,
    pub(super) n_object_bytes: usize,
}

#[derive(Debug)]
struct CountedUninitializedObject {
    key: Key,
    user: Arc<str>,
    n_object_bytes: usize,
    uninitialized_object_state: UninitializedObjectState,
    /// When the object entered this state.
    object_state_since: Instant,
    /// False for objects that a server without records stored.
    has_record_in_store: bool,
}

/// The state of a waiting object, as far as this server knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UninitializedObjectState {
    /// This server is about to store it.
    Creating,
    /// The record exists, but this server has not read the object yet.
    Unread,
    /// The object waits for its initializers.
    Waiting,
    /// An initializer marked the object as failed, so it has to be deleted.
    Failed,
    /// The object is initialized, deleted or was never stored: it does not count, and its record can be
    /// deleted.
    NotCounted,
}

/// A waiting object that the sweep has to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AbandonedInitializationCandidate {
    pub(super) uid: String,
    pub(super) key: Key,
    pub(super) uninitialized_object_state: UninitializedObjectState,
    /// How long the object has been in this state.
    pub(super) object_state_age: Duration,
}

/// The user who creates an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct CreatingUser<'a> {
    /// The name that limits apply to, see [`authz::user_limit_key`].
    pub(super) name: &'a str,
    /// Administrators are never refused, so that they can repair the cluster.
    pub(super) is_exempt_from_limits: bool,
}

/// Why no further object may wait for initializers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UninitializedLimitExceeded {
    /// All users together have reached the limit.
    Total,
    /// This user has reached the limit.
    User,
}

/// The slot of an object that is about to be stored. Dropping it frees the slot, unless the object is
/// [stored](Self::mark_object_stored).
#[derive(Debug)]
pub(super) struct UninitializedObjectSlot {
    uninitialized_object_counts: Arc<UninitializedObjectCounts>,
    uid: String,
    /// The record to be written with the object.
    pub(super) uninitialized_record: (Key, Bytes),
}

impl UninitializedObjectCounts {
    /// Creates an empty table below a prefix without a slash at its end.
    pub(crate) fn new(prefix: &str) -> Self {
        let prefix = format!("{prefix}/{WAITING_PATH}/");
        Self {
            key_prefix: prefix,
            index: Mutex::default(),
            uninitialized_record_became_deletable: Notify::new(),
        }
    }

    /// Reserves a slot for one more object. This server generated the uid.
    pub(super) fn reserve_uninitialized_slot(
        self: &Arc<Self>,
        options: &InitializerOptions,
        creator: CreatingUser<'_>,
        key: &Key,
        uid: &str,
        bytes: usize,
    ) -> Result<UninitializedObjectSlot, UninitializedLimitExceeded> {
        // A uid has letters, digits and dashes, so this is always a key.
        let record_key =
            self.uninitialized_record_key(uid).ok_or(UninitializedLimitExceeded::Total)?;
        let mut index = self.index();
        let user = creator.name;
        if !creator.is_exempt_from_limits {
            if !fits_uninitialized_limit(
                index.total_uninitialized_usage,
                bytes,
                options.waiting_object_limits,
            ) {
                return Err(UninitializedLimitExceeded::Total);
            }
            let used = index.uninitialized_usage_by_user.get(user).copied().unwrap_or_default();
            if !fits_uninitialized_limit(used, bytes, options.waiting_object_limits_per_user) {
                return Err(UninitializedLimitExceeded::User);
            }
        }
        index.insert(uid, key, user, bytes, UninitializedObjectState::Creating, true);
        let record = json!({"key": key.as_str(), "user": user, "bytes": bytes});
        let record = (record_key, Bytes::from(record.to_string()));
        Ok(UninitializedObjectSlot {
            uninitialized_object_counts: Arc::clone(self),
            uid: uid.to_owned(),
            uninitialized_record: record,
        })
    }

    /// Replaces all records by those in the store. The objects have to be read again.
    pub(crate) fn replace_uninitialized_records(&self, items: &[Item]) {
        let records: HashMap<&str, &Item> = items
            .iter()
            .filter_map(|item| Some((item.key.as_str().strip_prefix(&self.key_prefix)?, item)))
            .collect();
        let mut index = self.index();
        let rows = index.objects_by_uid.iter().filter(|(_, row)| {
            row.has_record_in_store
                && row.uninitialized_object_state != UninitializedObjectState::Creating
        });
        let gone: Vec<String> = rows
            .map(|(uid, _)| uid.clone())
            .filter(|uid| !records.contains_key(uid.as_str()))
            .collect();
        gone.iter().for_each(|uid| index.remove(uid));
        for (uid, item) in records {
            index.add_uninitialized_record(uid, &item.entry.value);
        }
        for row in index.objects_by_uid.values_mut() {
            if matches!(
                row.uninitialized_object_state,
                UninitializedObjectState::Waiting | UninitializedObjectState::Failed
            ) {
                row.set_object_state(UninitializedObjectState::Unread);
            }
        }
    }

    /// Applies events of records and of waiting objects.
    pub(crate) fn apply_store_events(&self, events: &[Event]) {
        let mut index = self.index();
        let mut has_stopped = false;
        for event in events {
            let value = match &event.change {
                Change::Create(entry) | Change::Update { entry, .. } => Some(&entry.value),
                Change::Delete { .. } => None,
            };
            match (event.key.as_str().strip_prefix(&self.key_prefix), value) {
                (Some(uid), Some(value)) => index.add_uninitialized_record(uid, value),
                (Some(uid), None) => index.remove(uid),
                (None, value) => has_stopped |= index.update_counts_from_value(&event.key, value),
            }
        }
        if has_stopped {
            self.uninitialized_record_became_deletable.notify_one();
        }
    }

    /// Records the stored value of an object that was read.
    pub(super) fn record_read_object(&self, key: &Key, value: Option<&Bytes>) {
        if self.index().update_counts_from_value(key, value) {
            self.uninitialized_record_became_deletable.notify_one();
        }
    }

    /// Counts an object without a record, which an older version of the server stored.
    pub(super) fn count_unrecorded_uninitialized_object(&self, key: &Key, value: &Bytes) {
        let Ok(tree) = codec::decode_stored_object(value) else { return };
        let mut index = self.index();
        let uid = api_object::uid(&tree);
        if !index.objects_by_uid.contains_key(uid) {
            index.insert(uid, key, "", value.len(), uninitialized_state_of(&tree), false);
        }
    }

    /// The objects to check: those that no longer count, and with `with_objects` also those in the states
    /// [`UninitializedObjectState::Unread`] and [`UninitializedObjectState::Failed`].
    pub(super) fn abandoned_initialization_candidates(
        &self,
        with_objects: bool,
    ) -> Vec<AbandonedInitializationCandidate> {
        let index = self.index();
        let rows =
            index.objects_by_uid.iter().filter(|(_, row)| match row.uninitialized_object_state {
                UninitializedObjectState::NotCounted => true,
                UninitializedObjectState::Unread | UninitializedObjectState::Failed => with_objects,
                UninitializedObjectState::Creating | UninitializedObjectState::Waiting => false,
            });
        let due = rows.map(|(uid, row)| {
            let (key, state, object_state_age) =
                (row.key.clone(), row.uninitialized_object_state, row.object_state_since.elapsed());
            AbandonedInitializationCandidate {
                uid: uid.clone(),
                key,
                uninitialized_object_state: state,
                object_state_age,
            }
        });
        due.collect()
    }

    /// Stops counting an object, whatever its state.
    pub(super) fn stop_counting_uninitialized_object(&self, uid: &str) {
        self.index().stop_counting_uninitialized_object(uid);
        self.uninitialized_record_became_deletable.notify_one();
    }

    /// Removes an object whose record was deleted.
    pub(super) fn remove_counted_object(&self, uid: &str) {
        self.index().remove(uid);
    }

    /// Waits until a record can be deleted.
    pub(super) async fn wait_for_deletable_uninitialized_record(&self) {
        self.uninitialized_record_became_deletable.notified().await;
    }

    /// The key of the record of an object.
    pub(super) fn uninitialized_record_key(&self, uid: &str) -> Option<Key> {
        Key::new(&format!("{}{uid}", self.key_prefix)).ok()
    }

    fn index(&self) -> MutexGuard<'_, UninitializedObjectIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UninitializedObjectSlot {
    /// Keeps the slot: the object is stored, or may be.
    pub(super) fn mark_object_stored(&self) {
        let mut index = self.uninitialized_object_counts.index();
        let row = index.objects_by_uid.get_mut(&self.uid);
        if let Some(row) =
            row.filter(|row| row.uninitialized_object_state == UninitializedObjectState::Creating)
        {
            row.set_object_state(UninitializedObjectState::Unread);
        }
    }
}

impl Drop for UninitializedObjectSlot {
    fn drop(&mut self) {
        let mut index = self.uninitialized_object_counts.index();
        let row = index.objects_by_uid.get(&self.uid);
        if row
            .is_some_and(|row| row.uninitialized_object_state == UninitializedObjectState::Creating)
        {
            index.stop_counting_uninitialized_object(&self.uid);
            self.uninitialized_object_counts.uninitialized_record_became_deletable.notify_one();
        }
    }
}

impl CountedUninitializedObject {
    fn set_object_state(&mut self, state: UninitializedObjectState) {
        if self.uninitialized_object_state != state {
            (self.uninitialized_object_state, self.object_state_since) = (state, Instant::now());
        }
    }
}

impl UninitializedObjectIndex {
    fn insert(
        &mut self,
        uid: &str,
        key: &Key,
        user: &str,
        bytes: usize,
        state: UninitializedObjectState,
        has_record_in_store: bool,
    ) {
        let user: Arc<str> = user.into();
        let (key, object_state_since) = (key.clone(), Instant::now());
        self.uids_by_key.entry(key.clone()).or_default().push(uid.to_owned());
        let row = CountedUninitializedObject {
            key,
            user: Arc::clone(&user),
            n_object_bytes: bytes,
            uninitialized_object_state: state,
            object_state_since,
            has_record_in_store,
        };
        self.objects_by_uid.insert(uid.to_owned(), row);
        self.uninitialized_usage_by_user
            .entry(user)
            .or_default()
            .add_uninitialized_object_usage(bytes);
        self.total_uninitialized_usage.add_uninitialized_object_usage(bytes);
    }

    /// Adds a record. A record that cannot be decoded is not counted.
    fn add_uninitialized_record(&mut self, uid: &str, value: &Bytes) {
        if self.objects_by_uid.contains_key(uid) {
            return;
        }
        let record: Value = serde_json::from_slice(value).unwrap_or_default();
        let text = |member: &str| record.get(member).and_then(Value::as_str).unwrap_or_default();
        let Ok(key) = Key::new(text("key")) else { return };
        let bytes = record.get("bytes").and_then(Value::as_u64);
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let user = text("user");
        self.insert(
            uid,
            &key,
            user,
            bytes.unwrap_or_default(),
            UninitializedObjectState::Unread,
            true,
        );
    }

    /// Applies the stored value of a key, and reports whether an object stopped counting.
    ///
    /// An event about another uid does not affect an object in the state [`UninitializedObjectState::Unread`]: the event
    /// may be older than the object.
    fn update_counts_from_value(&mut self, key: &Key, value: Option<&Bytes>) -> bool {
        let Some(uids) = self.uids_by_key.get(key).cloned() else { return false };
        let tree = match value.map(|value| codec::decode_stored_object(value)) {
            // An object that cannot be decoded keeps counting.
            Some(Err(_)) => return false,
            Some(Ok(tree)) => Some(tree),
            None => None,
        };
        let is_waiting = tree.as_ref().is_some_and(admission::has_pending_initializers);
        let mut has_stopped = false;
        for uid in uids {
            let own = tree.as_ref().filter(|tree| api_object::uid(tree) == uid);
            let Some(row) = self.objects_by_uid.get_mut(&uid) else { continue };
            let was_seen = matches!(
                row.uninitialized_object_state,
                UninitializedObjectState::Waiting | UninitializedObjectState::Failed
            );
            match own {
                Some(tree)
                    if is_waiting
                        && row.uninitialized_object_state
                            != UninitializedObjectState::NotCounted =>
                {
                    row.set_object_state(uninitialized_state_of(tree));
                    self.set_counted_object_bytes(&uid, value.map_or(0, Bytes::len));
                }
                Some(_) if !is_waiting => {
                    has_stopped |= self.stop_counting_uninitialized_object(&uid)
                }
                None if was_seen => has_stopped |= self.stop_counting_uninitialized_object(&uid),
                Some(_) | None => {}
            }
        }
        has_stopped
    }

    fn set_counted_object_bytes(&mut self, uid: &str, bytes: usize) {
        let Some(row) = self.objects_by_uid.get_mut(uid) else { return };
        let before = std::mem::replace(&mut row.n_object_bytes, bytes);
        for usage in self
            .uninitialized_usage_by_user
            .get_mut(&row.user)
            .into_iter()
            .chain([&mut self.total_uninitialized_usage])
        {
            usage.n_object_bytes =
                usage.n_object_bytes.saturating_sub(before).saturating_add(bytes);
        }
    }

    /// Stops counting an object, and reports whether it counted.
    fn stop_counting_uninitialized_object(&mut self, uid: &str) -> bool {
        let Some(row) = self.objects_by_uid.get_mut(uid) else { return false };
        if row.uninitialized_object_state == UninitializedObjectState::NotCounted {
            return false;
        }
        row.set_object_state(UninitializedObjectState::NotCounted);
        let (user, bytes) = (Arc::clone(&row.user), row.n_object_bytes);
        self.subtract_uninitialized_usage_of_user(&user, bytes);
        true
    }

    fn remove(&mut self, uid: &str) {
        let Some(row) = self.objects_by_uid.remove(uid) else { return };
        if row.uninitialized_object_state != UninitializedObjectState::NotCounted {
            self.subtract_uninitialized_usage_of_user(&row.user, row.n_object_bytes);
        }
        if let Some(uids) = self.uids_by_key.get_mut(&row.key) {
            uids.retain(|own| own != uid);
            if uids.is_empty() {
                self.uids_by_key.remove(&row.key);
            }
        }
    }

    fn subtract_uninitialized_usage_of_user(&mut self, user: &Arc<str>, bytes: usize) {
        self.total_uninitialized_usage.subtract_uninitialized_object_usage(bytes);
        if let Some(usage) = self.uninitialized_usage_by_user.get_mut(user) {
            usage.subtract_uninitialized_object_usage(bytes);
            if usage.n_objects == 0 {
                self.uninitialized_usage_by_user.remove(user);
            }
        }
    }
}

impl UninitializedObjectUsage {
    fn add_uninitialized_object_usage(&mut self, bytes: usize) {
        self.n_objects = self.n_objects.saturating_add(1);
        self.n_object_bytes = self.n_object_bytes.saturating_add(bytes);
    }

    fn subtract_uninitialized_object_usage(&mut self, bytes: usize) {
        self.n_objects = self.n_objects.saturating_sub(1);
        self.n_object_bytes = self.n_object_bytes.saturating_sub(bytes);
    }
}

fn fits_uninitialized_limit(
    used: UninitializedObjectUsage,
    bytes: usize,
    max: WaitingObjectLimits,
) -> bool {
    used.n_objects < max.waiting_objects_max
        && used.n_object_bytes.saturating_add(bytes) <= max.waiting_object_bytes_max
}

fn uninitialized_state_of(tree: &Tree) -> UninitializedObjectState {
    if super::has_failed_initialization(tree) {
        UninitializedObjectState::Failed
    } else {
        UninitializedObjectState::Waiting
    }
}

#[cfg(test)]
mod tests;
