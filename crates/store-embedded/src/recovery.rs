//! Opens a directory: reads the newest snapshot and replays the logs after it.
//!
//! 1. If a newer version of this program wrote one of the files, fail and change nothing.
//! 2. Remove temporary files and history pages of an earlier process.
//! 3. Load the newest snapshot; without one, start with the empty store.
//! 4. Replay each log in order. Skip records that the snapshot contains; every other record must make the
//!    next revision. Move history to files and drop it by the same limits as the running store, so that
//!    opening needs no more memory or disk than running.
//! 5. Cut off a torn tail of the last log. Any other invalid frame is damage, and the store does not open.
//! 6. If that log acknowledged writes before they were durable, skip the revisions that it may have lost.
//! 7. Start a new log.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use store::{Key, Revision};

use crate::frame::{
    self, FORMAT_VERSION, FileHeader, FileKind, FrameReadResult, HEADER_BYTES, HeaderError,
};
use crate::history_pager::HistoryPager;
use crate::history_retention::is_history_over_limit;
use crate::log_file::LogFile;
use crate::open_error::OpenError;
use crate::options::{Options, REVISION_GAP, SyncMode};
use crate::record::{FileRecord, RecordError, RecordReader};
use crate::snapshot;
use crate::store_files::{self, StoreFiles, open_io_error};
use crate::store_state::StoreState;
use crate::usage_accounting::UsageAccounting;
use crate::version_tree::VersionTree;

/// The recovered content of a directory.
#[derive(Debug)]
pub(crate) struct RecoveredStore {
    pub(crate) store_state: StoreState,
    /// The log for new writes.
    pub(crate) new_log: LogFile,
    /// The earlier logs, oldest first.
    pub(crate) sealed_logs: Vec<SealedLog>,
    pub(crate) snapshot_bytes: u64,
    pub(crate) usage_accounting: UsageAccounting,
    pub(crate) history_pager: HistoryPager,
}

/// A log that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedLog {
    pub(crate) log_number: u64,
    /// The revision before its first record.
    pub(crate) base_revision: Revision,
    pub(crate) file_bytes: u64,
}

/// Recovers the state of a directory and starts a new log.
pub(crate) fn recover_store(path: &Path, options: &Options) -> Result<RecoveredStore, OpenError> {
    let listing = store_files::list_store_files(path)
        .map_err(|source| open_io_error("list", path, source))?;
    check_format_versions(path, &listing)?;
    for stale_file in &listing.stale_temporary_files {
        fs::remove_file(stale_file)
            .map_err(|source| open_io_error("remove", stale_file, source))?;
    }
    let (mut state, snapshot_bytes) = match listing.snapshot_revisions.last() {
        Some(revision) => {
            let (tree, bytes) = snapshot::read(path, *revision)?;
            (StoreState::new(*revision, tree), bytes)
        }
        None => (StoreState::new(Revision::FIRST, VersionTree::new()), 0),
    };
    let run = listing.log_numbers.last().map_or(1, |sequence| sequence + 1);
    let accounting = UsageAccounting::new(options.tenant_resolver.clone(), &state);
    let history_pager = HistoryPager::new(path, run, options.limits.history_memory_bytes_max);
    let mut replay = LogReplay {
        store_state: &mut state,
        usage_accounting: accounting,
        history_pager,
        options,
        last_replayed_revision: None,
        last_log_defers_sync: false,
    };
    let mut sealed_logs: Vec<SealedLog> = Vec::new();
    for (idx, sequence) in listing.log_numbers.iter().enumerate() {
        if let Some(before) = sealed_logs.last()
            && *sequence != before.log_number + 1
        {
            return Err(OpenError::Missing {
                file: store_files::log_path(path, before.log_number + 1),
            });
        }
        let is_last = idx + 1 == listing.log_numbers.len();
        sealed_logs.push(replay.replay_log(path, *sequence, is_last)?);
    }
    if sealed_logs.is_empty() && snapshot_bytes > 0 {
        return Err(OpenError::Missing { file: store_files::log_path(path, 1) });
    }
    let LogReplay {
        usage_accounting: accounting,
        history_pager,
        last_replayed_revision: end,
        last_log_defers_sync,
        ..
    } = replay;
    if let (Some(end), Some(log)) = (end, sealed_logs.last())
        && end < state.revision
    {
        let reason = format!("it ends at revision {end}, the snapshot is {}", state.revision);
        return Err(damaged_file_error(
            &store_files::log_path(path, log.log_number),
            log.file_bytes as usize,
            &reason,
        ));
    }
    if last_log_defers_sync {
        state.revision = skip_revision_gap(state.revision);
    }
    let defers_sync = matches!(options.sync_mode, SyncMode::Interval(_));
    let log = LogFile::create_log_file(path, run, state.revision, defers_sync)
        .map_err(|source| open_io_error("create", &store_files::log_path(path, run), source))?;
    Ok(RecoveredStore {
        store_state: state,
        new_log: log,
        sealed_logs,
        snapshot_bytes,
        usage_accounting: accounting,
        history_pager,
    })
}

/// Refuses a directory that a newer version of this program has written.
fn check_format_versions(directory: &Path, listing: &StoreFiles) -> Result<(), OpenError> {
    let snapshots = listing
        .snapshot_revisions
        .iter()
        .map(|revision| store_files::snapshot_path(directory, *revision));
    let logs =
        listing.log_numbers.iter().map(|sequence| store_files::log_path(directory, *sequence));
    let all = snapshots
        .map(|file| (file, FileKind::Snapshot))
        .chain(logs.map(|file| (file, FileKind::Log)));
    for (file, kind) in all {
        let head = store_files::read_header_bytes(&file)
            .map_err(|source| open_io_error("read", &file, source))?;
        // Reading the file reports other faults of its header.
        if let Err(HeaderError::Newer { version }) = FileHeader::check_format_version(&head, kind) {
            return Err(OpenError::Newer { file, version, version_max: FORMAT_VERSION });
        }
    }
    Ok(())
}

/// The reason why a log cannot be replayed. The text becomes the reason of [`OpenError::Damaged`].
#[derive(Debug, thiserror::Error)]
enum ReplayError {
    #[error("it begins at revision {base}, the snapshot is {snapshot}")]
    AfterSnapshot { base: Revision, snapshot: Revision },
    #[error("it begins at revision {base}, the one before ends at {end}")]
    Gap { base: Revision, end: Revision },
    #[error("it makes revision {revision} instead of {want}")]
    WrongRevision { revision: Revision, want: Revision },
    #[error("it deletes `{0}`, which does not exist")]
    DeletesAbsent(Key),
    #[error("it {action} `{key}` without a main write")]
    NoMainWrite { action: &'static str, key: Key },
    #[error("it compacts to revision {0}, which does not exist yet")]
    CompactsFuture(Revision),
    #[error("it has a record of a snapshot")]
    SnapshotRecord,
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// The replay of logs into a state.
struct LogReplay<'a> {
    store_state: &'a mut StoreState,
    usage_accounting: UsageAccounting,
    history_pager: HistoryPager,
    options: &'a Options,
    /// The last replayed revision; `None` before the first log.
    last_replayed_revision: Option<Revision>,
    /// Whether the last log acknowledged writes before they were durable.
    last_log_defers_sync: bool,
}

impl LogReplay<'_> {
    fn replay_log(
        &mut self,
        directory: &Path,
        sequence: u64,
        is_last: bool,
    ) -> Result<SealedLog, OpenError> {
        let path = store_files::log_path(directory, sequence);
        let file =
            store_files::read(&path).map_err(|source| open_io_error("read", &path, source))?;
        let damaged_error = |offset, reason: &str| damaged_file_error(&path, offset, reason);
        let header = FileHeader::decode_header(&file, FileKind::Log)
            .map_err(|_| damaged_error(0, "the header is not that of a log"))?;
        self.check_log_start(&header).map_err(|error| damaged_error(0, &error.to_string()))?;
        let mut offset = HEADER_BYTES;
        loop {
            match frame::read_frame(&file, header.checksum_salt, offset) {
                FrameReadResult::Frame { payload, next } => {
                    self.replay_frame(payload)
                        .map_err(|error| damaged_error(offset, &error.to_string()))?;
                    self.apply_history_limits();
                    offset = next;
                }
                FrameReadResult::End => break,
                FrameReadResult::Torn if is_last => {
                    truncate_torn_tail(&path, offset)?;
                    break;
                }
                FrameReadResult::Torn | FrameReadResult::Damaged => {
                    return Err(damaged_error(offset, "the checksum is wrong and writes follow"));
                }
            }
        }
        Ok(SealedLog {
            log_number: sequence,
            base_revision: header.base_revision,
            file_bytes: offset as u64,
        })
    }

    /// Applies the limits of the running store to the replayed history. If pages cannot be written, the
    /// history is dropped instead: a full disk must not prevent a start.
    fn apply_history_limits(&mut self) {
        self.usage_accounting.record_new_changes(self.store_state);
        self.usage_accounting.commit_batch(self.store_state.compaction_floor);
        let limits = &self.options.limits;
        if is_history_over_limit(limits, self.store_state, &self.usage_accounting)
            && let Some(floor) =
                self.usage_accounting.floor_for_history_bytes(limits.history_bytes_max)
        {
            self.compact(floor);
        }
        let mut paged: io::Result<bool> =
            self.history_pager.write_history_pages(&mut self.store_state.history);
        while paged.is_err()
            && let Some(floor) = self.store_state.history.oldest_resident_revision()
        {
            self.compact(floor);
            paged = self.history_pager.write_history_pages(&mut self.store_state.history);
        }
    }

    fn compact(&mut self, floor: Revision) {
        self.usage_accounting.record_new_changes(self.store_state);
        self.store_state.compact(floor);
        self.usage_accounting.commit_batch(self.store_state.compaction_floor);
    }

    /// Checks that a log continues where the previous one ended.
    fn check_log_start(&mut self, header: &FileHeader) -> Result<(), ReplayError> {
        let base = header.base_revision;
        match self.last_replayed_revision {
            None if base > self.store_state.revision => {
                let snapshot = self.store_state.revision;
                return Err(ReplayError::AfterSnapshot { base, snapshot });
            }
            // Only a restart makes a gap, not a log rotation.
            Some(revision)
                if base != revision
                    && !(self.last_log_defers_sync && base == skip_revision_gap(revision)) =>
            {
                return Err(ReplayError::Gap { base, end: revision });
            }
            Some(_) | None => {}
        }
        self.last_replayed_revision = Some(base);
        // Skipped revisions count even if nothing follows.
        self.store_state.revision = self.store_state.revision.max(base);
        self.last_log_defers_sync = header.defers_sync;
        Ok(())
    }

    fn replay_frame(&mut self, payload: &[u8]) -> Result<(), ReplayError> {
        let mut records = RecordReader::new(payload);
        // The last write, and whether it is newer than the snapshot.
        let mut last_write: Option<(Revision, bool)> = None;
        while let Some(record) = records.next()? {
            match record {
                FileRecord::Put { revision, key, value, expires_at_ms } => {
                    let is_after_snapshot = self.advance_to_revision(revision)?;
                    if is_after_snapshot {
                        self.store_state.put(revision, key, value, expires_at_ms);
                    }
                    last_write = Some((revision, is_after_snapshot));
                }
                FileRecord::Delete { revision, key } => {
                    let is_after_snapshot = self.advance_to_revision(revision)?;
                    if is_after_snapshot && self.store_state.delete(revision, &key).is_none() {
                        return Err(ReplayError::DeletesAbsent(key));
                    }
                    last_write = Some((revision, is_after_snapshot));
                }
                FileRecord::AdditionalPut { key, value } => match last_write {
                    Some((revision, true)) => {
                        drop(self.store_state.put(revision, key, value, None))
                    }
                    Some((_, false)) => {}
                    None => return Err(ReplayError::NoMainWrite { action: "writes", key }),
                },
                FileRecord::AdditionalDelete { key } => match last_write {
                    Some((revision, true)) => {
                        if self.store_state.delete(revision, &key).is_none() {
                            return Err(ReplayError::DeletesAbsent(key));
                        }
                    }
                    Some((_, false)) => {}
                    None => return Err(ReplayError::NoMainWrite { action: "deletes", key }),
                },
                FileRecord::Compact { floor } => {
                    last_write = None;
                    if floor > self.store_state.revision {
                        return Err(ReplayError::CompactsFuture(floor));
                    }
                    self.compact(floor);
                }
                FileRecord::Version(_) | FileRecord::End { .. } | FileRecord::KeyChange(_) => {
                    return Err(ReplayError::SnapshotRecord);
                }
            }
        }
        Ok(())
    }

    /// Checks that a record makes the next revision, and advances to it. Returns whether the snapshot lacks it.
    fn advance_to_revision(&mut self, revision: Revision) -> Result<bool, ReplayError> {
        let want = self.last_replayed_revision.unwrap_or(Revision::FIRST).next();
        if revision != want {
            return Err(ReplayError::WrongRevision { revision, want });
        }
        self.last_replayed_revision = Some(revision);
        Ok(revision > self.store_state.compaction_floor && revision > self.store_state.revision)
    }
}

/// Skips the revisions that clients may have seen although they were lost.
fn skip_revision_gap(revision: Revision) -> Revision {
    Revision::new(revision.as_u64().saturating_add(REVISION_GAP))
}

fn damaged_file_error(path: &Path, offset: usize, reason: &str) -> OpenError {
    OpenError::Damaged { file: PathBuf::from(path), offset: offset as u64, reason: reason.into() }
}

/// Cuts off a torn tail durably, so that it cannot reappear after later writes.
fn truncate_torn_tail(path: &Path, len: usize) -> Result<(), OpenError> {
    store_files::open_no_follow(OpenOptions::new().write(true), path)
        .and_then(|file| {
            file.set_len(len as u64)?;
            file.sync_all()
        })
        .map_err(|source| open_io_error("cut the torn end of", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{
        encode_additional_delete, encode_additional_put, encode_compaction_floor, encode_delete,
        encode_put,
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
        encode_additional_put(&mut bytes, &key("/beside"), b"value");
        bytes
    }

    fn gone() -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_additional_delete(&mut bytes, &key("/beside"));
        bytes
    }

    fn compact() -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_compaction_floor(&mut bytes, Revision::new(2));
        bytes
    }

    /// Replays a frame on top of a snapshot of this revision. Returns the revision that wrote the additional key.
    fn replay(snapshot: u64, records: &[Vec<u8>]) -> Result<Option<u64>, ReplayError> {
        let mut state = StoreState::new(Revision::new(snapshot), VersionTree::new());
        let (revision, options) = (Some(Revision::FIRST), &Options::default());
        let accounting = UsageAccounting::new(options.tenant_resolver.clone(), &state);
        let history_pager = HistoryPager::new(Path::new("/nowhere"), 1, usize::MAX);
        let state_read = &mut state;
        LogReplay {
            store_state: state_read,
            usage_accounting: accounting,
            history_pager,
            options,
            last_replayed_revision: revision,
            last_log_defers_sync: false,
        }
        .replay_frame(&records.concat())?;
        Ok(state.version_tree.get("/beside").map(|version| version.mod_rev.as_u64()))
    }

    #[test]
    fn writes_beside_belong_to_the_write_before_them() {
        assert_eq!(replay(1, &[put(2)]).unwrap(), None);
        assert_eq!(replay(1, &[put(2), beside()]).unwrap(), Some(2));
        assert_eq!(replay(1, &[put(2), beside(), put(3)]).unwrap(), Some(2));
        assert_eq!(replay(1, &[put(2), beside(), delete(3), beside()]).unwrap(), Some(3));
        assert_eq!(replay(1, &[put(2), beside(), put(3), gone()]).unwrap(), None);
        assert_eq!(replay(1, &[put(2), beside(), beside()]).unwrap(), Some(2), "any number");
        let refused = "it writes `/beside` without a main write";
        assert_eq!(replay(1, &[beside()]).unwrap_err().to_string(), refused);
        assert_eq!(replay(1, &[put(2), compact(), beside()]).unwrap_err().to_string(), refused);
        let refused = "it deletes `/beside` without a main write";
        assert_eq!(replay(1, &[gone()]).unwrap_err().to_string(), refused);
        let refused = "it deletes `/beside`, which does not exist";
        assert_eq!(replay(1, &[put(2), gone()]).unwrap_err().to_string(), refused);
    }

    #[test]
    fn writes_beside_that_the_snapshot_has_are_skipped() {
        // The snapshot shows that the key was deleted later.
        assert_eq!(replay(2, &[put(2), beside()]).unwrap(), None);
        assert_eq!(replay(2, &[put(2), gone()]).unwrap(), None);
        assert_eq!(replay(2, &[put(2), beside(), put(3), beside()]).unwrap(), Some(3));
    }
}
