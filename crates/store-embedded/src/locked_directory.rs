//! Locks the data directory for one process.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::open_error::OpenError;
use crate::store_files::{self, open_io_error};

/// Mode of a new data directory: only its owner has access.
pub const DIRECTORY_MODE: u32 = 0o700;
/// Write permission of group and others. With it they could replace the files of the store.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Time to wait for the lock. A child process of the owner inherits the lock until it calls exec, which
/// takes milliseconds.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// A locked data directory. Dropping it releases the lock.
#[derive(Debug)]
pub struct LockedDirectory {
    path: PathBuf,
    /// The lock is held while this file is open.
    _lock_file: File,
}

impl LockedDirectory {
    /// Creates the directory if needed, checks its owner and mode, and locks it.
    ///
    /// # Errors
    /// Another process has locked the directory, other users may write to it, or the system refuses.
    pub fn lock(path: &Path) -> Result<Self, OpenError> {
        let mut builder = DirBuilder::new();
        let created = builder.recursive(true).mode(DIRECTORY_MODE).create(path);
        created.map_err(|source| open_io_error("create", path, source))?;
        check_owner_and_mode(path)?;
        let file = path.join("lock");
        let begun = Instant::now();
        loop {
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(false);
            let lock = store_files::open_no_follow(options, &file)
                .map_err(|source| open_io_error("open", &file, source))?;
            match lock.try_lock() {
                // The previous owner may have removed the lock file; then lock the new one.
                Ok(()) if !is_same_file(&lock, &file) => {}
                Ok(()) => return Ok(Self { path: path.to_owned(), _lock_file: lock }),
                Err(fs::TryLockError::WouldBlock) if begun.elapsed() < LOCK_PATIENCE => {
                    std::thread::sleep(LOCK_RETRY);
                }
                Err(fs::TryLockError::WouldBlock) => {
                    return Err(OpenError::Locked { directory: path.to_owned() });
                }
                Err(fs::TryLockError::Error(source)) => {
                    return Err(open_io_error("lock", &file, source));
                }
            }
        }
    }

    /// The path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn is_same_file(lock: &File, path: &Path) -> bool {
    let identity = |found: io::Result<fs::Metadata>| found.map(|found| (found.dev(), found.ino()));
    match (identity(lock.metadata()), identity(fs::symlink_metadata(path))) {
        (Ok(locked), Ok(named)) => locked == named,
        (Ok(_) | Err(_), _) => false,
    }
}

/// Refuses a directory in which other users could replace files.
fn check_owner_and_mode(path: &Path) -> Result<(), OpenError> {
    let found = fs::metadata(path).map_err(|source| open_io_error("look at", path, source))?;
    let directory = || path.to_owned();
    if found.mode() & WRITABLE_BY_OTHERS != 0 {
        let mode = found.mode() & 0o7777;
        return Err(OpenError::Writable { directory: directory(), mode });
    }
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own && found.uid() != 0 {
        return Err(OpenError::Foreign { directory: directory(), owner: found.uid(), own });
    }
    Ok(())
}
