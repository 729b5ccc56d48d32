//! The cache of answers, with exact LRU eviction.
//!
//! A hit takes the read lock of one shard and writes only the use number of the entry, so readers do not wait for each
//! other. A heap orders the entries by use numbers, which may be older than those of the entries. To evict, the cache
//! compares the first item of the heap with its entry: if the numbers are equal, this entry is the least recently used
//! one; otherwise the item goes back into the heap with the newer number.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

use authz::Attributes;
use foldhash::quality::RandomState;
use tokio::time::Instant;

use crate::cache_key::{self, CacheKey};
use crate::decode_response::ReviewStatus;

/// The number of shards, each with its own lock.
const N_SHARDS: usize = 32;

/// The memory of an entry besides its key and its reason, in bytes, rounded up: the entry, its slots in the table and in
/// the heap, and the overhead of the allocator.
const ENTRY_BYTES: usize = 256;

/// The heap is rebuilt when it has more items than twice the entries plus this many.
const HEAP_SLACK: usize = 64;

/// The cached answers of one webhook.
///
/// INVARIANT: the order is locked before a shard, never the other way round.
pub(crate) struct AnswerCache {
    cache_entries_max: usize,
    cache_bytes_max: usize,
    hash_builder: RandomState,
    cache_use_counter: AtomicU64,
    cache_shards: [RwLock<CacheShard>; N_SHARDS],
    eviction_order: Mutex<EvictionOrder>,
}

/// Entries by the hash of their request. Of two requests with one hash only the later one is cached, so that a lookup is
/// one step. Keys are compared all the same.
type CacheShard = HashMap<u64, CacheEntry, BuildHasherDefault<IdentityHasher>>;

struct CacheEntry {
    key: Arc<CacheKey>,
    status: ReviewStatus,
    expires_at: Instant,
    last_use_number: AtomicU64,
    entry_memory_bytes: usize,
}

#[derive(Default)]
struct EvictionOrder {
    /// The use number and the hash of each entry; also of removed entries.
    eviction_heap: BinaryHeap<Reverse<(u64, u64)>>,
    n_cache_entries: usize,
    cache_memory_bytes: usize,
}

/// The result of a lookup.
pub(crate) enum CacheLookupResult {
    Hit(ReviewStatus),
    Miss,
    /// The entry had expired and is removed now.
    Expired,
}

/// The result of storing an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheStoreResult {
    /// The answer is cached, and this many others were evicted.
    Stored { n_evicted: usize },
    /// The answer is larger than the whole cache.
    TooLarge,
}

/// The size of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheSize {
    pub(crate) n_cache_entries: usize,
    pub(crate) cache_memory_bytes: usize,
}

impl AnswerCache {
    pub(crate) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            cache_entries_max: entries_max,
            cache_bytes_max: bytes_max,
            hash_builder: RandomState::default(),
            cache_use_counter: AtomicU64::new(0),
            cache_shards: std::array::from_fn(|_| RwLock::default()),
            eviction_order: Mutex::default(),
        }
    }

    /// The hash of a request, which the other functions take.
    #[inline]
    pub(crate) fn hash(&self, attributes: &Attributes<'_>) -> u64 {
        cache_key::hash(attributes, &self.hash_builder)
    }

    /// Looks up the answer to a request. A hit counts as a use, but does not extend the lifetime. An answer is valid up to
    /// and including the instant at which it expires.
    #[inline]
    pub(crate) fn get(
        &self,
        attributes: &Attributes<'_>,
        hash: u64,
        now: Instant,
    ) -> CacheLookupResult {
        let shard = self.shard_for_hash(hash).read().unwrap_or_else(PoisonError::into_inner);
        match shard.get(&hash).filter(|entry| entry.key.matches_request(attributes)) {
            None => CacheLookupResult::Miss,
            Some(entry) if now <= entry.expires_at => {
                self.mark_entry_used(entry);
                CacheLookupResult::Hit(entry.status.clone())
            }
            Some(_) => {
                drop(shard);
                self.remove_expired_entry(hash, now);
                CacheLookupResult::Expired
            }
        }
    }

    /// Stores an answer, and evicts the least recently used ones if there is no room.
    pub(crate) fn insert(
        &self,
        key: Arc<CacheKey>,
        status: ReviewStatus,
        expires_at: Instant,
    ) -> CacheStoreResult {
        let n_bytes = ENTRY_BYTES + key.key_memory_bytes() + status.reason_memory_bytes;
        if n_bytes > self.cache_bytes_max || self.cache_entries_max == 0 {
            return CacheStoreResult::TooLarge;
        }
        let hash = key.request_hash();
        let mut eviction_order = self.lock_eviction_order();
        let use_number = self.cache_use_counter.fetch_add(1, Ordering::Relaxed) + 1;
        let entry = CacheEntry {
            key,
            status,
            expires_at,
            last_use_number: AtomicU64::new(use_number),
            entry_memory_bytes: n_bytes,
        };
        let replaced = self.write(hash).insert(hash, entry);
        eviction_order.n_cache_entries += 1;
        eviction_order.cache_memory_bytes += n_bytes;
        if let Some(replaced) = replaced {
            eviction_order.subtract_entry_from_cache_size(&replaced);
        }
        eviction_order.eviction_heap.push(Reverse((use_number, hash)));
        let n_evicted = self.evict_excess_entries(&mut eviction_order);
        if eviction_order.eviction_heap.len() > 2 * eviction_order.n_cache_entries + HEAP_SLACK {
            eviction_order.eviction_heap = self.rebuild_eviction_heap();
        }
        CacheStoreResult::Stored { n_evicted }
    }

    pub(crate) fn size(&self) -> CacheSize {
        let eviction_order = self.lock_eviction_order();
        CacheSize {
            n_cache_entries: eviction_order.n_cache_entries,
            cache_memory_bytes: eviction_order.cache_memory_bytes,
        }
    }

    /// Gives the entry the newest use number. Repeated uses of one entry write nothing.
    #[inline]
    fn mark_entry_used(&self, entry: &CacheEntry) {
        let last_use_number = entry.last_use_number.load(Ordering::Relaxed);
        if last_use_number != self.cache_use_counter.load(Ordering::Relaxed) {
            let use_number = self.cache_use_counter.fetch_add(1, Ordering::Relaxed) + 1;
            entry.last_use_number.fetch_max(use_number, Ordering::Relaxed);
        }
    }

    fn evict_excess_entries(&self, eviction_order: &mut EvictionOrder) -> usize {
        let mut n_evicted = 0;
        while eviction_order.n_cache_entries > self.cache_entries_max
            || eviction_order.cache_memory_bytes > self.cache_bytes_max
        {
            let Some(Reverse((heap_use_number, hash))) = eviction_order.eviction_heap.pop() else {
                break; // INVARIANT on the heap: every entry is in it.
            };
            let mut shard = self.write(hash);
            let Some(entry) = shard.get(&hash) else { continue };
            let last_use_number = entry.last_use_number.load(Ordering::Relaxed);
            if last_use_number > heap_use_number {
                eviction_order.eviction_heap.push(Reverse((last_use_number, hash)));
            } else if let Some(evicted) = shard.remove(&hash) {
                eviction_order.subtract_entry_from_cache_size(&evicted);
                n_evicted += 1;
            }
        }
        n_evicted
    }

    #[cold]
    fn remove_expired_entry(&self, hash: u64, now: Instant) {
        let mut eviction_order = self.lock_eviction_order();
        let mut shard = self.write(hash);
        // Another thread may have stored a new answer.
        if shard.get(&hash).is_some_and(|entry| entry.expires_at < now)
            && let Some(expired) = shard.remove(&hash)
        {
            eviction_order.subtract_entry_from_cache_size(&expired);
        }
    }

    /// A heap without the items of removed entries.
    fn rebuild_eviction_heap(&self) -> BinaryHeap<Reverse<(u64, u64)>> {
        let mut heap = Vec::new();
        for shard in &self.cache_shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            let items = shard.iter().map(|(hash, entry)| {
                Reverse((entry.last_use_number.load(Ordering::Relaxed), *hash))
            });
            heap.extend(items);
        }
        heap.into()
    }

    /// The hash table of a shard uses the lowest and the highest bits, so other bits choose the shard.
    #[expect(clippy::indexing_slicing, reason = "INVARIANT: the remainder is less than N_SHARDS")]
    #[inline]
    fn shard_for_hash(&self, hash: u64) -> &RwLock<CacheShard> {
        let [_, _, _, _, byte, ..] = hash.to_le_bytes();
        &self.cache_shards[usize::from(byte) % N_SHARDS]
    }

    fn write(&self, hash: u64) -> RwLockWriteGuard<'_, CacheShard> {
        self.shard_for_hash(hash).write().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_eviction_order(&self) -> MutexGuard<'_, EvictionOrder> {
        self.eviction_order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EvictionOrder {
    fn subtract_entry_from_cache_size(&mut self, entry: &CacheEntry) {
        self.n_cache_entries -= 1;
        self.cache_memory_bytes -= entry.entry_memory_bytes;
    }
}

/// Hashes a number to itself, because the keys are hashes already.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
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
