//! The newest events of the cluster, in memory.

use std::collections::VecDeque;

use store::{Change, Entry, Event, Prefix, Revision};

/// Maximum bytes of keys and values in memory. Watches that are further behind read from etcd.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum number of events in memory, because each has an overhead.
const EVENTS_MAX: usize = 100_000;
/// Approximate size of an event besides its key and values.
const EVENT_OVERHEAD_BYTES: usize = 256;
/// Approximate maximum of events in a batch, which bounds the memory of one call.
pub(crate) const BATCH_EVENTS_MAX: usize = 256;
/// Approximate maximum of bytes in a batch, because a watch that is read slowly holds its batch for long.
pub(crate) const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Number of events after which a search yields to other tasks.
const SEARCH_EVENTS_MAX: usize = 8 * 1024;

/// The events of consecutive revisions up to the newest known one.
///
/// INVARIANT: `events` are all events after `start` up to `complete_through_revision`, in the order of their revisions.
#[derive(Debug)]
pub(crate) struct EventWindow {
    start: Revision,
    complete_through_revision: Revision,
    events: VecDeque<Event>,
    events_bytes: usize,
}

/// The result of searching the window.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WindowEvents {
    /// The events under the prefix, in complete revisions.
    pub(crate) events: Vec<Event>,
    /// The search covered all events up to this revision.
    pub(crate) complete_through_revision: Revision,
    /// Whether the search stopped early.
    pub(crate) is_truncated: bool,
}

impl EventWindow {
    /// Makes a window without events that starts after a revision.
    pub(crate) fn empty_window_at(revision: Revision) -> Self {
        Self {
            start: revision,
            complete_through_revision: revision,
            events: VecDeque::new(),
            events_bytes: 0,
        }
    }

    pub(crate) fn start(&self) -> Revision {
        self.start
    }

    pub(crate) fn complete_through_revision(&self) -> Revision {
        self.complete_through_revision
    }

    /// Adds the events of the next revisions and drops the oldest ones beyond the limits.
    pub(crate) fn push(&mut self, events: Vec<Event>, complete_through: Revision) {
        self.events_bytes += events.iter().map(event_bytes).sum::<usize>();
        self.events.extend(events);
        self.complete_through_revision = complete_through;
        while self.events_bytes > BYTES_MAX || self.events.len() > EVENTS_MAX {
            let Some(oldest) = self.events.front() else { return };
            self.drop_events_up_to(oldest.revision);
        }
    }

    /// Drops the events up to a revision.
    pub(crate) fn drop_events_up_to(&mut self, up_to: Revision) {
        self.start = self.start.max(up_to.min(self.complete_through_revision));
        while let Some(event) = self.events.pop_front_if(|event| event.revision <= up_to) {
            self.events_bytes -= event_bytes(&event);
        }
    }

    /// Finds the events under a prefix after a revision; `None` if the window may lack some of them.
    pub(crate) fn find_events_after(
        &self,
        prefix: &Prefix,
        after: Revision,
    ) -> Option<WindowEvents> {
        if after < self.start {
            return None;
        }
        let first = self.events.partition_point(|event| event.revision <= after);
        let mut events: Vec<Event> = Vec::new();
        let (mut last, mut n_bytes) = (after, 0);
        for (n_seen, event) in self.events.range(first..).enumerate() {
            let is_enough = events.len() >= BATCH_EVENTS_MAX
                || n_bytes >= BATCH_BYTES_MAX
                || n_seen >= SEARCH_EVENTS_MAX;
            if is_enough && event.revision > last {
                return Some(WindowEvents {
                    events,
                    complete_through_revision: last,
                    is_truncated: true,
                });
            }
            last = event.revision;
            if prefix.covers_key(&event.key) {
                events.push(event.clone());
                n_bytes += event_bytes(event);
            }
        }
        Some(WindowEvents {
            events,
            complete_through_revision: self.complete_through_revision,
            is_truncated: false,
        })
    }
}

/// The memory of an event if no other reference to its values exists.
pub(crate) fn event_bytes(event: &Event) -> usize {
    let value = |entry: Option<&Entry>| entry.map_or(0, |entry| entry.value.len());
    let change: &Change = &event.change;
    EVENT_OVERHEAD_BYTES + event.key.len() + value(change.entry()) + value(change.previous_entry())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use store::Key;

    fn event(key: &str, revision: u64, bytes: usize) -> Event {
        let revision = Revision::new(revision);
        let value = Bytes::from(vec![0; bytes]);
        let entry = Entry { value, mod_rev: revision, create_rev: revision };
        Event { key: Key::new(key).unwrap(), revision, change: Change::Create(entry) }
    }

    fn a() -> Prefix {
        Prefix::new("/a/").unwrap()
    }

    fn revisions(found: &WindowEvents) -> Vec<u64> {
        found.events.iter().map(|event| event.revision.as_u64()).collect()
    }

    #[test]
    fn a_search_finds_its_prefix_after_its_revision() {
        let mut window = EventWindow::empty_window_at(Revision::new(4));
        window.push(vec![event("/a/x", 5, 0), event("/b/x", 6, 0)], Revision::new(6));
        window.push(vec![event("/a/x", 7, 0), event("/a/y", 7, 0)], Revision::new(9));
        let search = |after| window.find_events_after(&a(), Revision::new(after));
        assert_eq!(search(3), None);
        assert_eq!(revisions(&search(4).unwrap()), [5, 7, 7]);
        assert_eq!(revisions(&search(5).unwrap()), [7, 7]);
        assert_eq!(revisions(&search(7).unwrap()), [0; 0]);
        for after in [4, 7, 9, 12] {
            let found = search(after).unwrap();
            assert_eq!(
                (found.complete_through_revision, found.is_truncated),
                (Revision::new(9), false),
                "{after}"
            );
        }
    }

    #[test]
    fn batches_end_between_revisions() {
        let mut window = EventWindow::empty_window_at(Revision::new(1));
        let n = BATCH_EVENTS_MAX as u64;
        let mut events: Vec<Event> = (2..=n).map(|revision| event("/a/x", revision, 0)).collect();
        events.extend([event("/a/x", n + 1, 0), event("/a/y", n + 1, 0), event("/a/x", n + 2, 0)]);
        window.push(events, Revision::new(n + 2));
        let found = window.find_events_after(&a(), Revision::new(1)).unwrap();
        assert_eq!(
            (found.events.len(), found.complete_through_revision.as_u64()),
            (BATCH_EVENTS_MAX + 1, n + 1)
        );
        assert!(found.is_truncated);
        let rest = window.find_events_after(&a(), found.complete_through_revision).unwrap();
        assert_eq!((revisions(&rest), rest.is_truncated), (vec![n + 2], false));
    }

    #[test]
    fn batches_end_at_their_bytes() {
        let mut window = EventWindow::empty_window_at(Revision::new(1));
        let half = BATCH_BYTES_MAX / 2;
        let events = [("/a/x", half), ("/b/x", 3 * half), ("/a/x", half), ("/a/x", 3 * half)];
        let events = (2..).zip(events).map(|(revision, (key, bytes))| event(key, revision, bytes));
        window.push(events.collect(), Revision::new(5));
        for (after, want, is_truncated) in [(1, vec![2, 4], true), (4, vec![5], false)] {
            let found = window.find_events_after(&a(), Revision::new(after)).unwrap();
            assert_eq!((revisions(&found), found.is_truncated), (want, is_truncated), "{after}");
        }
    }

    #[test]
    fn long_searches_yield() {
        let mut window = EventWindow::empty_window_at(Revision::new(0));
        let n = SEARCH_EVENTS_MAX as u64 + 1;
        let events = (1..=n).map(|revision| event("/b/x", revision, 0)).collect();
        window.push(events, Revision::new(n));
        let found = window.find_events_after(&a(), Revision::ZERO).unwrap();
        assert_eq!((found.complete_through_revision.as_u64(), found.is_truncated), (n - 1, true));
    }

    #[test]
    fn the_oldest_events_are_dropped_above_the_limits() {
        let mut window = EventWindow::empty_window_at(Revision::new(0));
        let quarter = BYTES_MAX / 4;
        for revision in 1..=3 {
            window.push(vec![event("/a/x", revision, quarter)], Revision::new(revision));
        }
        assert_eq!(window.start(), Revision::ZERO);
        window.push(vec![event("/a/x", 4, quarter)], Revision::new(4));
        assert_eq!((window.start(), window.events.len()), (Revision::new(1), 3));
        let small = |revision: usize| event("/a/x", revision as u64, 0);
        let mut window = EventWindow::empty_window_at(Revision::new(0));
        window.push((1..=EVENTS_MAX).map(small).collect(), Revision::new(EVENTS_MAX as u64));
        assert_eq!(window.start(), Revision::ZERO);
        window.push(vec![small(EVENTS_MAX + 1)], Revision::new(EVENTS_MAX as u64 + 1));
        assert_eq!(window.start(), Revision::new(1));
    }

    #[test]
    fn forgetting_moves_the_start_but_not_past_the_end() {
        let mut window = EventWindow::empty_window_at(Revision::new(4));
        window.push(vec![event("/a/x", 5, 9), event("/a/x", 6, 9)], Revision::new(6));
        window.drop_events_up_to(Revision::new(5));
        assert_eq!(window.find_events_after(&a(), Revision::new(4)), None);
        assert_eq!(revisions(&window.find_events_after(&a(), Revision::new(5)).unwrap()), [6]);
        window.drop_events_up_to(Revision::new(3));
        assert_eq!(window.start(), Revision::new(5));
        window.drop_events_up_to(Revision::new(99));
        assert_eq!((window.start(), window.events_bytes), (Revision::new(6), 0));
    }
}
