//! The changes since the compaction floor, oldest first, as a copy-on-write list.
//!
//! Watches read the changes. A read of an old state undoes the later changes. The list consists of immutable
//! chunks and a tail, which the next batch of writes copies. The oldest chunks can be moved to files.

use std::io;
use std::sync::Arc;

use store::{Change, Event, Prefix, Revision};

use crate::history_page::HistoryPage;
use crate::version::Version;

/// Maximum number of changes in a chunk. Small, because each batch copies the tail.
const CHUNK_CHANGES_MAX: usize = 128;
/// Maximum bytes of a chunk, so that one page is read quickly.
const CHUNK_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One write of a key: the new version (`None` for a delete) and the old version (`None` for a create).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyChange {
    pub(crate) revision: Revision,
    pub(crate) new_version: Option<Arc<Version>>,
    pub(crate) old_version: Option<Arc<Version>>,
}

/// The list of all changes after the floor.
#[derive(Debug, Clone)]
pub(crate) struct History {
    sealed_chunks: Arc<Vec<HistoryChunk>>,
    tail_changes: Arc<Vec<KeyChange>>,
    /// Bytes of the old and new versions in the tail.
    tail_bytes: usize,
    len: usize,
    /// Bytes of the old versions that are in memory only because of the history.
    history_memory_bytes: usize,
}

#[derive(Debug, Clone)]
struct HistoryChunk {
    last_revision: Revision,
    len: usize,
    /// Bytes of the old versions.
    old_version_bytes: usize,
    body: ChunkBody,
}

#[derive(Debug, Clone)]
enum ChunkBody {
    Resident(Arc<Vec<KeyChange>>),
    Paged(Arc<HistoryPage>),
}

/// Limits at which [`History::find_events_after`] stops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventSearchLimits {
    /// The maximum number of events that are returned.
    pub(crate) events_max: usize,
    /// The maximum total size of the old and new versions of the returned events, in bytes.
    pub(crate) event_bytes_max: usize,
    /// The maximum number of changes that the search reads, of keys under the prefix or not.
    pub(crate) searched_changes_max: usize,
}

/// The result of [`History::find_events_after`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HistoryEvents {
    pub(crate) events: Vec<Event>,
    /// The last revision that was read, if a limit ended the search.
    pub(crate) stopped_at_revision: Option<Revision>,
}

impl KeyChange {
    /// The new version, or the old version of a delete; both contain the key.
    fn version(&self) -> Option<&Arc<Version>> {
        self.new_version.as_ref().or(self.old_version.as_ref())
    }

    fn old_version_bytes(&self) -> usize {
        self.old_version.as_ref().map_or(0, |version| version.value.len() + version.key.len())
    }

    fn old_and_new_bytes(&self) -> usize {
        self.old_version_bytes()
            + self.new_version.as_ref().map_or(0, |version| version.value.len())
    }

    fn to_event(&self) -> Option<Event> {
        let (key, change) = match (&self.new_version, &self.old_version) {
            (Some(now), None) => (&now.key, Change::Create(now.entry())),
            (Some(now), Some(prev)) => {
                (&now.key, Change::Update { entry: now.entry(), prev: prev.entry() })
            }
            (None, Some(prev)) => (&prev.key, Change::Delete { prev: prev.entry() }),
            (None, None) => return None,
        };
        Some(Event { key: key.clone(), revision: self.revision, change })
    }
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            sealed_chunks: Arc::default(),
            tail_changes: Arc::default(),
            tail_bytes: 0,
            len: 0,
            history_memory_bytes: 0,
        }
    }

    /// The number of changes, some of which may be at or before the floor.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn history_memory_bytes(&self) -> usize {
        self.history_memory_bytes
    }

    /// The last revision of the oldest chunk that is in memory.
    pub(crate) fn oldest_resident_revision(&self) -> Option<Revision> {
        let resident = |chunk: &&HistoryChunk| matches!(chunk.body, ChunkBody::Resident(_));
        self.sealed_chunks.iter().find(resident).map(|chunk| chunk.last_revision)
    }

    pub(crate) fn push(&mut self, change: KeyChange) {
        self.tail_bytes += change.old_and_new_bytes();
        self.history_memory_bytes += change.old_version_bytes();
        self.len += 1;
        let revision = change.revision;
        let tail = Arc::make_mut(&mut self.tail_changes);
        tail.push(change);
        if tail.len() >= CHUNK_CHANGES_MAX || self.tail_bytes >= CHUNK_BYTES_MAX {
            let changes = std::mem::take(&mut self.tail_changes);
            let chunk = HistoryChunk {
                last_revision: revision,
                len: changes.len(),
                old_version_bytes: changes.iter().map(KeyChange::old_version_bytes).sum(),
                body: ChunkBody::Resident(changes),
            };
            Arc::make_mut(&mut self.sealed_chunks).push(chunk);
            self.tail_bytes = 0;
        }
    }

    /// Drops chunks that lie completely at or before the floor.
    pub(crate) fn drop_chunks_up_to(&mut self, floor: Revision) {
        let n_old = self.sealed_chunks.partition_point(|chunk| chunk.last_revision <= floor);
        if n_old > 0 {
            for chunk in Arc::make_mut(&mut self.sealed_chunks).drain(..n_old) {
                self.len -= chunk.len;
                if matches!(chunk.body, ChunkBody::Resident(_)) {
                    self.history_memory_bytes -= chunk.old_version_bytes;
                }
            }
        }
        if self.tail_changes.last().is_some_and(|change| change.revision <= floor) {
            self.len -= self.tail_changes.len();
            self.history_memory_bytes -=
                self.tail_changes.iter().map(KeyChange::old_version_bytes).sum::<usize>();
            self.tail_changes = Arc::default();
            self.tail_bytes = 0;
        }
    }

    /// Replaces the oldest chunk in memory by the page that `write` makes of it.
    pub(crate) fn move_oldest_chunk_to_page(
        &mut self,
        write: &mut dyn FnMut(&[KeyChange]) -> io::Result<HistoryPage>,
    ) -> io::Result<()> {
        let resident = |chunk: &HistoryChunk| matches!(chunk.body, ChunkBody::Resident(_));
        let Some(at) = self.sealed_chunks.iter().position(resident) else { return Ok(()) };
        let Some(chunk) = Arc::make_mut(&mut self.sealed_chunks).get_mut(at) else { return Ok(()) };
        if let ChunkBody::Resident(changes) = &chunk.body {
            let page = write(changes)?;
            chunk.body = ChunkBody::Paged(Arc::new(page));
            self.history_memory_bytes -= chunk.old_version_bytes;
        }
        Ok(())
    }

    /// Reports whether changes after this revision must be read from files.
    pub(crate) fn needs_file_reads_after(&self, after: Revision) -> bool {
        let at = self.sealed_chunks.partition_point(|chunk| chunk.last_revision <= after);
        self.sealed_chunks.get(at).is_some_and(|chunk| matches!(chunk.body, ChunkBody::Paged(_)))
    }

    /// Calls `visit` with each change after a revision, oldest first, until `visit` returns false.
    pub(crate) fn visit_changes_after(
        &self,
        after: Revision,
        visit: &mut dyn FnMut(&KeyChange) -> bool,
    ) -> io::Result<()> {
        let from = self.sealed_chunks.partition_point(|chunk| chunk.last_revision <= after);
        for chunk in self.sealed_chunks.iter().skip(from) {
            let goes_on = match &chunk.body {
                ChunkBody::Resident(changes) => visit_changes(changes, after, visit),
                ChunkBody::Paged(page) => visit_changes(&page.read()?, after, visit),
            };
            if !goes_on {
                return Ok(());
            }
        }
        visit_changes(&self.tail_changes, after, visit);
        Ok(())
    }

    /// Finds the events under a prefix after a revision. It may exceed the limits to complete a revision, and the limit
    /// of bytes by the last event.
    pub(crate) fn find_events_after(
        &self,
        prefix: &Prefix,
        after: Revision,
        limits: EventSearchLimits,
    ) -> io::Result<HistoryEvents> {
        let mut found = HistoryEvents { events: Vec::new(), stopped_at_revision: None };
        let (mut n_changes, mut n_bytes) = (0, 0);
        let mut last = after;
        self.visit_changes_after(after, &mut |change| {
            // A transaction makes several changes of one revision, which must stay in one batch.
            let is_enough = found.events.len() >= limits.events_max
                || n_bytes >= limits.event_bytes_max
                || n_changes >= limits.searched_changes_max;
            if is_enough && change.revision > last {
                found.stopped_at_revision = Some(last);
                return false;
            }
            n_changes += 1;
            last = change.revision;
            if change.version().is_some_and(|version| prefix.covers_key(&version.key)) {
                found.events.extend(change.to_event());
                n_bytes += change.old_and_new_bytes();
            }
            true
        })?;
        Ok(found)
    }
}

fn visit_changes(
    changes: &[KeyChange],
    after: Revision,
    visit: &mut dyn FnMut(&KeyChange) -> bool,
) -> bool {
    let from = changes.partition_point(|change| change.revision <= after);
    changes.iter().skip(from).all(visit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use store::Key;

    #[test]
    fn a_search_ends_at_each_limit_and_between_revisions() {
        let mut history = History::new();
        for (key, revision, n_bytes) in
            [("/a/x", 2, 10), ("/a/y", 3, 100), ("/b/x", 4, 900), ("/a/x", 5, 60), ("/a/y", 5, 60)]
        {
            let (key, revision) = (Key::new(key).unwrap(), Revision::new(revision));
            let value = Bytes::from(vec![0; n_bytes]);
            let version = Version {
                key,
                value,
                mod_rev: revision,
                create_rev: revision,
                expires_at_ms: None,
            };
            history.push(KeyChange {
                revision,
                new_version: Some(Arc::new(version)),
                old_version: None,
            });
        }
        let prefix = Prefix::new("/a/").unwrap();
        for (after, events_max, bytes_max, changes_max, want, stopped_at) in [
            (1, 9, 999, 9, vec![2, 3, 5, 5], None),
            (1, 1, 999, 9, vec![2], Some(2)),
            (1, 9, 999, 3, vec![2, 3], Some(4)),
            // The first event is found however large it is, and values of others do not count.
            (1, 9, 1, 9, vec![2], Some(2)),
            (1, 9, 11, 9, vec![2, 3], Some(3)),
            (1, 9, 111, 9, vec![2, 3, 5, 5], None),
            (2, 9, 100, 9, vec![3], Some(3)),
            (3, 9, 1, 9, vec![5, 5], None),
        ] {
            let limits = EventSearchLimits {
                events_max,
                event_bytes_max: bytes_max,
                searched_changes_max: changes_max,
            };
            let found = history.find_events_after(&prefix, Revision::new(after), limits).unwrap();
            let revisions: Vec<u64> =
                found.events.iter().map(|event| event.revision.as_u64()).collect();
            let stopped = found.stopped_at_revision.map(Revision::as_u64);
            assert_eq!((revisions, stopped), (want, stopped_at), "{after} {limits:?}");
        }
    }
}
