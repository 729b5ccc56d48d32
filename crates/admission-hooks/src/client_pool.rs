//! A pool of clients that keeps the most recently used ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of services whose clients are pooled. Calls to more services work, with more handshakes.
pub(crate) const SERVICES_MAX: usize = 200;

/// Values by key, with eviction of the least recently used value.
#[derive(Debug)]
pub(crate) struct ClientPool<T> {
    pool_state: Mutex<PoolState<T>>,
}

#[derive(Debug)]
struct PoolState<T> {
    pool_entries: HashMap<PoolKey, PoolEntry<T>>,
    n_keys_created: u64,
    n_uses: u64,
}

#[derive(Debug)]
struct PoolEntry<T> {
    value: Arc<T>,
    last_use_number: u64,
}

/// The key of a value that may be in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PoolKey(u64);

impl<T> Default for ClientPool<T> {
    fn default() -> Self {
        Self {
            pool_state: Mutex::new(PoolState {
                pool_entries: HashMap::new(),
                n_keys_created: 0,
                n_uses: 0,
            }),
        }
    }
}

impl<T> ClientPool<T> {
    /// Returns a new key.
    pub(crate) fn new_pool_key(&self) -> PoolKey {
        let mut state = self.lock();
        state.n_keys_created += 1;
        PoolKey(state.n_keys_created)
    }

    /// Returns the value of a key, if the pool has it, and marks it as used.
    pub(crate) fn get(&self, key: PoolKey) -> Option<Arc<T>> {
        let mut state = self.lock();
        let last_use_number = state.next_use_number();
        let entry = state.pool_entries.get_mut(&key)?;
        entry.last_use_number = last_use_number;
        Some(Arc::clone(&entry.value))
    }

    /// Inserts a value and returns the pooled one. A value is created without the lock, so another caller
    /// may have inserted one in the meantime; then that one wins.
    pub(crate) fn insert(&self, key: PoolKey, value: T) -> Arc<T> {
        let mut state = self.lock();
        let last_use_number = state.next_use_number();
        let entry = state
            .pool_entries
            .entry(key)
            .or_insert(PoolEntry { value: Arc::new(value), last_use_number });
        entry.last_use_number = last_use_number;
        let value = Arc::clone(&entry.value);
        let evicted = state.evict_least_recently_used();
        // The evicted value is dropped after the lock is released.
        drop(state);
        drop(evicted);
        value
    }

    /// Removes the value of a key that is no longer used.
    pub(crate) fn remove(&self, key: PoolKey) {
        let removed = self.lock().pool_entries.remove(&key);
        drop(removed);
    }

    fn lock(&self) -> MutexGuard<'_, PoolState<T>> {
        self.pool_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> PoolState<T> {
    fn next_use_number(&mut self) -> u64 {
        self.n_uses += 1;
        self.n_uses
    }

    /// Removes the least recently used value if there are too many. It searches all values, which are few.
    fn evict_least_recently_used(&mut self) -> Option<PoolEntry<T>> {
        if self.pool_entries.len() <= SERVICES_MAX {
            return None;
        }
        let oldest = self
            .pool_entries
            .iter()
            .min_by_key(|(_, entry)| entry.last_use_number)
            .map(|(key, _)| *key)?;
        self.pool_entries.remove(&oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_was_not_used_for_longest_gives_way() {
        let pool = ClientPool::default();
        let keys: Vec<PoolKey> = (0..=SERVICES_MAX).map(|_| pool.new_pool_key()).collect();
        let (last, others) = keys.split_last().unwrap();
        for (n, key) in others.iter().enumerate() {
            pool.insert(*key, n);
        }
        assert!(others.iter().all(|key| pool.get(*key).is_some()), "as many as fit are entries");
        pool.get(others[0]);
        pool.insert(*last, SERVICES_MAX);
        assert_eq!(pool.get(others[1]), None);
        assert!(pool.get(others[0]).is_some() && pool.get(*last).is_some());
        assert_eq!(pool.lock().pool_entries.len(), SERVICES_MAX);
    }

    #[test]
    fn whoever_is_quicker_wins() {
        let pool = ClientPool::default();
        let key = pool.new_pool_key();
        assert_eq!((*pool.insert(key, 1), *pool.insert(key, 2)), (1, 1));
        pool.remove(key);
        assert_eq!(pool.get(key), None);
    }
}
