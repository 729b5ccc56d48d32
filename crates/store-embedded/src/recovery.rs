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
use crate::files::{self, Listing, io_error};
use crate::frame::{self, FORMAT_VERSION, Found, HEADER_BYTES, Header, HeaderError, Kind};
use crate::ledger::Ledger;
use crate::log::Log;
use crate::options::{Options, REVISION_GAP, SyncMode};
use crate::pager::Pager;
use crate::record::{Reader, Record};
use crate::retention::Retention;
use crate::snapshot;
use crate::state::State;
use crate::tree::Tree;

/// What a directory holds.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) state: State,
    /// The log that new writes go to.
    pub(crate) log: Log,
    /// The logs before it, oldest first.
    pub(crate) sealed: Vec<SealedLog>,
    pub(crate) snapshot_bytes: u64,
    pub(crate) ledger: Ledger,
    pub(crate) pager: Pager,
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
pub(crate) fn recover(path: &Path, options: &Options) -> Result<Recovered, OpenError> {
    let listing = files::list(path).map_err(|source| io_error("list", path, source))?;
    check_versions(path, &listing)?;
    for leftover in &listing.leftovers {
        fs::remove_file(leftover).map_err(|source| io_error("remove", leftover, source))?;
    }
    let (mut state, snapshot_bytes) = match listing.snapshots.last() {
        Some(revision) => {
            let (tree, bytes) = snapshot::read(path, *revision)?;
            (State::new(*revision, tree), bytes)
        }
        None => (State::new(Revision::FIRST, Tree::new()), 0),
    };
    let run = listing.logs.last().map_or(1, |sequence| sequence + 1);
    let ledger = Ledger::new(options.share_of.clone(), &state);
    let pager = Pager::new(path, run, options.limits.history_memory_bytes_max);
    let mut replay =
        Replay { state: &mut state, ledger, pager, options, revision: None, was_lazy: false };
    let mut sealed: Vec<SealedLog> = Vec::new();
    for (idx, sequence) in listing.logs.iter().enumerate() {
        if let Some(before) = sealed.last()
            && *sequence != before.sequence + 1
        {
            return Err(OpenError::Missing { file: files::log(path, before.sequence + 1) });
        }
        let is_last = idx + 1 == listing.logs.len();
        sealed.push(replay.log(path, *sequence, is_last)?);
    }
    if sealed.is_empty() && snapshot_bytes > 0 {
        return Err(OpenError::Missing { file: files::log(path, 1) });
    }
    let Replay { ledger, pager, revision: end, was_lazy, .. } = replay;
    if let (Some(end), Some(log)) = (end, sealed.last())
        && end < state.revision
    {
        let reason = format!("it ends at revision {end}, the snapshot is {}", state.revision);
        return Err(damage(&files::log(path, log.sequence), log.bytes as usize, &reason));
    }
    if was_lazy {
        state.revision = skip(state.revision);
    }
    let is_lazy = matches!(options.sync, SyncMode::Interval(_));
    let log = Log::create(path, run, state.revision, is_lazy)
        .map_err(|source| io_error("create", &files::log(path, run), source))?;
    Ok(Recovered { state, log, sealed, snapshot_bytes, ledger, pager })
}

/// Refuses a directory in which a later program wrote.
fn check_versions(directory: &Path, listing: &Listing) -> Result<(), OpenError> {
    let snapshots = listing.snapshots.iter().map(|revision| files::snapshot(directory, *revision));
    let logs = listing.logs.iter().map(|sequence| files::log(directory, *sequence));
    let all =
        snapshots.map(|file| (file, Kind::Snapshot)).chain(logs.map(|file| (file, Kind::Log)));
    for (file, kind) in all {
        let head = files::read_head(&file).map_err(|source| io_error("read", &file, source))?;
        // What else is wrong with a header is found when the file is read.
        if let Err(HeaderError::Newer { version }) = Header::check_version(&head, kind) {
            return Err(OpenError::Newer { file, version, version_max: FORMAT_VERSION });
        }
    }
    Ok(())
}

/// Reading logs into a state.
struct Replay<'a> {
    state: &'a mut State,
    ledger: Ledger,
    pager: Pager,
    options: &'a Options,
    /// The last revision that was read; absent before the first log.
    revision: Option<Revision>,
    /// Whether the last log acknowledged writes before they were durable.
    was_lazy: bool,
}

impl Replay<'_> {
    fn log(
        &mut self,
        directory: &Path,
        sequence: u64,
        is_last: bool,
    ) -> Result<SealedLog, OpenError> {
        let path = files::log(directory, sequence);
        let file = files::read(&path).map_err(|source| io_error("read", &path, source))?;
        let damaged = |offset, reason: &str| damage(&path, offset, reason);
        let header = Header::decode(&file, Kind::Log)
            .map_err(|_| damaged(0, "the header is not that of a log"))?;
        self.begin(&header).map_err(|reason| damaged(0, &reason))?;
        let mut offset = HEADER_BYTES;
        loop {
            match frame::read(&file, header.salt, offset) {
                Found::Frame { payload, next } => {
                    self.frame(payload).map_err(|reason| damaged(offset, &reason))?;
                    self.bound_history();
                    offset = next;
                }
                Found::End => break,
                Found::Torn if is_last => {
                    cut(&path, offset)?;
                    break;
                }
                Found::Torn | Found::Damaged => {
                    return Err(damaged(offset, "the checksum is wrong and writes follow"));
                }
            }
        }
        Ok(SealedLog { sequence, base: header.base, bytes: offset as u64 })
    }

    /// Keeps as much history as the running store would, where the running store would keep it. On a
    /// disk that takes no pages it is forgotten instead: a full disk must not prevent the start.
    fn bound_history(&mut self) {
        self.ledger.absorb(self.state);
        self.ledger.commit(self.state.floor);
        let limits = &self.options.limits;
        if Retention::is_due(limits, self.state, &self.ledger)
            && let Some(floor) = self.ledger.floor_keeping(limits.history_bytes_max)
        {
            self.compact(floor);
        }
        let mut paged: io::Result<bool> = self.pager.page_out(&mut self.state.history);
        while paged.is_err()
            && let Some(floor) = self.state.history.oldest_resident()
        {
            self.compact(floor);
            paged = self.pager.page_out(&mut self.state.history);
        }
    }

    fn compact(&mut self, floor: Revision) {
        self.ledger.absorb(self.state);
        self.state.compact(floor);
        self.ledger.commit(self.state.floor);
    }

    /// Checks that a log follows on what was read before.
    fn begin(&mut self, header: &Header) -> Result<(), String> {
        let base = header.base;
        match self.revision {
            None if base > self.state.revision => {
                let snapshot = self.state.revision;
                return Err(format!("it begins at revision {base}, the snapshot is {snapshot}"));
            }
            // A gap is made by a restart, not by beginning another file in the same run.
            Some(revision) if base != revision && !(self.was_lazy && base == skip(revision)) => {
                return Err(format!(
                    "it begins at revision {base}, the one before ends at {revision}"
                ));
            }
            Some(_) | None => {}
        }
        self.revision = Some(base);
        // Revisions that were skipped are part of the counter, also when nothing follows.
        self.state.revision = self.state.revision.max(base);
        self.was_lazy = header.is_lazy;
        Ok(())
    }

    fn frame(&mut self, payload: &[u8]) -> Result<(), String> {
        let mut records = Reader::new(payload);
        // The last write, and whether the snapshot lacks it.
        let mut last_write: Option<(Revision, bool)> = None;
        while let Some(record) = records.next().map_err(|error| error.to_string())? {
            match record {
                Record::Put { revision, key, value, expires_at_ms } => {
                    let is_news = self.is_news(revision)?;
                    if is_news {
                        self.state.put(revision, key, value, expires_at_ms);
                    }
                    last_write = Some((revision, is_news));
                }
                Record::Delete { revision, key } => {
                    let is_news = self.is_news(revision)?;
                    if is_news && self.state.delete(revision, &key).is_none() {
                        return Err(format!("it deletes `{key}`, which is not there"));
                    }
                    last_write = Some((revision, is_news));
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
                Record::Version(_) | Record::End { .. } | Record::Step(_) => {
                    return Err("a record of a snapshot".to_owned());
                }
            }
        }
        Ok(())
    }

    /// Checks that a record makes the next revision; whether it is one that the snapshot lacks.
    fn is_news(&mut self, revision: Revision) -> Result<bool, String> {
        let want = self.revision.unwrap_or(Revision::FIRST).next();
        if revision != want {
            return Err(format!("it makes revision {revision} instead of {want}"));
        }
        self.revision = Some(revision);
        Ok(revision > self.state.floor && revision > self.state.revision)
    }
}

/// The revision from which to go on when some after this one may have been seen and lost.
fn skip(revision: Revision) -> Revision {
    Revision::new(revision.number().saturating_add(REVISION_GAP))
}

fn damage(path: &Path, offset: usize, reason: &str) -> OpenError {
    OpenError::Damaged { file: PathBuf::from(path), offset: offset as u64, reason: reason.into() }
}

/// Cuts a torn tail off, durably, so that it can not come back behind later writes.
fn cut(path: &Path, len: usize) -> Result<(), OpenError> {
    files::open_with(OpenOptions::new().write(true), path)
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
        let mut state = State::new(Revision::new(snapshot), Tree::new());
        let (revision, options) = (Some(Revision::FIRST), &Options::default());
        let ledger = Ledger::new(options.share_of.clone(), &state);
        let pager = Pager::new(Path::new("/nowhere"), 1, usize::MAX);
        let state_read = &mut state;
        Replay { state: state_read, ledger, pager, options, revision, was_lazy: false }
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
