//! Who follows what happens to single objects.
//!
//! The server watches the whole store anyway, so that one more object to follow costs an entry in a
//! table and no watch.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::{Event, Key};
use tokio::sync::Notify;

/// How many events of one object may wait for who follows it. More are dropped, and the object has to be
/// read again.
const EVENTS_MAX: usize = 64;

/// All who follow an object.
#[derive(Debug, Default)]
pub(crate) struct ObjectWatchers {
    slots: Mutex<HashMap<Key, Vec<Arc<Slot>>>>,
    /// How many keys there are, so that most events need no lock.
    n_keys: AtomicUsize,
}

/// Somebody who follows an object, until this is dropped.
#[derive(Debug)]
pub(crate) struct Onlooker {
    object_watchers: Arc<ObjectWatchers>,
    key: Key,
    slot: Arc<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    seen: Mutex<Seen>,
    wake: Notify,
}

/// What happened since somebody looked last.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// In order.
    pub(crate) events: Vec<Event>,
    /// Something is missing before these events: the object has to be read.
    pub(crate) has_gap: bool,
}

impl ObjectWatchers {
    /// Begins to follow an object, which need not exist.
    pub(crate) fn follow(self: &Arc<Self>, key: &Key) -> Onlooker {
        let slot = Arc::new(Slot::default());
        let mut slots = self.slots();
        slots.entry(key.clone()).or_default().push(Arc::clone(&slot));
        self.n_keys.store(slots.len(), Ordering::Release);
        Onlooker { object_watchers: Arc::clone(self), key: key.clone(), slot }
    }

    /// Whether somebody follows an object.
    pub(crate) fn is_followed(&self, key: &Key) -> bool {
        self.slots().contains_key(key)
    }

    /// Something happened.
    pub(crate) fn tell(&self, events: &[Event]) {
        if self.n_keys.load(Ordering::Acquire) == 0 {
            return;
        }
        let slots = self.slots();
        for event in events {
            for slot in slots.get(&event.key).into_iter().flatten() {
                slot.tell(event);
            }
        }
    }

    /// Something may have happened that nobody was told.
    pub(crate) fn lose(&self) {
        for slot in self.slots().values().flatten() {
            let mut seen = slot.seen();
            seen.events.clear();
            seen.has_gap = true;
            slot.wake.notify_one();
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Key, Vec<Arc<Slot>>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, event: &Event) {
        let mut seen = self.seen();
        match seen.events.len() < EVENTS_MAX {
            true => seen.events.push(event.clone()),
            false => {
                seen.events.clear();
                seen.has_gap = true;
            }
        }
        self.wake.notify_one();
    }
}

impl Onlooker {
    /// Waits until something happened.
    pub(crate) async fn changed(&self) {
        self.slot.wake.notified().await;
    }

    /// What happened since the last time.
    pub(crate) fn take(&self) -> Seen {
        std::mem::take(&mut *self.slot.seen())
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        let mut slots = self.object_watchers.slots();
        if let Some(own) = slots.get_mut(&self.key) {
            own.retain(|slot| !Arc::ptr_eq(slot, &self.slot));
            if own.is_empty() {
                slots.remove(&self.key);
            }
        }
        self.object_watchers.n_keys.store(slots.len(), Ordering::Release);
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
        let (first, second) = (all.follow(&a), all.follow(&a));
        assert!(all.is_followed(&a) && !all.is_followed(&b));
        all.tell(&[event(&b, 1), event(&a, 2), event(&a, 3)]);
        first.changed().await;
        let seen = first.take();
        assert_eq!(seen.events, [event(&a, 2), event(&a, 3)]);
        assert!(first.take().events.is_empty());
        drop(first);
        assert!(all.is_followed(&a), "the second is still there");
        assert_eq!(second.take().events.len(), 2);
        drop(second);
        assert!(!all.is_followed(&a));
        assert!(all.slots().is_empty());
        all.tell(&[event(&a, 4)]);
    }

    #[tokio::test]
    async fn who_does_not_look_has_to_read() {
        let all = Arc::new(ObjectWatchers::default());
        let key = Key::new("/a").unwrap();
        let onlooker = all.follow(&key);
        let many: Vec<Event> = (1..=64).map(|number| event(&key, number)).collect();
        all.tell(&many);
        let seen = onlooker.take();
        assert_eq!((seen.events.len(), seen.has_gap), (EVENTS_MAX, false));
        all.tell(&many);
        all.tell(&[event(&key, 65), event(&key, 66)]);
        let seen = onlooker.take();
        assert_eq!((seen.events.len(), seen.has_gap), (1, true));
        all.lose();
        onlooker.changed().await;
        assert!(onlooker.take().has_gap);
    }
}
