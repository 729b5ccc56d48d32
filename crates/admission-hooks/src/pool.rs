//! What was used of late.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most services that connections are kept to (admission §4.5). More are called just as well, but
/// with more handshakes.
pub(crate) const SERVICES_MAX: usize = 200;

/// Values by key, of which the one that was not used for longest gives way to a new one.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    kept: HashMap<Key, Kept<T>>,
    n_keys: u64,
    n_uses: u64,
}

#[derive(Debug)]
struct Kept<T> {
    value: Arc<T>,
    last_use: u64,
}

/// A place in the pool, for a value that may be there or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(u64);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { state: Mutex::new(State { kept: HashMap::new(), n_keys: 0, n_uses: 0 }) }
    }
}

impl<T> Pool<T> {
    /// A key that nobody else has.
    pub(crate) fn new_key(&self) -> Key {
        let mut state = self.lock();
        state.n_keys += 1;
        Key(state.n_keys)
    }

    /// The value, if it is there.
    pub(crate) fn get(&self, key: Key) -> Option<Arc<T>> {
        let mut state = self.lock();
        let last_use = state.next_use();
        let kept = state.kept.get_mut(&key)?;
        kept.last_use = last_use;
        Some(Arc::clone(&kept.value))
    }

    /// Puts a value there, and gives that which is there by then: the value is made without a lock,
    /// so somebody else may have been quicker.
    pub(crate) fn put(&self, key: Key, value: T) -> Arc<T> {
        let mut state = self.lock();
        let last_use = state.next_use();
        let kept = state.kept.entry(key).or_insert(Kept { value: Arc::new(value), last_use });
        kept.last_use = last_use;
        let value = Arc::clone(&kept.value);
        let evicted = state.evict();
        // What it takes to get rid of it is no matter of those who wait for the lock.
        drop(state);
        drop(evicted);
        value
    }

    /// Nobody has the key any more.
    pub(crate) fn forget(&self, key: Key) {
        let forgotten = self.lock().kept.remove(&key);
        drop(forgotten);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    fn next_use(&mut self) -> u64 {
        self.n_uses += 1;
        self.n_uses
    }

    /// Looks at all of them, which are few, and only when there are too many.
    fn evict(&mut self) -> Option<Kept<T>> {
        if self.kept.len() <= SERVICES_MAX {
            return None;
        }
        let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.last_use).map(|(key, _)| *key)?;
        self.kept.remove(&oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_was_not_used_for_longest_gives_way() {
        let pool = Pool::default();
        let keys: Vec<Key> = (0..=SERVICES_MAX).map(|_| pool.new_key()).collect();
        let (last, others) = keys.split_last().unwrap();
        for (n, key) in others.iter().enumerate() {
            pool.put(*key, n);
        }
        assert!(others.iter().all(|key| pool.get(*key).is_some()), "as many as fit are kept");
        pool.get(others[0]);
        pool.put(*last, SERVICES_MAX);
        assert_eq!(pool.get(others[1]), None);
        assert!(pool.get(others[0]).is_some() && pool.get(*last).is_some());
        assert_eq!(pool.lock().kept.len(), SERVICES_MAX);
    }

    #[test]
    fn whoever_is_quicker_wins() {
        let pool = Pool::default();
        let key = pool.new_key();
        assert_eq!((*pool.put(key, 1), *pool.put(key, 2)), (1, 1));
        pool.forget(key);
        assert_eq!(pool.get(key), None);
    }
}
