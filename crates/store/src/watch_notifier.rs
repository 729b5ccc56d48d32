//! Wakes the watches of a prefix, and limits how many watches there are. Both engines use it.
//!
//! A watch keeps no queue of events. It sleeps until a key under its prefix is written or until there is
//! progress to report, and then reads the history itself, at its own pace. So a slow watch costs nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::{Key, Revision, Unavailable};

/// The most watches that a store serves at once. Each takes a few hundred bytes.
pub const WATCHES_MAX: usize = 100_000;

/// One channel per watched prefix, and the number of open watches.
#[derive(Debug)]
pub struct WatchNotifier {
    /// `None` after the store was closed.
    senders_by_prefix: Mutex<Option<HashMap<Box<str>, watch::Sender<Revision>>>>,
    n_watches: Arc<AtomicUsize>,
}

/// One of the [`WATCHES_MAX`] watches. Dropping it frees the slot.
#[derive(Debug)]
pub struct WatchSlot(Arc<AtomicUsize>);

impl Drop for WatchSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for WatchNotifier {
    fn default() -> Self {
        Self { senders_by_prefix: Mutex::new(Some(HashMap::new())), n_watches: Arc::default() }
    }
}

impl WatchNotifier {
    /// Reserves a slot for one watch.
    ///
    /// # Errors
    /// [`WATCHES_MAX`] watches are open.
    pub fn reserve_slot(&self) -> Result<WatchSlot, Unavailable> {
        let n_watches = self.n_watches.fetch_add(1, Ordering::Relaxed);
        let slot = WatchSlot(self.n_watches.clone());
        if n_watches >= WATCHES_MAX {
            let reason = format!("{WATCHES_MAX} watches are open, which is the most").into();
            return Err(Unavailable { reason });
        }
        Ok(slot)
    }

    /// Subscribes to writes under a prefix; `None` if the store is closed.
    pub fn subscribe(&self, prefix: &str) -> Option<watch::Receiver<Revision>> {
        let mut senders_by_prefix =
            self.senders_by_prefix.lock().unwrap_or_else(PoisonError::into_inner);
        let senders_by_prefix = senders_by_prefix.as_mut()?;
        if let Some(sender) = senders_by_prefix.get(prefix) {
            return Some(sender.subscribe());
        }
        let (sender, receiver) = watch::channel(Revision::ZERO);
        senders_by_prefix.insert(prefix.into(), sender);
        Some(receiver)
    }

    /// Wakes the watches of these keys. Each key comes with the revision that wrote it.
    pub fn notify<'k>(&self, written: impl IntoIterator<Item = (&'k Key, Revision)>) {
        let senders_by_prefix =
            self.senders_by_prefix.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(senders_by_prefix) =
            senders_by_prefix.as_ref().filter(|senders_by_prefix| !senders_by_prefix.is_empty())
        else {
            return;
        };
        for (key, revision) in written {
            for sender in key.prefixes().filter_map(|prefix| senders_by_prefix.get(prefix)) {
                raise_revision(sender, revision);
            }
        }
    }

    /// Wakes every watch that has not seen this revision, and drops prefixes without a watch.
    pub fn notify_all(&self, revision: Revision) {
        let mut senders_by_prefix =
            self.senders_by_prefix.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(senders_by_prefix) = senders_by_prefix.as_mut() {
            senders_by_prefix.retain(|_, sender| !sender.is_closed());
            senders_by_prefix.values().for_each(|sender| raise_revision(sender, revision));
        }
    }

    /// Closes all channels, so that every watch wakes up and ends.
    pub fn close(&self) {
        self.senders_by_prefix.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn raise_revision(sender: &watch::Sender<Revision>, revision: Revision) {
    sender.send_if_modified(|known| {
        let is_newer = *known < revision;
        *known = revision.max(*known);
        is_newer
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    #[test]
    fn only_watches_of_the_prefix_wake_up() {
        let notifier = WatchNotifier::default();
        let mut near = notifier.subscribe("/a/").unwrap();
        let far = notifier.subscribe("/b/").unwrap();
        notifier.notify([(&key("/a/x"), Revision::new(7))]);
        assert!(near.has_changed().unwrap() && !far.has_changed().unwrap());
        near.mark_unchanged();
        notifier.notify([(&key("/a/x"), Revision::new(5))]);
        assert!(!near.has_changed().unwrap(), "an older revision is no news");
        notifier.notify_all(Revision::new(8));
        assert!(near.has_changed().unwrap() && far.has_changed().unwrap());
        notifier.close();
        assert!(notifier.subscribe("/a/").is_none() && far.has_changed().is_err());
    }

    #[test]
    fn slots_are_limited_and_freed() {
        let notifier = WatchNotifier::default();
        let mut slots: Vec<WatchSlot> =
            (0..WATCHES_MAX).map(|_| notifier.reserve_slot().unwrap()).collect();
        assert!(notifier.reserve_slot().is_err());
        slots.pop();
        assert!(notifier.reserve_slot().is_ok());
    }
}
