//! Wakes the watches of a prefix, and limits how many watches there are. Both engines use it.
//!
//! A watch keeps no queue of events. It sleeps until a key under its prefix is written or until there is
//! progress to report, and then reads the history itself, at its own pace. So a slow watch costs nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::wake_group::{WakeGroup, WakeGroupMember};
use crate::{Key, Revision, Unavailable};

/// The maximum number of watches that a store serves at once. Each takes a few hundred bytes.
pub const WATCHES_MAX: usize = 100_000;

/// Wakes the watches of each prefix after a write, and counts the open watches.
#[derive(Debug)]
pub struct WatchNotifier {
    /// `None` after the store was closed.
    wakeups_by_prefix: Mutex<Option<HashMap<Box<str>, PrefixWakeups>>>,
    n_watches: Arc<AtomicUsize>,
}

/// The channels that wake the watches of one prefix.
#[derive(Debug)]
struct PrefixWakeups {
    immediate_wake_sender: watch::Sender<Revision>,
    wake_group: Arc<WakeGroup>,
}

/// When a watch is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeOrder {
    /// The write itself wakes the watch, before it wakes any group: for the few watches that writes wait
    /// for.
    AtOnce,
    /// A task wakes the watches a few at a time, so that other tasks run in between: for watches of which
    /// there may be thousands.
    InGroup,
}

/// Wakes one watch when there is a newer revision.
#[derive(Debug)]
pub struct RevisionSignal(RevisionSignalKind);

#[derive(Debug)]
enum RevisionSignalKind {
    AtOnce(watch::Receiver<Revision>),
    InGroup(WakeGroupMember),
}

impl RevisionSignal {
    /// Waits until there is a newer revision than at the last call of [`mark_current_revision_seen`](Self::mark_current_revision_seen).
    ///
    /// # Errors
    /// The store was closed.
    pub async fn wait_for_newer_revision(&mut self) -> Result<(), Unavailable> {
        match &mut self.0 {
            RevisionSignalKind::AtOnce(receiver) => {
                receiver.changed().await.map_err(|_| Unavailable::store_closed())
            }
            RevisionSignalKind::InGroup(member) => {
                member.wait_for_turn().await.map_err(|_| Unavailable::store_closed())
            }
        }
    }

    /// Marks all revisions up to now as seen. A watch calls this before it reads its events, so that a
    /// write during the read wakes it again.
    pub fn mark_current_revision_seen(&mut self) {
        match &mut self.0 {
            RevisionSignalKind::AtOnce(receiver) => receiver.mark_unchanged(),
            RevisionSignalKind::InGroup(member) => member.discard_turn(),
        }
    }
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
        Self { wakeups_by_prefix: Mutex::new(Some(HashMap::new())), n_watches: Arc::default() }
    }
}

impl WatchNotifier {
    /// Reserves a slot for one watch.
    ///
    /// # Errors
    /// [`WATCHES_MAX`] watches are open.
    pub fn reserve_watch_slot(&self) -> Result<WatchSlot, Unavailable> {
        let n_watches = self.n_watches.fetch_add(1, Ordering::Relaxed);
        let slot = WatchSlot(self.n_watches.clone());
        if n_watches >= WATCHES_MAX {
            let reason = format!("{WATCHES_MAX} watches are open, which is the most").into();
            return Err(Unavailable { reason });
        }
        Ok(slot)
    }

    /// Subscribes to writes under a prefix; `None` if the store is closed.
    pub fn subscribe_to_prefix(&self, prefix: &str, order: WakeOrder) -> Option<RevisionSignal> {
        let mut wakeups_by_prefix = self.lock();
        let wakeups_by_prefix = wakeups_by_prefix.as_mut()?;
        let signal = |wakes: &PrefixWakeups| match order {
            WakeOrder::AtOnce => {
                RevisionSignalKind::AtOnce(wakes.immediate_wake_sender.subscribe())
            }
            WakeOrder::InGroup => RevisionSignalKind::InGroup(wakes.wake_group.join_group()),
        };
        if let Some(wakes) = wakeups_by_prefix.get(prefix) {
            return Some(RevisionSignal(signal(wakes)));
        }
        let (immediate_sender, _) = watch::channel(Revision::ZERO);
        let wakes =
            PrefixWakeups { immediate_wake_sender: immediate_sender, wake_group: Arc::default() };
        let signal = signal(&wakes);
        wakeups_by_prefix.insert(prefix.into(), wakes);
        Some(RevisionSignal(signal))
    }

    /// Wakes the watches of these keys. Each key comes with the revision that wrote it.
    pub fn notify_watches_of_keys<'k>(
        &self,
        written: impl IntoIterator<Item = (&'k Key, Revision)>,
    ) {
        let wakeups_by_prefix = self.lock();
        let Some(wakeups_by_prefix) =
            wakeups_by_prefix.as_ref().filter(|wakeups_by_prefix| !wakeups_by_prefix.is_empty())
        else {
            return;
        };
        for (key, revision) in written {
            for wakes in key.prefixes().filter_map(|prefix| wakeups_by_prefix.get(prefix)) {
                wakes.notify_of_revision(revision);
            }
        }
    }

    /// Wakes every watch that has not seen this revision, and drops prefixes without a watch.
    pub fn notify_all_watches(&self, revision: Revision) {
        let mut wakeups_by_prefix = self.lock();
        if let Some(wakeups_by_prefix) = wakeups_by_prefix.as_mut() {
            wakeups_by_prefix.retain(|_, wakes| {
                !wakes.immediate_wake_sender.is_closed() || !wakes.wake_group.is_empty()
            });
            wakeups_by_prefix.values().for_each(|wakes| wakes.notify_of_revision(revision));
        }
    }

    /// Ends all waits, so that every watch wakes up and ends.
    pub fn close(&self) {
        let closed = self.lock().take();
        closed.into_iter().flatten().for_each(|(_, wakes)| wakes.wake_group.close());
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<Box<str>, PrefixWakeups>>> {
        self.wakeups_by_prefix.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PrefixWakeups {
    fn notify_of_revision(&self, revision: Revision) {
        self.immediate_wake_sender.send_if_modified(|known| {
            let is_newer = *known < revision;
            *known = revision.max(*known);
            is_newer
        });
        self.wake_group.wake_members_at_revision(revision);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    async fn is_woken(signal: &mut RevisionSignal) -> bool {
        tokio::time::timeout(std::time::Duration::from_millis(5), signal.wait_for_newer_revision())
            .await
            .is_ok()
    }

    #[tokio::test]
    async fn only_watches_of_the_prefix_wake_up() {
        for order in [WakeOrder::AtOnce, WakeOrder::InGroup] {
            let notifier = WatchNotifier::default();
            let mut near = notifier.subscribe_to_prefix("/a/", order).unwrap();
            let mut far = notifier.subscribe_to_prefix("/b/", order).unwrap();
            notifier.notify_watches_of_keys([(&key("/a/x"), Revision::new(7))]);
            assert!(is_woken(&mut near).await && !is_woken(&mut far).await);
            near.mark_current_revision_seen();
            notifier.notify_watches_of_keys([(&key("/a/x"), Revision::new(5))]);
            assert!(!is_woken(&mut near).await, "an older revision is no news");
            notifier.notify_all_watches(Revision::new(8));
            assert!(is_woken(&mut near).await && is_woken(&mut far).await);
            notifier.close();
            assert!(
                notifier.subscribe_to_prefix("/a/", order).is_none()
                    && far.wait_for_newer_revision().await.is_err()
            );
        }
    }

    #[tokio::test]
    async fn a_prefix_without_watches_is_dropped() {
        let notifier = WatchNotifier::default();
        for order in [WakeOrder::AtOnce, WakeOrder::InGroup] {
            let signal = notifier.subscribe_to_prefix("/a/", order).unwrap();
            notifier.notify_all_watches(Revision::new(7));
            assert_eq!(notifier.lock().as_ref().unwrap().len(), 1);
            drop(signal);
            notifier.notify_all_watches(Revision::new(8));
            assert!(notifier.lock().as_ref().unwrap().is_empty());
        }
    }

    #[test]
    fn slots_are_limited_and_freed() {
        let notifier = WatchNotifier::default();
        let mut slots: Vec<WatchSlot> =
            (0..WATCHES_MAX).map(|_| notifier.reserve_watch_slot().unwrap()).collect();
        assert!(notifier.reserve_watch_slot().is_err());
        slots.pop();
        assert!(notifier.reserve_watch_slot().is_ok());
    }
}
