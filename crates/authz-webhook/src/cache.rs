//! Answers that are kept for a while.
//!
//! Which answer gives way is decided exactly: the one that was used longest ago. Yet a hit writes
//! nothing that other readers wait for. Each entry carries the number of its last use, readers hold
//! only the read lock of one of many shards, and the order is put right when something has to go: a
//! heap holds each entry under the number it had when the heap last looked, which is never more than
//! its number now. When the first of the heap still has the number it is held under, nothing can
//! have been unused for longer; otherwise it goes back under its new number.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

use authz::Attributes;
use foldhash::quality::RandomState;
use tokio::time::Instant;

use crate::decode::ReviewStatus;
use crate::key::{self, Key};

/// How many parts have a lock of their own.
const N_SHARDS: usize = 32;

/// What an entry takes besides its key and its reason, in bytes: the entry, its slots in the table
/// and in the heap, and what the allocator adds. Rounded up.
const ENTRY_BYTES: usize = 256;

/// How many more items than twice the entries the heap may hold before it is made anew.
const HEAP_SLACK: usize = 64;

/// The answers of one webhook.
///
/// INVARIANT: the order is locked before a shard, never the other way round.
pub(crate) struct Cache {
    entries_max: usize,
    bytes_max: usize,
    seed: RandomState,
    uses: AtomicU64,
    shards: [RwLock<Shard>; N_SHARDS],
    order: Mutex<Order>,
}

/// Entries by the hash of their question. Two questions of one hash do not fit in at once; the later
/// one takes the place, so that a lookup is one step. Keys are compared nevertheless.
type Shard = HashMap<u64, Entry, BuildHasherDefault<AsIs>>;

struct Entry {
    key: Arc<Key>,
    status: ReviewStatus,
    expires: Instant,
    last_use: AtomicU64,
    n_bytes: usize,
}

#[derive(Default)]
struct Order {
    /// The number of a use and the hash of the entry. May name entries that are gone.
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    n_entries: usize,
    n_bytes: usize,
}

/// What a lookup found.
pub(crate) enum Lookup {
    Hit(ReviewStatus),
    Miss,
    /// It was too old, and is gone now.
    Expired,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storing {
    /// It is kept, and so many others had to go.
    Stored { n_evicted: usize },
    /// It is larger than everything together may be.
    TooLarge,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) n_entries: usize,
    pub(crate) n_bytes: usize,
}

impl Cache {
    pub(crate) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            entries_max,
            bytes_max,
            seed: RandomState::default(),
            uses: AtomicU64::new(0),
            shards: std::array::from_fn(|_| RwLock::default()),
            order: Mutex::default(),
        }
    }

    /// The hash of a question, for the other functions.
    #[inline]
    pub(crate) fn hash(&self, attributes: &Attributes<'_>) -> u64 {
        key::hash(attributes, &self.seed)
    }

    /// Looks for the answer to a question. A hit counts as a use; it does not make the answer last
    /// longer. An answer is good up to and including the instant at which it expires.
    #[inline]
    pub(crate) fn get(&self, attributes: &Attributes<'_>, hash: u64, now: Instant) -> Lookup {
        let shard = self.shard(hash).read().unwrap_or_else(PoisonError::into_inner);
        match shard.get(&hash).filter(|entry| entry.key.is_of(attributes)) {
            None => Lookup::Miss,
            Some(entry) if now <= entry.expires => {
                self.touch(entry);
                Lookup::Hit(entry.status.clone())
            }
            Some(_) => {
                drop(shard);
                self.remove_expired(hash, now);
                Lookup::Expired
            }
        }
    }

    /// Keeps an answer, and lets go what was unused for longest if there is no room.
    pub(crate) fn store(&self, key: Arc<Key>, status: ReviewStatus, expires: Instant) -> Storing {
        let n_bytes = ENTRY_BYTES + key.n_bytes() + status.n_bytes;
        if n_bytes > self.bytes_max || self.entries_max == 0 {
            return Storing::TooLarge;
        }
        let hash = key.hash_value();
        let mut order = self.lock_order();
        let use_number = self.uses.fetch_add(1, Ordering::Relaxed) + 1;
        let entry = Entry { key, status, expires, last_use: AtomicU64::new(use_number), n_bytes };
        let replaced = self.write(hash).insert(hash, entry);
        order.n_entries += 1;
        order.n_bytes += n_bytes;
        if let Some(replaced) = replaced {
            order.forget(&replaced);
        }
        order.heap.push(Reverse((use_number, hash)));
        let n_evicted = self.evict(&mut order);
        if order.heap.len() > 2 * order.n_entries + HEAP_SLACK {
            order.heap = self.entries_in_order();
        }
        Storing::Stored { n_evicted }
    }

    pub(crate) fn size(&self) -> Size {
        let order = self.lock_order();
        Size { n_entries: order.n_entries, n_bytes: order.n_bytes }
    }

    /// Gives the entry the number of the latest use. Repeated use of one entry writes nothing.
    #[inline]
    fn touch(&self, entry: &Entry) {
        let last_use = entry.last_use.load(Ordering::Relaxed);
        if last_use != self.uses.load(Ordering::Relaxed) {
            let use_number = self.uses.fetch_add(1, Ordering::Relaxed) + 1;
            entry.last_use.fetch_max(use_number, Ordering::Relaxed);
        }
    }

    fn evict(&self, order: &mut Order) -> usize {
        let mut n_evicted = 0;
        while order.n_entries > self.entries_max || order.n_bytes > self.bytes_max {
            let Some(Reverse((held_under, hash))) = order.heap.pop() else {
                break; // INVARIANT on the heap: every entry is in it.
            };
            let mut shard = self.write(hash);
            let Some(entry) = shard.get(&hash) else { continue };
            let last_use = entry.last_use.load(Ordering::Relaxed);
            if last_use > held_under {
                order.heap.push(Reverse((last_use, hash)));
            } else if let Some(evicted) = shard.remove(&hash) {
                order.forget(&evicted);
                n_evicted += 1;
            }
        }
        n_evicted
    }

    #[cold]
    fn remove_expired(&self, hash: u64, now: Instant) {
        let mut order = self.lock_order();
        let mut shard = self.write(hash);
        // Another thread may have put a new answer there.
        if shard.get(&hash).is_some_and(|entry| entry.expires < now)
            && let Some(expired) = shard.remove(&hash)
        {
            order.forget(&expired);
        }
    }

    /// The heap without items of entries that are gone.
    fn entries_in_order(&self) -> BinaryHeap<Reverse<(u64, u64)>> {
        let mut heap = Vec::new();
        for shard in &self.shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            let items = shard
                .iter()
                .map(|(hash, entry)| Reverse((entry.last_use.load(Ordering::Relaxed), *hash)));
            heap.extend(items);
        }
        heap.into()
    }

    /// The table of a shard looks at the lowest and the highest bits, so others choose the shard.
    #[inline]
    fn shard(&self, hash: u64) -> &RwLock<Shard> {
        let [_, _, _, _, byte, ..] = hash.to_le_bytes();
        &self.shards[usize::from(byte) % N_SHARDS]
    }

    fn write(&self, hash: u64) -> RwLockWriteGuard<'_, Shard> {
        self.shard(hash).write().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Order {
    fn forget(&mut self, entry: &Entry) {
        self.n_entries -= 1;
        self.n_bytes -= entry.n_bytes;
    }
}

/// Takes a number for its own hash: the numbers here are hashes already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
}

#[cfg(test)]
mod tests;
