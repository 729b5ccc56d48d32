//! Watchers of single objects.
//!
//! The server watches the whole store anyway, so a watcher of one object costs an entry in a table and no
//! watch of the store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::{Event, Key};
use tokio::sync::Notify;

/// The maximum number of pending events of one watcher. More are dropped, and the watcher has to read the object again.
const EVENTS_MAX: usize = 64;

/// The watchers of all objects.
#[derive(Debug, Default)]
pub(crate) struct ObjectWatchers {
    watcher_queues_by_key: Mutex<HashMap<Key, Vec<Arc<ObjectWatcherQueue>>>>,
    /// The number of watched keys, so that most events need no lock.
    n_watched_keys: AtomicUsize,
}

/// A watcher of one object; dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct ObjectWatcher {
    object_watchers: Arc<ObjectWatchers>,
    key: Key,
    watcher_queue: Arc<ObjectWatcherQueue>,
}

#[derive(Debug, Default)]
struct ObjectWatcherQueue {
    pending_events: Mutex<ObjectWatcherEvents>,
    events_available: Notify,
}

/// The events since the last call of [`ObjectWatcher::take_watcher_events`].
#[derive(Debug, Default)]
pub(crate) struct ObjectWatcherEvents {
    /// The events in the order of their revisions.
    pub(crate) store_events: Vec<Event>,
    /// Events are missing before these: the object has to be read.
    pub(crate) has_missed_events: bool,
}

impl ObjectWatchers {
    /// Begins to watch an object, which need not exist.
    pub(crate) fn watch_object(self: &Arc<Self>, key: &Key) -> ObjectWatcher {
        let queue = Arc::new(ObjectWatcherQueue::default());
        let mut queues = self.lock_watcher_queues();
        queues.entry(key.clone()).or_default().push(Arc::clone(&queue));
        self.n_watched_keys.store(queues.len(), Ordering::Release);
        ObjectWatcher { object_watchers: Arc::clone(self), key: key.clone(), watcher_queue: queue }
    }

    /// Whether an object has a watcher.
    pub(crate) fn is_key_watched(&self, key: &Key) -> bool {
        self.lock_watcher_queues().contains_key(key)
    }

    /// Passes events of the store to the watchers of their objects.
    pub(crate) fn dispatch_store_events(&self, events: &[Event]) {
        if self.n_watched_keys.load(Ordering::Acquire) == 0 {
            return;
        }
        let queues = self.lock_watcher_queues();
        for event in events {
            for queue in queues.get(&event.key).into_iter().flatten() {
                queue.push(event);
            }
        }
    }

    /// Tells all watchers that events may be missing.
    pub(crate) fn report_missed_events(&self) {
        for queue in self.lock_watcher_queues().values().flatten() {
            let mut recent = queue.lock_events();
            recent.store_events.clear();
            recent.has_missed_events = true;
            queue.events_available.notify_one();
        }
    }

    fn lock_watcher_queues(&self) -> MutexGuard<'_, HashMap<Key, Vec<Arc<ObjectWatcherQueue>>>> {
        self.watcher_queues_by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ObjectWatcherQueue {
    fn lock_events(&self) -> MutexGuard<'_, ObjectWatcherEvents> {
        self.pending_events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: &Event) {
        let mut recent = self.lock_events();
        match recent.store_events.len() < EVENTS_MAX {
            true => recent.store_events.push(event.clone()),
            false => {
                recent.store_events.clear();
                recent.has_missed_events = true;
            }
        }
        self.events_available.notify_one();
    }
}

impl ObjectWatcher {
    /// Waits until there are events.
    pub(crate) async fn wait_for_watcher_events(&self) {
        self.watcher_queue.events_available.notified().await;
    }

    /// Takes the events since the last call.
    pub(crate) fn take_watcher_events(&self) -> ObjectWatcherEvents {
        std::mem::take(&mut *self.watcher_queue.lock_events())
    }
}

impl Drop for ObjectWatcher {
    fn drop(&mut self) {
        let mut queues = self.object_watchers.lock_watcher_queues();
        if let Some(own) = queues.get_mut(&self.key) {
            own.retain(|queue| !Arc::ptr_eq(queue, &self.watcher_queue));
            if own.is_empty() {
                queues.remove(&self.key);
            }
        }
        self.object_watchers.n_watched_keys.store(queues.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use store::{Change, Entry, Revision};

    use super::*;

    fn event(key: &Key, number: u64) -> Event {
        let revision = Revision::new(number);
        let entry = Entry { value: Bytes::new(), mod_rev: revision, create_rev: revision };
        Event { key: key.clone(), revision, change: Change::Create(entry) }
    }

    #[tokio::test]
    async fn each_is_told_of_its_own_object() {
        let all = Arc::new(ObjectWatchers::default());
        let [a, b] = ["/a", "/b"].map(|text| Key::new(text).unwrap());
        let (first, second) = (all.watch_object(&a), all.watch_object(&a));
        assert!(all.is_key_watched(&a) && !all.is_key_watched(&b));
        all.dispatch_store_events(&[event(&b, 1), event(&a, 2), event(&a, 3)]);
        first.wait_for_watcher_events().await;
        let recent = first.take_watcher_events();
        assert_eq!(recent.store_events, [event(&a, 2), event(&a, 3)]);
        assert!(first.take_watcher_events().store_events.is_empty());
        drop(first);
        assert!(all.is_key_watched(&a), "the second is still there");
        assert_eq!(second.take_watcher_events().store_events.len(), 2);
        drop(second);
        assert!(!all.is_key_watched(&a));
        assert!(all.lock_watcher_queues().is_empty());
        all.dispatch_store_events(&[event(&a, 4)]);
    }

    #[tokio::test]
    async fn who_does_not_look_has_to_read() {
        let all = Arc::new(ObjectWatchers::default());
        let key = Key::new("/a").unwrap();
        let watcher = all.watch_object(&key);
        let many: Vec<Event> = (1..=64).map(|number| event(&key, number)).collect();
        all.dispatch_store_events(&many);
        let recent = watcher.take_watcher_events();
        assert_eq!((recent.store_events.len(), recent.has_missed_events), (EVENTS_MAX, false));
        all.dispatch_store_events(&many);
        all.dispatch_store_events(&[event(&key, 65), event(&key, 66)]);
        let recent = watcher.take_watcher_events();
        assert_eq!((recent.store_events.len(), recent.has_missed_events), (1, true));
        all.report_missed_events();
        watcher.wait_for_watcher_events().await;
        assert!(watcher.take_watcher_events().has_missed_events);
    }
}
