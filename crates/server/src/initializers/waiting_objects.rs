//! Counts the objects that wait for initializers, by their creators.
//!
//! Waiting objects are in the store, so a limit on them has to count those of other servers and of earlier
//! processes, and has to know their creators. For every waiting object the store has a record with the key
//! of the object and its creator, written in the same transaction. The counts follow from the records and
//! from the events of the objects:
//! 1. A create [reserves](WaitingObjects::reserve) a slot, in memory.
//! 2. A record that this or another server writes counts from then on.
//! 3. An object that is initialized or deleted no longer counts. [`super::abandoned_object_sweep`] deletes
//!    its record.
//!
//! On one server the limits are exact. Several servers learn of each other's records by the watch, so
//! together they may exceed a limit by the objects that are created within the delay of the watch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use admission::{InitializerOptions, WaitingObjectsMax};
use api_object::Tree;
use bytes::Bytes;
use serde_json::{Value, json};
use store::{Change, Event, Item, Key};
use tokio::sync::Notify;

/// The path of the records, below the prefix of the store. Each has the uid of its object as its name.
pub(crate) const WAITING_PATH: &str = "waitingobjects";

/// All waiting objects that this server knows.
#[derive(Debug)]
pub(crate) struct WaitingObjects {
    /// The prefix of the keys of records.
    prefix: String,
    index: Mutex<WaitingIndex>,
    /// Notified when a record can be deleted.
    record_became_deletable: Notify,
}

#[derive(Debug, Default)]
struct WaitingIndex {
    objects_by_uid: HashMap<String, WaitingObject>,
    /// An object and the next one of its name may both be known for a moment.
    uids_by_key: HashMap<Key, Vec<String>>,
    usage_by_user: HashMap<Arc<str>, WaitingUsage>,
    total_usage: WaitingUsage,
}

/// The number and the bytes of some objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WaitingUsage {
    pub(super) n_objects: usize,
    pub(super) bytes: usize,
}

#[derive(Debug)]
struct WaitingObject {
    key: Key,
    user: Arc<str>,
    bytes: usize,
    state: WaitingState,
    /// When the object entered this state.
    state_since: Instant,
    /// False for objects that a server without records stored.
    has_stored_record: bool,
}

/// The state of a waiting object, as far as this server knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitingState {
    /// This server is about to store it.
    Creating,
    /// There is a record, but the object was not read yet.
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
pub(super) struct SweepCandidate {
    pub(super) uid: String,
    pub(super) key: Key,
    pub(super) state: WaitingState,
    /// How long the object has been in this state.
    pub(super) state_age: Duration,
}

/// The user who creates an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectCreator<'a> {
    /// The name that limits apply to, see [`authz::user_limit_key`].
    pub(super) name: &'a str,
    /// Administrators are never refused, so that they can repair the cluster.
    pub(super) is_exempt_from_limits: bool,
}

/// Why no further object may wait for initializers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitingLimitExceeded {
    /// All users together have reached the limit.
    Total,
    /// This user has reached the limit.
    User,
}

/// The slot of an object that is about to be stored. Dropping it frees the slot, unless the object is
/// [stored](Self::keep).
#[derive(Debug)]
pub(super) struct WaitingSlot {
    objects: Arc<WaitingObjects>,
    uid: String,
    /// The record to be written with the object.
    pub(super) record: (Key, Bytes),
}

impl WaitingObjects {
    /// Creates an empty table below a prefix without a slash at its end.
    pub(crate) fn new(prefix: &str) -> Self {
        let prefix = format!("{prefix}/{WAITING_PATH}/");
        Self { prefix, index: Mutex::default(), record_became_deletable: Notify::new() }
    }

    /// Reserves a slot for one more object. This server generated the uid.
    pub(super) fn reserve_waiting_slot(
        self: &Arc<Self>,
        options: &InitializerOptions,
        creator: ObjectCreator<'_>,
        key: &Key,
        uid: &str,
        bytes: usize,
    ) -> Result<WaitingSlot, WaitingLimitExceeded> {
        // A uid has letters, digits and dashes, so this is always a key.
        let record_key = self.key_of_record(uid).ok_or(WaitingLimitExceeded::Total)?;
        let mut index = self.index();
        let user = creator.name;
        if !creator.is_exempt_from_limits {
            if !fits_waiting_limit(index.total_usage, bytes, options.waiting_objects_max) {
                return Err(WaitingLimitExceeded::Total);
            }
            let used = index.usage_by_user.get(user).copied().unwrap_or_default();
            if !fits_waiting_limit(used, bytes, options.waiting_objects_per_user_max) {
                return Err(WaitingLimitExceeded::User);
            }
        }
        index.insert(uid, key, user, bytes, WaitingState::Creating, true);
        let record = json!({"key": key.as_str(), "user": user, "bytes": bytes});
        let record = (record_key, Bytes::from(record.to_string()));
        Ok(WaitingSlot { objects: Arc::clone(self), uid: uid.to_owned(), record })
    }

    /// Replaces all records by those in the store. The objects have to be read again.
    pub(crate) fn replace_waiting_records(&self, items: &[Item]) {
        let records: HashMap<&str, &Item> = items
            .iter()
            .filter_map(|item| Some((item.key.as_str().strip_prefix(&self.prefix)?, item)))
            .collect();
        let mut index = self.index();
        let rows = index
            .objects_by_uid
            .iter()
            .filter(|(_, row)| row.has_stored_record && row.state != WaitingState::Creating);
        let gone: Vec<String> = rows
            .map(|(uid, _)| uid.clone())
            .filter(|uid| !records.contains_key(uid.as_str()))
            .collect();
        gone.iter().for_each(|uid| index.remove(uid));
        for (uid, item) in records {
            index.add_waiting_record(uid, &item.entry.value);
        }
        for row in index.objects_by_uid.values_mut() {
            if matches!(row.state, WaitingState::Waiting | WaitingState::Failed) {
                row.set_state(WaitingState::Unread);
            }
        }
    }

    /// Applies events of records and of waiting objects.
    pub(crate) fn apply_events(&self, events: &[Event]) {
        let mut index = self.index();
        let mut has_stopped = false;
        for event in events {
            let value = match &event.change {
                Change::Create(entry) | Change::Update { entry, .. } => Some(&entry.value),
                Change::Delete { .. } => None,
            };
            match (event.key.as_str().strip_prefix(&self.prefix), value) {
                (Some(uid), Some(value)) => index.add_waiting_record(uid, value),
                (Some(uid), None) => index.remove(uid),
                (None, value) => has_stopped |= index.apply_stored_value(&event.key, value),
            }
        }
        if has_stopped {
            self.record_became_deletable.notify_one();
        }
    }

    /// Records the stored value of an object that was read.
    pub(super) fn apply_read_value(&self, key: &Key, value: Option<&Bytes>) {
        if self.index().apply_stored_value(key, value) {
            self.record_became_deletable.notify_one();
        }
    }

    /// Counts an object without a record, which an older version of the server stored.
    pub(super) fn count_unrecorded_object(&self, key: &Key, value: &Bytes) {
        let Ok(tree) = codec::decode_stored_object(value) else { return };
        let mut index = self.index();
        let uid = api_object::uid(&tree);
        if !index.objects_by_uid.contains_key(uid) {
            index.insert(uid, key, "", value.len(), waiting_state_of(&tree), false);
        }
    }

    /// The objects to check: those that no longer count, and with `with_objects` also those in the states
    /// [`WaitingState::Unread`] and [`WaitingState::Failed`].
    pub(super) fn sweep_candidates(&self, with_objects: bool) -> Vec<SweepCandidate> {
        let index = self.index();
        let rows = index.objects_by_uid.iter().filter(|(_, row)| match row.state {
            WaitingState::NotCounted => true,
            WaitingState::Unread | WaitingState::Failed => with_objects,
            WaitingState::Creating | WaitingState::Waiting => false,
        });
        let due = rows.map(|(uid, row)| {
            let (key, state, state_age) = (row.key.clone(), row.state, row.state_since.elapsed());
            SweepCandidate { uid: uid.clone(), key, state, state_age }
        });
        due.collect()
    }

    /// Stops counting an object, whatever its state.
    pub(super) fn stop_counting_object(&self, uid: &str) {
        self.index().stop_counting_object(uid);
        self.record_became_deletable.notify_one();
    }

    /// Forgets an object whose record was deleted.
    pub(super) fn remove_object(&self, uid: &str) {
        self.index().remove(uid);
    }

    /// Waits until a record can be deleted.
    pub(super) async fn wait_for_deletable_record(&self) {
        self.record_became_deletable.notified().await;
    }

    /// The key of the record of an object.
    pub(super) fn key_of_record(&self, uid: &str) -> Option<Key> {
        Key::new(&format!("{}{uid}", self.prefix)).ok()
    }

    fn index(&self) -> MutexGuard<'_, WaitingIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingSlot {
    /// Keeps the slot: the object is stored, or may be.
    pub(super) fn mark_stored(&self) {
        let mut index = self.objects.index();
        let row = index.objects_by_uid.get_mut(&self.uid);
        if let Some(row) = row.filter(|row| row.state == WaitingState::Creating) {
            row.set_state(WaitingState::Unread);
        }
    }
}

impl Drop for WaitingSlot {
    fn drop(&mut self) {
        let mut index = self.objects.index();
        let row = index.objects_by_uid.get(&self.uid);
        if row.is_some_and(|row| row.state == WaitingState::Creating) {
            index.stop_counting_object(&self.uid);
            self.objects.record_became_deletable.notify_one();
        }
    }
}

impl WaitingObject {
    fn set_state(&mut self, state: WaitingState) {
        if self.state != state {
            (self.state, self.state_since) = (state, Instant::now());
        }
    }
}

impl WaitingIndex {
    fn insert(
        &mut self,
        uid: &str,
        key: &Key,
        user: &str,
        bytes: usize,
        state: WaitingState,
        has_stored_record: bool,
    ) {
        let user: Arc<str> = user.into();
        let (key, state_since) = (key.clone(), Instant::now());
        self.uids_by_key.entry(key.clone()).or_default().push(uid.to_owned());
        let row = WaitingObject {
            key,
            user: Arc::clone(&user),
            bytes,
            state,
            state_since,
            has_stored_record,
        };
        self.objects_by_uid.insert(uid.to_owned(), row);
        self.usage_by_user.entry(user).or_default().add_object(bytes);
        self.total_usage.add_object(bytes);
    }

    /// Adds a record. A record that can not be decoded is not counted.
    fn add_waiting_record(&mut self, uid: &str, value: &Bytes) {
        if self.objects_by_uid.contains_key(uid) {
            return;
        }
        let record: Value = serde_json::from_slice(value).unwrap_or_default();
        let text = |member: &str| record.get(member).and_then(Value::as_str).unwrap_or_default();
        let Ok(key) = Key::new(text("key")) else { return };
        let bytes = record.get("bytes").and_then(Value::as_u64);
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let user = text("user");
        self.insert(uid, &key, user, bytes.unwrap_or_default(), WaitingState::Unread, true);
    }

    /// Applies the stored value of a key, and reports whether an object stopped counting.
    ///
    /// An event about another uid does not affect an object in the state [`WaitingState::Unread`]: the event
    /// may be older than the object.
    fn apply_stored_value(&mut self, key: &Key, value: Option<&Bytes>) -> bool {
        let Some(uids) = self.uids_by_key.get(key).cloned() else { return false };
        let tree = match value.map(|value| codec::decode_stored_object(value)) {
            // An object that can not be decoded keeps counting.
            Some(Err(_)) => return false,
            Some(Ok(tree)) => Some(tree),
            None => None,
        };
        let is_waiting = tree.as_ref().is_some_and(admission::has_pending_initializers);
        let mut has_stopped = false;
        for uid in uids {
            let own = tree.as_ref().filter(|tree| api_object::uid(tree) == uid);
            let Some(row) = self.objects_by_uid.get_mut(&uid) else { continue };
            let was_seen = matches!(row.state, WaitingState::Waiting | WaitingState::Failed);
            match own {
                Some(tree) if is_waiting && row.state != WaitingState::NotCounted => {
                    row.set_state(waiting_state_of(tree));
                    self.set_object_bytes(&uid, value.map_or(0, Bytes::len));
                }
                Some(_) if !is_waiting => has_stopped |= self.stop_counting_object(&uid),
                None if was_seen => has_stopped |= self.stop_counting_object(&uid),
                Some(_) | None => {}
            }
        }
        has_stopped
    }

    fn set_object_bytes(&mut self, uid: &str, bytes: usize) {
        let Some(row) = self.objects_by_uid.get_mut(uid) else { return };
        let before = std::mem::replace(&mut row.bytes, bytes);
        for usage in
            self.usage_by_user.get_mut(&row.user).into_iter().chain([&mut self.total_usage])
        {
            usage.bytes = usage.bytes.saturating_sub(before).saturating_add(bytes);
        }
    }

    /// Stops counting an object, and reports whether it counted.
    fn stop_counting_object(&mut self, uid: &str) -> bool {
        let Some(row) = self.objects_by_uid.get_mut(uid) else { return false };
        if row.state == WaitingState::NotCounted {
            return false;
        }
        row.set_state(WaitingState::NotCounted);
        let (user, bytes) = (Arc::clone(&row.user), row.bytes);
        self.subtract_usage(&user, bytes);
        true
    }

    fn remove(&mut self, uid: &str) {
        let Some(row) = self.objects_by_uid.remove(uid) else { return };
        if row.state != WaitingState::NotCounted {
            self.subtract_usage(&row.user, row.bytes);
        }
        if let Some(uids) = self.uids_by_key.get_mut(&row.key) {
            uids.retain(|own| own != uid);
            if uids.is_empty() {
                self.uids_by_key.remove(&row.key);
            }
        }
    }

    fn subtract_usage(&mut self, user: &Arc<str>, bytes: usize) {
        self.total_usage.subtract_object(bytes);
        if let Some(usage) = self.usage_by_user.get_mut(user) {
            usage.subtract_object(bytes);
            if usage.n_objects == 0 {
                self.usage_by_user.remove(user);
            }
        }
    }
}

impl WaitingUsage {
    fn add_object(&mut self, bytes: usize) {
        self.n_objects = self.n_objects.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn subtract_object(&mut self, bytes: usize) {
        self.n_objects = self.n_objects.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

fn fits_waiting_limit(used: WaitingUsage, bytes: usize, max: WaitingObjectsMax) -> bool {
    used.n_objects < max.n_objects && used.bytes.saturating_add(bytes) <= max.n_bytes
}

fn waiting_state_of(tree: &Tree) -> WaitingState {
    if super::has_failed_initialization(tree) {
        WaitingState::Failed
    } else {
        WaitingState::Waiting
    }
}

#[cfg(test)]
mod tests;
