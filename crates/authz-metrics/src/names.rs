//! Numbers by the name of whom they are about, for as long as somebody may add to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Numbers by name.
///
/// Whoever adds to numbers holds them; they are only referred to from here. So when a configuration
/// that no longer names an authorizer has replaced one that does, and the last request that began
/// with the old one has ended, the numbers are gone and with them the series: a server whose
/// configuration changes often does not grow. A configuration that still has the name gets the
/// numbers that exist, and goes on counting where the old one stopped.
#[derive(Debug)]
pub(crate) struct Names<K, T> {
    all: Mutex<BTreeMap<K, Weak<T>>>,
}

impl<K, T> Default for Names<K, T> {
    fn default() -> Self {
        Self { all: Mutex::default() }
    }
}

impl<K: Ord + Clone, T: Default> Names<K, T> {
    /// The numbers of that name, all zero if nobody holds them.
    pub(crate) fn named(&self, key: K) -> Arc<T> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, numbers| numbers.strong_count() > 0);
        let numbers = Arc::new(T::default());
        all.insert(key, Arc::downgrade(&numbers));
        numbers
    }

    /// All that somebody holds, sorted by name.
    pub(crate) fn living(&self) -> Vec<(K, Arc<T>)> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let living = |(key, numbers): (&K, &Weak<T>)| Some((key.clone(), numbers.upgrade()?));
        all.iter().filter_map(living).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::stripes::{count, read};

    #[test]
    fn numbers_are_shared_while_they_are_held_and_gone_afterwards() {
        let names = Names::<&str, AtomicU64>::default();
        let old = names.named("a");
        count(&old);
        let new = names.named("a");
        drop(old);
        assert_eq!(read(&new), 1);
        drop(new);
        assert!(names.living().is_empty());
        assert_eq!(read(&names.named("a")), 0);
    }

    #[test]
    fn names_that_nobody_holds_take_no_room() {
        let names = Names::<usize, AtomicU64>::default();
        for name in 0..1000 {
            drop(names.named(name));
        }
        assert_eq!(names.all.lock().unwrap().len(), 1);
    }
}
