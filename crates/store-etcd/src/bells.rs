//! Who is to be woken by which event.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use store::{Event, Revision};
use tokio::sync::watch;

/// One bell per watched prefix. It says only that there is something to look for in the window, so a
/// slow watch costs nothing.
#[derive(Debug)]
pub(crate) struct Bells {
    /// Absent when the store is closed.
    by_prefix: Mutex<Option<HashMap<Box<str>, watch::Sender<Revision>>>>,
}

impl Bells {
    pub(crate) fn new() -> Self {
        Self { by_prefix: Mutex::new(Some(HashMap::new())) }
    }

    /// Hears of events under a prefix from now on; absent when the store is closed.
    pub(crate) fn subscribe(&self, prefix: &str) -> Option<watch::Receiver<Revision>> {
        let mut by_prefix = self.by_prefix.lock().unwrap_or_else(PoisonError::into_inner);
        let by_prefix = by_prefix.as_mut()?;
        if let Some(sender) = by_prefix.get(prefix) {
            return Some(sender.subscribe());
        }
        let (sender, receiver) = watch::channel(Revision::ZERO);
        by_prefix.insert(prefix.into(), sender);
        Some(receiver)
    }

    /// Wakes those who watch the key of one of the events.
    pub(crate) fn ring(&self, events: &[Event]) {
        let by_prefix = self.by_prefix.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(by_prefix) = by_prefix.as_ref().filter(|by_prefix| !by_prefix.is_empty()) else {
            return;
        };
        for event in events {
            for sender in event.key.prefixes().filter_map(|prefix| by_prefix.get(prefix)) {
                advance(sender, event.revision);
            }
        }
    }

    /// Wakes everybody who has not heard of this revision, and forgets prefixes nobody watches.
    pub(crate) fn ring_all(&self, revision: Revision) {
        let mut by_prefix = self.by_prefix.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(by_prefix) = by_prefix.as_mut() {
            by_prefix.retain(|_, sender| !sender.is_closed());
            by_prefix.values().for_each(|sender| advance(sender, revision));
        }
    }

    /// Wakes everybody to hear that it is over.
    pub(crate) fn close(&self) {
        self.by_prefix.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn advance(sender: &watch::Sender<Revision>, revision: Revision) {
    sender.send_if_modified(|known| {
        let is_news = *known < revision;
        *known = revision.max(*known);
        is_news
    });
}
