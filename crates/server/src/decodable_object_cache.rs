//! A cache of the versions of objects that reads, lists and watches can send as they are stored.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use api_resources::Resource;
use foldhash::quality::RandomState;
use store::{Entry, Key, Revision};

use crate::undecodable_objects::undecodable_placeholder;

/// How many versions the cache holds, at 8 bytes each.
const VERSIONS_MAX: usize = 1 << 18;

/// A cache of the versions of objects that can be decoded, so that a version is checked once and not for
/// every list and watch. A version that was evicted is checked again.
pub(crate) struct DecodableObjectCache {
    /// The prefix of the keys in the store, without a slash at the end.
    key_prefix: String,
    /// Each process uses a new random hash key.
    hasher: RandomState,
    /// Each slot holds the hash of a key and a revision. The revision selects the slot: objects that were written one after
    /// the other are in adjacent slots, so a list reads the slots in order.
    decodable_object_hashes: Box<[AtomicU64]>,
}

/// An object as lists and watches show it.
pub(crate) struct EntryOrPlaceholder {
    /// The stored object, or its placeholder.
    pub(crate) entry: Entry,
    pub(crate) is_placeholder: bool,
}

impl DecodableObjectCache {
    /// Creates an empty cache for the keys under this prefix.
    pub(crate) fn new(prefix: &str) -> Self {
        let decodable_version_hashes = (0..VERSIONS_MAX).map(|_| AtomicU64::new(0)).collect();
        Self {
            key_prefix: prefix.to_owned(),
            hasher: RandomState::default(),
            decodable_object_hashes: decodable_version_hashes,
        }
    }

    /// The stored object, or a placeholder if it cannot be decoded.
    pub(crate) fn entry_or_placeholder(
        &self,
        resource: &Resource,
        key: &Key,
        entry: Entry,
    ) -> EntryOrPlaceholder {
        match self.placeholder_if_undecodable(resource, key, &entry) {
            None => EntryOrPlaceholder { entry, is_placeholder: false },
            Some(entry) => EntryOrPlaceholder { entry, is_placeholder: true },
        }
    }

    /// The placeholder of an object that cannot be decoded; `None` if it can.
    pub(crate) fn placeholder_if_undecodable(
        &self,
        resource: &Resource,
        key: &Key,
        entry: &Entry,
    ) -> Option<Entry> {
        if self.is_object_revision_decodable(key, entry) {
            return None;
        }
        let why = match codec::decode_stored_object(&entry.value) {
            Err(error) => error.to_string(),
            Ok(_) => codec::MalformedStoredObject.to_string(),
        };
        let names =
            api_resources::namespace_and_name_in_key(&self.key_prefix, resource, key.as_str());
        let (namespace, name) = names.unwrap_or_default();
        let tree = undecodable_placeholder(resource, namespace, name, &entry.value, &why);
        Some(Entry { value: codec::encode_stored_object(&tree).into(), ..entry.clone() })
    }

    /// Whether a read found that this version can be decoded and is the object of its key.
    pub(crate) fn is_object_revision_checked(&self, key: &Key, revision: Revision) -> bool {
        let (hash, slot) = self.checked_object_revision_hash(key, revision);
        slot.is_some_and(|slot| slot.load(Ordering::Relaxed) == hash)
    }

    /// Remembers that this version can be decoded and is the object of its key.
    pub(crate) fn remember_checked_object_revision(&self, key: &Key, revision: Revision) {
        let (hash, slot) = self.checked_object_revision_hash(key, revision);
        if let Some(slot) = slot {
            slot.store(hash, Ordering::Relaxed);
        }
    }

    /// The hash of a version that was compared with its key. It differs from that of a version which was only decoded.
    fn checked_object_revision_hash(
        &self,
        key: &Key,
        revision: Revision,
    ) -> (u64, Option<&AtomicU64>) {
        let hash = self.hasher.hash_one((key.as_str(), revision.as_u64())) | 0b11;
        (hash, self.cache_slot_of_revision(revision, 1))
    }

    /// The slot of a revision. Both kinds of checks have one, so that reads and lists do not evict the hashes of each other.
    fn cache_slot_of_revision(&self, revision: Revision, kind: usize) -> Option<&AtomicU64> {
        let number = usize::try_from(revision.as_u64()).unwrap_or_default();
        self.decodable_object_hashes.get(number.wrapping_mul(2).wrapping_add(kind) % VERSIONS_MAX)
    }

    fn is_object_revision_decodable(&self, key: &Key, entry: &Entry) -> bool {
        // No version has the hash 0, which marks an empty slot, and none that was only decoded has both lowest bits.
        let hash = self.hasher.hash_one((key.as_str(), entry.mod_rev.as_u64()));
        let hash = (hash & !0b10) | 0b01;
        let Some(cached) = self.cache_slot_of_revision(entry.mod_rev, 0) else { return false };
        if cached.load(Ordering::Relaxed) == hash {
            return true;
        }
        let is_version_decodable = codec::check_stored_object(&entry.value).is_ok();
        if is_version_decodable {
            cached.store(hash, Ordering::Relaxed);
        }
        is_version_decodable
    }
}

impl fmt::Debug for DecodableObjectCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodableVersions").finish_non_exhaustive()
    }
}
