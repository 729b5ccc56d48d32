//! The graph of objects and their owners, and the work items that follow from its changes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api_object::{FOREGROUND_FINALIZER, Tree, owner_references};
use store::{Change, Entry, Event, Key};

/// A task of the garbage collector about the object with this key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum GarbageCollectorWorkItem {
    /// Check whether the owners of this object exist.
    CheckOwners(Key),
    /// Delete or orphan the dependents of this owner, which waits for that.
    ReleaseOwner(Key),
}

impl GarbageCollectorWorkItem {
    pub(super) fn key(&self) -> &Key {
        let (Self::CheckOwners(key) | Self::ReleaseOwner(key)) = self;
        key
    }
}

/// The owners and dependents, by the uid of the owner.
#[derive(Debug, Default)]
pub(super) struct OwnerGraph {
    dependents_by_owner: HashMap<String, BTreeSet<Key>>,
    owners_by_dependent: HashMap<Key, Vec<String>>,
    /// Owners that are being deleted and wait for their dependents.
    owners_awaiting_dependents: HashMap<String, Key>,
}

/// The graph behind a lock: the watch updates it while workers read it. The lock is never held across an await.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedOwnerGraph(Arc<Mutex<OwnerGraph>>);

impl SharedOwnerGraph {
    pub(super) fn lock(&self) -> MutexGuard<'_, OwnerGraph> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys of the objects that name this uid as an owner.
    pub(super) fn dependents_of(&self, uid: &str) -> Vec<Key> {
        self.lock().dependents_by_owner.get(uid).into_iter().flatten().cloned().collect()
    }
}

impl OwnerGraph {
    pub(super) fn apply_store_event(
        &mut self,
        event: &Event,
        queue: &mut HashSet<GarbageCollectorWorkItem>,
    ) {
        match &event.change {
            Change::Create(entry) | Change::Update { entry, .. } => {
                self.insert(&event.key, entry, queue);
            }
            Change::Delete { prev } => {
                for owner in self.remove(&event.key) {
                    if let Some(key) = self.owners_awaiting_dependents.get(&owner) {
                        queue.insert(GarbageCollectorWorkItem::ReleaseOwner(key.clone()));
                    }
                }
                if let Some(uid) = uid_of_entry(prev) {
                    self.owners_awaiting_dependents.remove(&uid);
                    let dependents = self.dependents_by_owner.get(&uid).into_iter().flatten();
                    queue.extend(dependents.cloned().map(GarbageCollectorWorkItem::CheckOwners));
                }
            }
        }
    }

    /// Adds an object, or replaces its earlier version.
    pub(super) fn insert(
        &mut self,
        key: &Key,
        entry: &Entry,
        queue: &mut HashSet<GarbageCollectorWorkItem>,
    ) {
        let value = &entry.value;
        let contains = |needle: &str| memchr::memmem::find(value, needle.as_bytes()).is_some();
        let may_be_waiting = contains(FOREGROUND_FINALIZER) || contains("\"orphan\"");
        let owners_before = self.remove(key);
        if !may_be_waiting && !contains("\"ownerReferences\"") {
            return;
        }
        let Ok(tree) = codec::decode_stored_object(value) else { return };
        let owners = owner_uids(&tree);
        for owner in &owners {
            self.dependents_by_owner.entry(owner.clone()).or_default().insert(key.clone());
        }
        if !owners.is_empty() {
            if owners != owners_before {
                queue.insert(GarbageCollectorWorkItem::CheckOwners(key.clone()));
            }
            self.owners_by_dependent.insert(key.clone(), owners);
        }
        if may_be_waiting && api_object::is_terminating(&tree) {
            self.owners_awaiting_dependents.insert(api_object::uid(&tree).to_owned(), key.clone());
            queue.insert(GarbageCollectorWorkItem::ReleaseOwner(key.clone()));
        }
    }

    /// Removes an object as a dependent and returns the uids of its owners.
    fn remove(&mut self, key: &Key) -> Vec<String> {
        let owners = self.owners_by_dependent.remove(key).unwrap_or_default();
        for owner in &owners {
            if let Some(keys) = self.dependents_by_owner.get_mut(owner) {
                keys.remove(key);
                if keys.is_empty() {
                    self.dependents_by_owner.remove(owner);
                }
            }
        }
        owners
    }
}

fn uid_of_entry(entry: &Entry) -> Option<String> {
    let tree: Tree = codec::decode_stored_object(&entry.value).ok()?;
    Some(api_object::uid(&tree).to_owned()).filter(|uid| !uid.is_empty())
}

fn owner_uids(tree: &Tree) -> Vec<String> {
    let uids = owner_references(tree).iter().filter_map(|owner| owner["uid"].as_str());
    uids.map(str::to_owned).collect()
}
