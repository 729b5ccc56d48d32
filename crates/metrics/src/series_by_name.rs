//! Metrics by name, kept as long as an observer can report to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Metrics by name.
///
/// Observers own the metrics; this map has weak references only. After a reload removes an authorizer and the last
/// request that began before the reload ends, its metrics are dropped and its series disappear, so a server whose
/// configuration changes often does not grow. A configuration that still has the name gets the existing metrics and
/// continues their counts.
#[derive(Debug)]
pub(crate) struct SeriesByName<K, T> {
    metrics_by_key: Mutex<BTreeMap<K, Weak<T>>>,
}

impl<K, T> Default for SeriesByName<K, T> {
    fn default() -> Self {
        Self { metrics_by_key: Mutex::default() }
    }
}

impl<K: Ord + Clone, T: Default> SeriesByName<K, T> {
    /// Returns the metrics registered under `key`, or new zeroed ones.
    pub(crate) fn get_or_create_metrics(&self, key: K) -> Arc<T> {
        let mut metrics = self.metrics_by_key.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = metrics.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        metrics.retain(|_, metric| metric.strong_count() > 0);
        let created = Arc::new(T::default());
        metrics.insert(key, Arc::downgrade(&created));
        created
    }

    /// Lists the metrics that an observer holds, sorted by key.
    pub(crate) fn list_metrics_in_use(&self) -> Vec<(K, Arc<T>)> {
        let metrics = self.metrics_by_key.lock().unwrap_or_else(PoisonError::into_inner);
        let list_metrics_in_use =
            |(key, metric): (&K, &Weak<T>)| Some((key.clone(), metric.upgrade()?));
        metrics.iter().filter_map(list_metrics_in_use).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::striped_counters::{increment_counter, load_counter};

    #[test]
    fn metrics_are_shared_while_they_are_held_and_gone_afterwards() {
        let names = SeriesByName::<&str, AtomicU64>::default();
        let old = names.get_or_create_metrics("a");
        increment_counter(&old);
        let new = names.get_or_create_metrics("a");
        drop(old);
        assert_eq!(load_counter(&new), 1);
        drop(new);
        assert!(names.list_metrics_in_use().is_empty());
        assert_eq!(load_counter(&names.get_or_create_metrics("a")), 0);
    }

    #[test]
    fn names_without_an_observer_take_no_memory() {
        let names = SeriesByName::<usize, AtomicU64>::default();
        for name in 0..1000 {
            drop(names.get_or_create_metrics(name));
        }
        assert_eq!(names.metrics_by_key.lock().unwrap().len(), 1);
    }
}
