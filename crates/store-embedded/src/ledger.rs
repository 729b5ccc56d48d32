//! How many bytes each share of the keys takes up: of the current versions, and of the history.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use store::Revision;

use crate::history::Step;
use crate::share::ShareOf;
use crate::state::State;
use crate::version::Version;

/// The bytes that a version takes up beside its key and its value.
const VERSION_BYTES: u64 = 64;
/// A segment of the history is closed with so many changes, or with so many bytes. The history is
/// forgotten in whole segments.
const SEGMENT_CHANGES_MAX: usize = 128;
const SEGMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Bytes per share, and all together.
#[derive(Debug, Default)]
struct Bytes {
    total: u64,
    shares: HashMap<Arc<str>, u64, foldhash::fast::RandomState>,
}

/// One change of a key.
#[derive(Debug)]
struct Entry {
    revision: Revision,
    share: Arc<str>,
    /// Of the version that it made.
    added: u64,
    /// Of the version that it ended.
    ended: u64,
}

/// The oldest changes in the order in which they are forgotten.
#[derive(Debug, Default)]
struct Segment {
    last: Revision,
    n_changes: usize,
    bytes: u64,
    shares: Vec<(Arc<str>, u64)>,
}

/// The books of the writer.
#[derive(Debug)]
pub(crate) struct Ledger {
    share_of: ShareOf,
    live: Bytes,
    history: Bytes,
    segments: VecDeque<Segment>,
    /// Changes of the batch that is not durable yet.
    pending: Vec<Entry>,
    /// Everything up to here is in the books.
    through: Revision,
}

/// The bytes that a version counts.
pub(crate) fn version_bytes(key_len: usize, value_len: usize) -> u64 {
    (key_len as u64).saturating_add(value_len as u64).saturating_add(VERSION_BYTES)
}

fn bytes_of(version: Option<&Arc<Version>>) -> u64 {
    version.map_or(0, |version| version_bytes(version.key.len(), version.value.len()))
}

impl Bytes {
    fn add(&mut self, share: &Arc<str>, bytes: u64) {
        self.total = self.total.saturating_add(bytes);
        let own = self.shares.entry(share.clone()).or_default();
        *own = own.saturating_add(bytes);
    }

    fn subtract(&mut self, share: &Arc<str>, bytes: u64) {
        self.total = self.total.saturating_sub(bytes);
        if let Some(own) = self.shares.get_mut(share) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                self.shares.remove(share);
            }
        }
    }

    fn of(&self, share: &str) -> u64 {
        self.shares.get(share).copied().unwrap_or(0)
    }

    /// The name of a share, the same text for all its changes where that is at hand.
    fn name(&self, share: &str) -> Arc<str> {
        self.shares.get_key_value(share).map_or_else(|| share.into(), |(name, _)| name.clone())
    }
}

impl Ledger {
    /// The books of a state that has no history yet.
    pub(crate) fn new(share_of: ShareOf, state: &State) -> Self {
        let mut live = Bytes::default();
        for version in state.tree.iter_from("") {
            let share = live.name(share_of.of(&version.key));
            live.add(&share, bytes_of(Some(version)));
        }
        let history = Bytes::default();
        let (segments, pending) = (VecDeque::new(), Vec::new());
        Self { share_of, live, history, segments, pending, through: state.revision }
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.live.total
    }

    pub(crate) fn history_bytes(&self) -> u64 {
        self.history.total
    }

    /// The share of a key with what it takes up: of the current versions, and of the history.
    pub(crate) fn share<'k>(&self, key: &'k str) -> (&'k str, u64, u64) {
        let share = self.share_of.of(key);
        (share, self.live.of(share), self.history.of(share))
    }

    /// Takes the changes into the books that the state has since the last time.
    pub(crate) fn absorb(&mut self, state: &State) {
        let (mut through, after) = (self.through, self.through);
        // The newest changes are in memory, so this reads no file.
        let visited = state.history.visit(after, &mut |step| {
            through = step.revision;
            self.enter(step);
            true
        });
        if visited.is_ok() {
            self.through = through;
        }
    }

    fn enter(&mut self, step: &Step) {
        let Some(version) = step.now.as_ref().or(step.prev.as_ref()) else { return };
        let text = self.share_of.of(&version.key);
        let share = self.live.name(text);
        let (added, ended) = (bytes_of(step.now.as_ref()), bytes_of(step.prev.as_ref()));
        self.live.add(&share, added);
        self.live.subtract(&share, ended);
        self.history.add(&share, added + ended);
        self.pending.push(Entry { revision: step.revision, share, added, ended });
    }

    /// The batch is durable, and the states before the floor are forgotten.
    pub(crate) fn commit(&mut self, floor: Revision) {
        for entry in std::mem::take(&mut self.pending) {
            let is_full = |segment: &Segment| {
                // A revision is forgotten whole.
                segment.last < entry.revision
                    && (segment.n_changes >= SEGMENT_CHANGES_MAX
                        || segment.bytes >= SEGMENT_BYTES_MAX)
            };
            if self.segments.back().is_none_or(is_full) {
                self.segments.push_back(Segment::default());
            }
            if let Some(segment) = self.segments.back_mut() {
                segment.add(entry);
            }
        }
        while let Some(segment) = self.segments.pop_front_if(|segment| segment.last <= floor) {
            for (share, bytes) in &segment.shares {
                self.history.subtract(share, *bytes);
            }
        }
    }

    /// The batch has failed, and the state is the one before it.
    pub(crate) fn roll_back(&mut self, revision: Revision) {
        // The last first, so that no count falls below zero on the way.
        for Entry { share, added, ended, .. } in std::mem::take(&mut self.pending).into_iter().rev()
        {
            self.live.add(&share, ended);
            self.live.subtract(&share, added);
            self.history.subtract(&share, added + ended);
        }
        self.through = revision;
    }

    /// The lowest floor that leaves at most so many bytes of history, as far as whole segments go;
    /// absent when all of it may stay.
    pub(crate) fn floor_keeping(&self, bytes_max: u64) -> Option<Revision> {
        let mut excess = self.history.total.saturating_sub(bytes_max);
        let mut floor = None;
        for segment in &self.segments {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(segment.bytes);
            floor = Some(segment.last);
        }
        floor
    }
}

impl Segment {
    fn add(&mut self, entry: Entry) {
        let bytes = entry.added + entry.ended;
        self.last = entry.revision;
        self.n_changes += 1;
        self.bytes += bytes;
        match self.shares.iter_mut().find(|(share, _)| *share == entry.share) {
            Some((_, own)) => *own += bytes,
            None => self.shares.push((entry.share, bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use store::Key;

    fn put(state: &mut State, key: &str, value_len: usize) {
        let revision = state.revision.next();
        state.put(revision, Key::new(key).unwrap(), vec![b'x'; value_len].into(), None);
    }

    fn ledger() -> (State, Ledger) {
        let state = State::new(Revision::FIRST, Tree::new());
        let ledger = Ledger::new(ShareOf::default(), &state);
        (state, ledger)
    }

    #[test]
    fn shares_are_counted_and_forgotten_with_the_history() {
        let (mut state, mut ledger) = ledger();
        put(&mut state, "/a/x", 100);
        put(&mut state, "/a/x", 300);
        put(&mut state, "/b/x", 1000);
        ledger.absorb(&state);
        let one = |value| version_bytes(4, value);
        assert_eq!(ledger.share("/a/y"), ("/a/", one(300), one(100) + one(300) + one(100)));
        assert_eq!(ledger.share("/b/y"), ("/b/", one(1000), one(1000)));
        let floor = state.revision;
        state.compact(floor);
        ledger.commit(floor);
        assert_eq!(ledger.share("/a/y"), ("/a/", one(300), 0));
        assert_eq!((ledger.live_bytes(), ledger.history_bytes()), (one(300) + one(1000), 0));
        assert_eq!(Ledger::new(ShareOf::default(), &state).live_bytes(), ledger.live_bytes());
    }

    #[test]
    fn a_batch_that_fails_leaves_the_books_as_they_were() {
        let (mut state, mut ledger) = ledger();
        put(&mut state, "/a/x", 100);
        ledger.absorb(&state);
        ledger.commit(state.floor);
        let before = state.clone();
        let books = (ledger.live_bytes(), ledger.history_bytes(), ledger.share("/a/x"));
        put(&mut state, "/a/x", 5000);
        state.delete(state.revision.next(), "/a/x");
        ledger.absorb(&state);
        assert_eq!(ledger.live_bytes(), 0);
        ledger.roll_back(before.revision);
        assert_eq!((ledger.live_bytes(), ledger.history_bytes(), ledger.share("/a/x")), books);
    }

    #[test]
    fn the_floor_that_keeps_so_many_bytes() {
        let (mut state, mut ledger) = ledger();
        for _ in 0..10 {
            put(&mut state, "/a/x", SEGMENT_BYTES_MAX as usize);
            ledger.absorb(&state);
            ledger.commit(state.floor);
        }
        assert_eq!(ledger.floor_keeping(ledger.history_bytes()), None);
        // The first change ended nothing, so it is half as large as the others.
        assert_eq!(ledger.floor_keeping(ledger.history_bytes() - 1), Some(Revision::new(2)));
        assert_eq!(ledger.floor_keeping(0), Some(state.revision));
        let kept = ledger.floor_keeping(3 * 2 * SEGMENT_BYTES_MAX).unwrap();
        assert_eq!(kept.number(), state.revision.number() - 2, "two and the slack of a segment");
    }
}
