//! Writes snapshots on a thread of their own, and removes the files that they make obsolete.
//!
//! A snapshot holds the state at the compaction floor, not the newest state. The logs after it hold the
//! whole history, so a restart loses no revision that clients can still read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use store::Revision;

use crate::recovery::SealedLog;
use crate::snapshot;
use crate::store_files;
use crate::store_state::StoreState;

/// This many obsolete logs justify a snapshot even if they are small. Restarts leave small logs.
const LOGS_MAX: usize = 64;

/// A snapshot that is being written.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    snapshot_thread: JoinHandle<io::Result<u64>>,
    cancel_flag: Arc<AtomicBool>,
    revision: Revision,
}

/// Counts the logs that a snapshot of the floor makes obsolete. `None` if the snapshot would free too little.
pub(crate) fn count_logs_worth_snapshot(
    sealed_logs: &[SealedLog],
    newest_base: Revision,
    floor: Revision,
    bytes_min: u64,
) -> Option<usize> {
    let n_logs = count_obsolete_logs(sealed_logs, newest_base, floor);
    let bytes: u64 = sealed_logs.iter().take(n_logs).map(|log| log.file_bytes).sum();
    (n_logs > 0 && (bytes >= bytes_min || n_logs >= LOGS_MAX)).then_some(n_logs)
}

/// Counts obsolete logs: those whose successor begins at or before the floor.
pub(crate) fn count_obsolete_logs(
    sealed_logs: &[SealedLog],
    newest_base: Revision,
    floor: Revision,
) -> usize {
    let next_bases = sealed_logs.iter().skip(1).map(|log| log.base_revision).chain([newest_base]);
    next_bases.take(sealed_logs.len()).take_while(|base| *base <= floor).count()
}

impl Checkpoint {
    /// Starts a thread that writes the snapshot.
    pub(crate) fn start(directory: PathBuf, state: StoreState) -> io::Result<Self> {
        let cancel_flag = Arc::new(AtomicBool::new(false));
        let revision = state.compaction_floor;
        let is_cancelled = cancel_flag.clone();
        let work =
            move || snapshot::write(&directory, &state, &|| is_cancelled.load(Ordering::Relaxed));
        let thread = std::thread::Builder::new().name("store-checkpoint".into()).spawn(work)?;
        Ok(Self { snapshot_thread: thread, cancel_flag, revision })
    }

    pub(crate) fn is_snapshot_finished(&self) -> bool {
        self.snapshot_thread.is_finished()
    }

    /// Waits for the thread. Returns the revision and the size of the snapshot.
    pub(crate) fn wait_for_snapshot(self) -> io::Result<(Revision, u64)> {
        let panicked = |_| io::Error::other("the thread that writes snapshots has panicked");
        let bytes = self.snapshot_thread.join().map_err(panicked)??;
        Ok((self.revision, bytes))
    }

    /// Cancels the thread and waits for it. Returns the same as [`Self::finish`] if the snapshot was already
    /// complete, because then older files are obsolete.
    pub(crate) fn cancel_snapshot(self) -> Option<(Revision, u64)> {
        self.cancel_flag.store(true, Ordering::Relaxed);
        self.wait_for_snapshot().ok()
    }
}

/// Removes the oldest logs and older snapshots. The oldest log goes first, and a log that cannot be removed
/// stays in the list for a later attempt, so the remaining logs are contiguous.
pub(crate) fn remove_replaced_files(
    directory: &Path,
    sealed_logs: &mut Vec<SealedLog>,
    n_logs: usize,
    snapshot: Revision,
) -> io::Result<()> {
    for _ in 0..n_logs.min(sealed_logs.len()) {
        if let Some(log) = sealed_logs.first() {
            match fs::remove_file(store_files::log_path(directory, log.log_number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        sealed_logs.remove(0);
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_older = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_prefix("snapshot-")?.parse().ok())
            .is_some_and(|revision: u64| revision < snapshot.as_u64());
        if is_older {
            fs::remove_file(path)?;
        }
    }
    store_files::sync_directory(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Logs that begin at these revisions, of 100 bytes each.
    fn logs(bases: &[u64]) -> Vec<SealedLog> {
        let log = |(sequence, base): (usize, &u64)| SealedLog {
            log_number: sequence as u64,
            base_revision: Revision::new(*base),
            file_bytes: 100,
        };
        bases.iter().enumerate().map(log).collect()
    }

    #[test]
    fn a_log_is_superfluous_when_the_next_begins_at_the_floor() {
        let count = |bases: &[u64], newest: u64, floor: u64| {
            count_obsolete_logs(&logs(bases), Revision::new(newest), Revision::new(floor))
        };
        assert_eq!(count(&[], 5, 9), 0);
        assert_eq!(count(&[1, 5], 9, 4), 0);
        assert_eq!(count(&[1, 5], 9, 5), 1);
        assert_eq!(count(&[1, 5], 9, 8), 1);
        assert_eq!(count(&[1, 5], 9, 9), 2);
    }

    #[test]
    fn a_snapshot_is_written_when_it_frees_enough() {
        let worth = |bases: &[u64], bytes_min| {
            count_logs_worth_snapshot(&logs(bases), Revision::new(9), Revision::new(9), bytes_min)
        };
        assert_eq!(worth(&[], 0), None);
        assert_eq!(worth(&[1, 5], 201), None);
        assert_eq!(worth(&[1, 5], 200), Some(2));
        assert_eq!(worth(&[1; LOGS_MAX - 1], u64::MAX), None);
        assert_eq!(worth(&[1; LOGS_MAX], u64::MAX), Some(LOGS_MAX));
    }

    /// The next start would report a gap between logs as damage, so the oldest log is removed first.
    #[test]
    fn a_log_that_can_not_be_removed_stays_in_the_list() {
        let directory = tempfile::tempdir().unwrap();
        let mut sealed_logs = logs(&[1, 5, 9]);
        fs::write(store_files::log_path(directory.path(), 0), "").unwrap();
        fs::create_dir(store_files::log_path(directory.path(), 1)).unwrap();
        fs::write(store_files::log_path(directory.path(), 2), "").unwrap();
        remove_replaced_files(directory.path(), &mut sealed_logs, 3, Revision::new(9)).unwrap_err();
        assert_eq!(sealed_logs, logs(&[1, 5, 9])[1..]);
        assert!(store_files::log_path(directory.path(), 2).exists());
        fs::remove_dir(store_files::log_path(directory.path(), 1)).unwrap();
        remove_replaced_files(directory.path(), &mut sealed_logs, 2, Revision::new(9)).unwrap();
        assert_eq!(sealed_logs, []);
    }
}
