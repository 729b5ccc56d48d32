//! The objects that wait for initializers, whose they are and how much they take.
//!
//! Waiting objects live in the store, so a limit on them has to count those of other servers and of
//! earlier processes, and has to know who created each. For every waiting object the store holds a
//! record with the key of the object and its creator, written in the same transaction. The counts follow
//! from the records and from what the watch over the store tells of the objects themselves:
//! 1. A creation [reserves](WaitingObjects::reserve) its part of the limits, in memory.
//! 2. A record that this or another server writes counts from then on.
//! 3. An object that is initialized or gone no longer counts. [`super::sweep`] deletes its record.
//!
//! On one server the limits are exact. Several servers learn of each other's records by the watch, so
//! together they may exceed a limit by what is created within the delay of the watch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use admission::{InitializerOptions, WaitingObjectsMax};
use api_object::Tree;
use bytes::Bytes;
use serde_json::{Value, json};
use store::{Change, Event, Item, Key};
use tokio::sync::Notify;

/// Below the prefix there is a record here for each waiting object, by its uid.
pub(crate) const WAITING_PATH: &str = "waitingobjects";

/// All waiting objects that this server knows of.
#[derive(Debug)]
pub(crate) struct WaitingObjects {
    /// The prefix of the keys of records.
    prefix: String,
    table: Mutex<Table>,
    /// A record has become useless.
    settled: Notify,
}

#[derive(Debug, Default)]
struct Table {
    by_uid: HashMap<String, Row>,
    /// An object and the next one of its name may both be known for a moment.
    uids_by_key: HashMap<Key, Vec<String>>,
    by_user: HashMap<Arc<str>, Usage>,
    total: Usage,
}

/// The number and the bytes of some objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usage {
    pub(super) n_objects: usize,
    pub(super) bytes: usize,
}

#[derive(Debug)]
struct Row {
    key: Key,
    user: Arc<str>,
    bytes: usize,
    state: RowState,
    /// When it came into this state.
    since: Instant,
    /// An object that was stored without one has none.
    has_record: bool,
}

/// The state of a waiting object, as far as this server knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowState {
    /// This server is about to store it.
    Creating,
    /// There is a record; the object has to be read.
    Unread,
    /// It waits.
    Waiting,
    /// An initializer gave up on it, so it has to be deleted.
    Failed,
    /// It is initialized, gone or was never stored: it does not count, and its record is useless.
    Settled,
}

/// A waiting object that somebody has to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) uid: String,
    pub(super) key: Key,
    pub(super) state: RowState,
    /// How long it has been in this state.
    pub(super) age: Duration,
}

/// The user who creates an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Creator<'a> {
    /// The name that counts: see [`authz::user_limit_key`].
    pub(super) name: &'a str,
    /// An administrator, who is never refused: somebody has to be able to repair.
    pub(super) is_exempt: bool,
}

/// Why no further object may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// All users together have reached the limit.
    Total,
    /// This user has.
    User,
}

/// The part of the limits of an object that is about to be stored. It is given back when this is
/// dropped, unless the object is [stored](Self::keep).
#[derive(Debug)]
pub(super) struct Reservation {
    objects: Arc<WaitingObjects>,
    uid: String,
    /// The record to be written with the object.
    pub(super) record: (Key, Bytes),
}

impl WaitingObjects {
    /// No objects yet, below a prefix without a slash at the end.
    pub(crate) fn new(prefix: &str) -> Self {
        let prefix = format!("{prefix}/{WAITING_PATH}/");
        Self { prefix, table: Mutex::default(), settled: Notify::new() }
    }

    /// Takes the part of the limits that one more object needs. The uid is one that this server made.
    pub(super) fn reserve(
        self: &Arc<Self>,
        options: &InitializerOptions,
        creator: Creator<'_>,
        key: &Key,
        uid: &str,
        bytes: usize,
    ) -> Result<Reservation, Full> {
        // A uid is letters, digits and dashes, so that this is always a key.
        let record_key = Key::new(&format!("{}{uid}", self.prefix)).map_err(|_| Full::Total)?;
        let mut table = self.table();
        let user = creator.name;
        if !creator.is_exempt {
            if !fits(table.total, bytes, options.waiting_max) {
                return Err(Full::Total);
            }
            let used = table.by_user.get(user).copied().unwrap_or_default();
            if !fits(used, bytes, options.waiting_per_user_max) {
                return Err(Full::User);
            }
        }
        table.insert(uid, key, user, bytes, RowState::Creating, true);
        let record = json!({"key": key.as_str(), "user": user, "bytes": bytes});
        let record = (record_key, Bytes::from(record.to_string()));
        Ok(Reservation { objects: Arc::clone(self), uid: uid.to_owned(), record })
    }

    /// Takes notice of all records that there are. What happened to the objects meanwhile is not known.
    pub(crate) fn load(&self, items: &[Item]) {
        let records: HashMap<&str, &Item> = items
            .iter()
            .filter_map(|item| Some((item.key.as_str().strip_prefix(&self.prefix)?, item)))
            .collect();
        let mut table = self.table();
        let rows = table
            .by_uid
            .iter()
            .filter(|(_, row)| row.has_record && row.state != RowState::Creating);
        let gone: Vec<String> = rows
            .map(|(uid, _)| uid.clone())
            .filter(|uid| !records.contains_key(uid.as_str()))
            .collect();
        gone.iter().for_each(|uid| table.remove(uid));
        for (uid, item) in records {
            table.put_record(uid, &item.entry.value);
        }
        for row in table.by_uid.values_mut() {
            if matches!(row.state, RowState::Waiting | RowState::Failed) {
                row.become_state(RowState::Unread);
            }
        }
    }

    /// Something happened.
    pub(crate) fn tell(&self, events: &[Event]) {
        let mut table = self.table();
        let mut is_settled = false;
        for event in events {
            let value = match &event.change {
                Change::Create(entry) | Change::Update { entry, .. } => Some(&entry.value),
                Change::Delete { .. } => None,
            };
            match (event.key.as_str().strip_prefix(&self.prefix), value) {
                (Some(uid), Some(value)) => table.put_record(uid, value),
                (Some(uid), None) => table.remove(uid),
                (None, value) => is_settled |= table.see_object(&event.key, value),
            }
        }
        if is_settled {
            self.settled.notify_one();
        }
    }

    /// Takes notice of what is stored under the key of an object, which somebody has read.
    pub(super) fn see(&self, key: &Key, value: Option<&Bytes>) {
        if self.table().see_object(key, value) {
            self.settled.notify_one();
        }
    }

    /// Counts an object that has no record, because a program without records stored it.
    pub(super) fn adopt(&self, key: &Key, value: &Bytes) {
        let Ok(tree) = codec::from_stored(value) else { return };
        let mut table = self.table();
        let uid = api_object::uid(&tree);
        if !table.by_uid.contains_key(uid) {
            table.insert(uid, key, "", value.len(), state_of(&tree), false);
        }
    }

    /// The rows to check: useless records, and with `with_objects` also rows in the states
    /// [`RowState::Unread`] and [`RowState::Failed`].
    pub(super) fn due(&self, with_objects: bool) -> Vec<Due> {
        let table = self.table();
        let rows = table.by_uid.iter().filter(|(_, row)| match row.state {
            RowState::Settled => true,
            RowState::Unread | RowState::Failed => with_objects,
            RowState::Creating | RowState::Waiting => false,
        });
        let due = rows.map(|(uid, row)| {
            let (key, state, age) = (row.key.clone(), row.state, row.since.elapsed());
            Due { uid: uid.clone(), key, state, age }
        });
        due.collect()
    }

    /// Lets an object no longer count, whatever became of it.
    pub(super) fn settle(&self, uid: &str) {
        self.table().settle(uid);
        self.settled.notify_one();
    }

    /// Forgets an object whose record is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.table().remove(uid);
    }

    /// Waits until a record has become useless.
    pub(super) async fn settled(&self) {
        self.settled.notified().await;
    }

    /// The key of the record of an object.
    pub(super) fn record_key(&self, uid: &str) -> Option<Key> {
        Key::new(&format!("{}{uid}", self.prefix)).ok()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// The object is stored, or may be.
    pub(super) fn keep(&self) {
        let mut table = self.objects.table();
        let row = table.by_uid.get_mut(&self.uid);
        if let Some(row) = row.filter(|row| row.state == RowState::Creating) {
            row.become_state(RowState::Unread);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut table = self.objects.table();
        let row = table.by_uid.get(&self.uid);
        if row.is_some_and(|row| row.state == RowState::Creating) {
            table.settle(&self.uid);
            self.objects.settled.notify_one();
        }
    }
}

impl Row {
    fn become_state(&mut self, state: RowState) {
        if self.state != state {
            (self.state, self.since) = (state, Instant::now());
        }
    }
}

impl Table {
    fn insert(
        &mut self,
        uid: &str,
        key: &Key,
        user: &str,
        bytes: usize,
        state: RowState,
        has_record: bool,
    ) {
        let user: Arc<str> = user.into();
        let (key, since) = (key.clone(), Instant::now());
        self.uids_by_key.entry(key.clone()).or_default().push(uid.to_owned());
        let row = Row { key, user: Arc::clone(&user), bytes, state, since, has_record };
        self.by_uid.insert(uid.to_owned(), row);
        self.by_user.entry(user).or_default().add(bytes);
        self.total.add(bytes);
    }

    /// Takes notice of a record. One that can not be read counts for nobody.
    fn put_record(&mut self, uid: &str, value: &Bytes) {
        if self.by_uid.contains_key(uid) {
            return;
        }
        let record: Value = serde_json::from_slice(value).unwrap_or_default();
        let Some(key) = record["key"].as_str().and_then(|key| Key::new(key).ok()) else { return };
        let bytes = record["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
        let user = record["user"].as_str().unwrap_or_default();
        self.insert(uid, &key, user, bytes.unwrap_or_default(), RowState::Unread, true);
    }

    /// Takes notice of what is stored under a key, and reports whether that settles a waiting object.
    ///
    /// An event about another uid does not settle a row that is [`RowState::Unread`]: the event may be
    /// older than the object.
    fn see_object(&mut self, key: &Key, value: Option<&Bytes>) -> bool {
        let Some(uids) = self.uids_by_key.get(key).cloned() else { return false };
        let tree = match value.map(|value| codec::from_stored(value)) {
            // Nobody knows what it is, so it counts as it did.
            Some(Err(_)) => return false,
            Some(Ok(tree)) => Some(tree),
            None => None,
        };
        let is_waiting = tree.as_ref().is_some_and(admission::has_pending_initializers);
        let mut is_settled = false;
        for uid in uids {
            let own = tree.as_ref().filter(|tree| api_object::uid(tree) == uid);
            let Some(row) = self.by_uid.get_mut(&uid) else { continue };
            let was_seen = matches!(row.state, RowState::Waiting | RowState::Failed);
            match own {
                Some(tree) if is_waiting && row.state != RowState::Settled => {
                    row.become_state(state_of(tree));
                    self.resize(&uid, value.map_or(0, Bytes::len));
                }
                Some(_) if !is_waiting => is_settled |= self.settle(&uid),
                None if was_seen => is_settled |= self.settle(&uid),
                Some(_) | None => {}
            }
        }
        is_settled
    }

    fn resize(&mut self, uid: &str, bytes: usize) {
        let Some(row) = self.by_uid.get_mut(uid) else { return };
        let before = std::mem::replace(&mut row.bytes, bytes);
        for usage in self.by_user.get_mut(&row.user).into_iter().chain([&mut self.total]) {
            usage.bytes = usage.bytes.saturating_sub(before).saturating_add(bytes);
        }
    }

    /// Lets an object no longer count, and reports whether it did.
    fn settle(&mut self, uid: &str) -> bool {
        let Some(row) = self.by_uid.get_mut(uid) else { return false };
        if row.state == RowState::Settled {
            return false;
        }
        row.become_state(RowState::Settled);
        let (user, bytes) = (Arc::clone(&row.user), row.bytes);
        self.uncharge(&user, bytes);
        true
    }

    fn remove(&mut self, uid: &str) {
        let Some(row) = self.by_uid.remove(uid) else { return };
        if row.state != RowState::Settled {
            self.uncharge(&row.user, row.bytes);
        }
        if let Some(uids) = self.uids_by_key.get_mut(&row.key) {
            uids.retain(|own| own != uid);
            if uids.is_empty() {
                self.uids_by_key.remove(&row.key);
            }
        }
    }

    fn uncharge(&mut self, user: &Arc<str>, bytes: usize) {
        self.total.subtract(bytes);
        if let Some(usage) = self.by_user.get_mut(user) {
            usage.subtract(bytes);
            if usage.n_objects == 0 {
                self.by_user.remove(user);
            }
        }
    }
}

impl Usage {
    fn add(&mut self, bytes: usize) {
        self.n_objects = self.n_objects.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn subtract(&mut self, bytes: usize) {
        self.n_objects = self.n_objects.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

fn fits(used: Usage, bytes: usize, max: WaitingObjectsMax) -> bool {
    used.n_objects < max.n_objects && used.bytes.saturating_add(bytes) <= max.bytes
}

fn state_of(tree: &Tree) -> RowState {
    if super::has_failed(tree) { RowState::Failed } else { RowState::Waiting }
}

#[cfg(test)]
mod tests;
