//! Opening a directory: what the last snapshot and the logs after it tell.
//!
//! 1. If a later program wrote one of the files, the store does not start and nothing is changed.
//! 2. Leftovers of a process that is gone are removed: unfinished files and pages of history.
//! 3. The newest snapshot is the first state; without one it is the empty store.
//! 4. Each log is read in turn. Records that the snapshot has already are skipped; every other one must
//!    make the next revision. History is moved to files and forgotten by its bytes as it is while the
//!    store runs, so that opening takes no more memory and no more disk than running.
//! 5. In the last log a torn tail is cut off. Anything else that is not a good frame is damage, and the
//!    store does not start.
//! 6. If that log acknowledged writes before they were durable, revisions that it may have lost are
//!    skipped.
//! 7. A new log begins.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use store::Revision;

use crate::error::OpenError;
use crate::frame::{self, FORMAT_VERSION, FileKind, FrameRead, HEADER_BYTES, Header, HeaderError};
use crate::history_pager::HistoryPager;
use crate::log::Log;
use crate::options::{Options, REVISION_GAP, SyncMode};
use crate::record::{Record, RecordReader};
use crate::retention::HistoryRetention;
use crate::snapshot;
use crate::store_files::{self, StoreFiles, io_error};
use crate::store_state::StoreState;
use crate::usage_accounting::UsageAccounting;
use crate::version_tree::VersionTree;

/// What a directory holds.
#[derive(Debug)]
pub(crate) struct RecoveredStore {
    pub(crate) state: StoreState,
    /// The log that new writes go to.
    pub(crate) log: Log,
    /// The logs before it, oldest first.
    pub(crate) sealed: Vec<SealedLog>,
    pub(crate) snapshot_bytes: u64,
    pub(crate) accounting: UsageAccounting,
    pub(crate) history_pager: HistoryPager,
}

/// A log that is not written any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedLog {
    pub(crate) sequence: u64,
    /// The revision before its first record.
    pub(crate) base: Revision,
    pub(crate) bytes: u64,
}

/// Reads the directory and begins a new log.
pub(crate) fn recover(path: &Path, options: &Options) -> Result<RecoveredStore, OpenError> {
    let listing =
        store_files::list_store_files(path).map_err(|source| io_error("list", path, source))?;
    check_versions(path, &listing)?;
    for stale_file in &listing.stale_files {
        fs::remove_file(stale_file).map_err(|source| io_error("remove", stale_file, source))?;
    }
    let (mut state, snapshot_bytes) = match listing.snapshots.last() {
        Some(revision) => {
            let (tree, bytes) = snapshot::read(path, *revision)?;
            (StoreState::new(*revision, tree), bytes)
        }
        None => (StoreState::new(Revision::FIRST, VersionTree::new()), 0),
    };
    let run = listing.logs.last().map_or(1, |sequence| sequence + 1);
    let accounting = UsageAccounting::new(options.tenant_of.clone(), &state);
    let history_pager = HistoryPager::new(path, run, options.limits.history_memory_bytes_max);
    let mut replay = LogReplay {
        state: &mut state,
        accounting,
        history_pager,
        options,
        revision: None,
        deferred_sync: false,
    };
    let mut sealed: Vec<SealedLog> = Vec::new();
    for (idx, sequence) in listing.logs.iter().enumerate() {
        if let Some(before) = sealed.last()
            && *sequence != before.sequence + 1
        {
            return Err(OpenError::Missing {
                file: store_files::log_path(path, before.sequence + 1),
            });
        }
        let is_last = idx + 1 == listing.logs.len();
        sealed.push(replay.replay_log(path, *sequence, is_last)?);
    }
    if sealed.is_empty() && snapshot_bytes > 0 {
        return Err(OpenError::Missing { file: store_files::log_path(path, 1) });
    }
    let LogReplay { accounting, history_pager, revision: end, deferred_sync, .. } = replay;
    if let (Some(end), Some(log)) = (end, sealed.last())
        && end < state.revision
    {
        let reason = format!("it ends at revision {end}, the snapshot is {}", state.revision);
        return Err(damaged_file(
            &store_files::log_path(path, log.sequence),
            log.bytes as usize,
            &reason,
        ));
    }
    if deferred_sync {
        state.revision = after_revision_gap(state.revision);
    }
    let defers_sync = matches!(options.sync, SyncMode::Interval(_));
    let log = Log::create(path, run, state.revision, defers_sync)
        .map_err(|source| io_error("create", &store_files::log_path(path, run), source))?;
    Ok(RecoveredStore { state, log, sealed, snapshot_bytes, accounting, history_pager })
}

/// Refuses a directory in which a later program wrote.
fn check_versions(directory: &Path, listing: &StoreFiles) -> Result<(), OpenError> {
    let snapshots =
        listing.snapshots.iter().map(|revision| store_files::snapshot_path(directory, *revision));
    let logs = listing.logs.iter().map(|sequence| store_files::log_path(directory, *sequence));
    let all = snapshots
        .map(|file| (file, FileKind::Snapshot))
        .chain(logs.map(|file| (file, FileKind::Log)));
    for (file, kind) in all {
        let head = store_files::read_header_bytes(&file)
            .map_err(|source| io_error("read", &file, source))?;
        // What else is wrong with a header is found when the file is read.
        if let Err(HeaderError::Newer { version }) = Header::check_version(&head, kind) {
            return Err(OpenError::Newer { file, version, version_max: FORMAT_VERSION });
        }
    }
    Ok(())
}

/// Reading logs into a state.
struct LogReplay<'a> {
    state: &'a mut StoreState,
    accounting: UsageAccounting,
    history_pager: HistoryPager,
    options: &'a Options,
    /// The last revision that was read; absent before the first log.
    revision: Option<Revision>,
    /// Whether the last log acknowledged writes before they were durable.
    deferred_sync: bool,
}

impl LogReplay<'_> {
    fn replay_log(
        &mut self,
        directory: &Path,
        sequence: u64,
        is_last: bool,
    ) -> Result<SealedLog, OpenError> {
        let path = store_files::log_path(directory, sequence);
        let file = store_files::read(&path).map_err(|source| io_error("read", &path, source))?;
        let damaged = |offset, reason: &str| damaged_file(&path, offset, reason);
        let header = Header::decode(&file, FileKind::Log)
            .map_err(|_| damaged(0, "the header is not that of a log"))?;
        self.start_log(&header).map_err(|reason| damaged(0, &reason))?;
        let mut offset = HEADER_BYTES;
        loop {
            match frame::read_frame(&file, header.salt, offset) {
                FrameRead::Frame { payload, next } => {
                    self.replay_frame(payload).map_err(|reason| damaged(offset, &reason))?;
                    self.bound_history();
                    offset = next;
                }
                FrameRead::End => break,
                FrameRead::Torn if is_last => {
                    truncate_torn_tail(&path, offset)?;
                    break;
                }
                FrameRead::Torn | FrameRead::Damaged => {
                    return Err(damaged(offset, "the checksum is wrong and writes follow"));
                }
            }
        }
        Ok(SealedLog { sequence, base: header.base, bytes: offset as u64 })
    }

    /// Keeps as much history as the running store would, where the running store would keep it. On a
    /// disk that takes no pages it is forgotten instead: a full disk must not prevent the start.
    fn bound_history(&mut self) {
        self.accounting.record_new_changes(self.state);
        self.accounting.commit(self.state.floor);
        let limits = &self.options.limits;
        if HistoryRetention::is_over_limit(limits, self.state, &self.accounting)
            && let Some(floor) = self.accounting.floor_for_bytes(limits.history_bytes_max)
        {
            self.compact(floor);
        }
        let mut paged: io::Result<bool> = self.history_pager.move_to_page(&mut self.state.history);
        while paged.is_err()
            && let Some(floor) = self.state.history.oldest_in_memory()
        {
            self.compact(floor);
            paged = self.history_pager.move_to_page(&mut self.state.history);
        }
    }

    fn compact(&mut self, floor: Revision) {
        self.accounting.record_new_changes(self.state);
        self.state.compact(floor);
        self.accounting.commit(self.state.floor);
    }

    /// Checks that a log follows on what was read before.
    fn start_log(&mut self, header: &Header) -> Result<(), String> {
        let base = header.base;
        match self.revision {
            None if base > self.state.revision => {
                let snapshot = self.state.revision;
                return Err(format!("it begins at revision {base}, the snapshot is {snapshot}"));
            }
            // A gap is made by a restart, not by beginning another file in the same run.
            Some(revision)
                if base != revision
                    && !(self.deferred_sync && base == after_revision_gap(revision)) =>
            {
                return Err(format!(
                    "it begins at revision {base}, the one before ends at {revision}"
                ));
            }
            Some(_) | None => {}
        }
        self.revision = Some(base);
        // Revisions that were skipped are part of the counter, also when nothing follows.
        self.state.revision = self.state.revision.max(base);
        self.deferred_sync = header.defers_sync;
        Ok(())
    }

    fn replay_frame(&mut self, payload: &[u8]) -> Result<(), String> {
        let mut records = RecordReader::new(payload);
        // The last write, and whether the snapshot lacks it.
        let mut last_write: Option<(Revision, bool)> = None;
        while let Some(record) = records.next().map_err(|error| error.to_string())? {
            match record {
                Record::Put { revision, key, value, expires_at_ms } => {
                    let is_after_snapshot = self.is_after_snapshot(revision)?;
                    if is_after_snapshot {
                        self.state.put(revision, key, value, expires_at_ms);
                    }
                    last_write = Some((revision, is_after_snapshot));
                }
                Record::Delete { revision, key } => {
                    let is_after_snapshot = self.is_after_snapshot(revision)?;
                    if is_after_snapshot && self.state.delete(revision, &key).is_none() {
                        return Err(format!("it deletes `{key}`, which is not there"));
                    }
                    last_write = Some((revision, is_after_snapshot));
                }
                Record::PutBeside { key, value } => match last_write {
                    Some((revision, true)) => drop(self.state.put(revision, key, value, None)),
                    Some((_, false)) => {}
                    None => return Err(format!("it writes `{key}` beside no write")),
                },
                Record::DeleteBeside { key } => match last_write {
                    Some((revision, true)) => {
                        if self.state.delete(revision, &key).is_none() {
                            return Err(format!("it deletes `{key}`, which is not there"));
                        }
                    }
                    Some((_, false)) => {}
                    None => return Err(format!("it deletes `{key}` beside no write")),
                },
                Record::Compact { floor } => {
                    last_write = None;
                    if floor > self.state.revision {
                        return Err(format!("it compacts revision {floor} of the future"));
                    }
                    self.compact(floor);
                }
                Record::Version(_) | Record::End { .. } | Record::KeyChange(_) => {
                    return Err("a record of a snapshot".to_owned());
                }
            }
        }
        Ok(())
    }

    /// Checks that a record makes the next revision; whether it is one that the snapshot lacks.
    fn is_after_snapshot(&mut self, revision: Revision) -> Result<bool, String> {
        let want = self.revision.unwrap_or(Revision::FIRST).next();
        if revision != want {
            return Err(format!("it makes revision {revision} instead of {want}"));
        }
        self.revision = Some(revision);
        Ok(revision > self.state.floor && revision > self.state.revision)
    }
}

/// The revision from which to go on when some after this one may have been seen and lost.
fn after_revision_gap(revision: Revision) -> Revision {
    Revision::new(revision.number().saturating_add(REVISION_GAP))
}

fn damaged_file(path: &Path, offset: usize, reason: &str) -> OpenError {
    OpenError::Damaged { file: PathBuf::from(path), offset: offset as u64, reason: reason.into() }
}

/// Cuts a torn tail off, durably, so that it can not come back behind later writes.
fn truncate_torn_tail(path: &Path, len: usize) -> Result<(), OpenError> {
    store_files::open_no_follow(OpenOptions::new().write(true), path)
        .and_then(|file| {
            file.set_len(len as u64)?;
            file.sync_all()
        })
        .map_err(|source| io_error("cut the torn end of", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{
        encode_compact, encode_delete, encode_delete_beside, encode_put, encode_put_beside,
    };
    use crate::version::Version;
    use bytes::Bytes;
    use store::Key;

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    fn put(revision: u64) -> Vec<u8> {
        let (mod_rev, create_rev) = (Revision::new(revision), Revision::new(revision));
        let (key, value) = (key("/a"), Bytes::new());
        let mut bytes = Vec::new();
        encode_put(&mut bytes, &Version { key, value, mod_rev, create_rev, expires_at_ms: None });
        bytes
    }

    fn delete(revision: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_delete(&mut bytes, Revision::new(revision), &key("/a"));
        bytes
    }

    fn beside() -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_put_beside(&mut bytes, &key("/beside"), b"value");
        bytes
    }

    fn gone() -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_delete_beside(&mut bytes, &key("/beside"));
        bytes
    }

    fn compact() -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_compact(&mut bytes, Revision::new(2));
        bytes
    }

    /// Which revision wrote the key beside, after a frame on top of a snapshot of this revision.
    fn replayed(snapshot: u64, records: &[Vec<u8>]) -> Result<Option<u64>, String> {
        let mut state = StoreState::new(Revision::new(snapshot), VersionTree::new());
        let (revision, options) = (Some(Revision::FIRST), &Options::default());
        let accounting = UsageAccounting::new(options.tenant_of.clone(), &state);
        let history_pager = HistoryPager::new(Path::new("/nowhere"), 1, usize::MAX);
        let state_read = &mut state;
        LogReplay {
            state: state_read,
            accounting,
            history_pager,
            options,
            revision,
            deferred_sync: false,
        }
        .frame(&records.concat())?;
        Ok(state.tree.get("/beside").map(|version| version.mod_rev.number()))
    }

    #[test]
    fn writes_beside_belong_to_the_write_before_them() {
        assert_eq!(replayed(1, &[put(2)]), Ok(None));
        assert_eq!(replayed(1, &[put(2), beside()]), Ok(Some(2)));
        assert_eq!(replayed(1, &[put(2), beside(), put(3)]), Ok(Some(2)));
        assert_eq!(replayed(1, &[put(2), beside(), delete(3), beside()]), Ok(Some(3)));
        assert_eq!(replayed(1, &[put(2), beside(), put(3), gone()]), Ok(None));
        assert_eq!(replayed(1, &[put(2), beside(), beside()]), Ok(Some(2)), "any number");
        let refused = Err("it writes `/beside` beside no write".to_owned());
        assert_eq!(replayed(1, &[beside()]), refused);
        assert_eq!(replayed(1, &[put(2), compact(), beside()]), refused);
        let refused = Err("it deletes `/beside` beside no write".to_owned());
        assert_eq!(replayed(1, &[gone()]), refused);
        let refused = Err("it deletes `/beside`, which is not there".to_owned());
        assert_eq!(replayed(1, &[put(2), gone()]), refused);
    }

    #[test]
    fn writes_beside_that_the_snapshot_has_are_skipped() {
        // The snapshot says that it was deleted since.
        assert_eq!(replayed(2, &[put(2), beside()]), Ok(None));
        assert_eq!(replayed(2, &[put(2), gone()]), Ok(None));
        assert_eq!(replayed(2, &[put(2), beside(), put(3), beside()]), Ok(Some(3)));
    }
}
