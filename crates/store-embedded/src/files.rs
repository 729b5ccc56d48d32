//! Names of files, and the steps by which a file gets its name safely.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use store::Revision;

use crate::error::OpenError;
use crate::frame::HEADER_BYTES;

const LOG: &str = "log-";
const SNAPSHOT: &str = "snapshot-";
const PAGE: &str = "page-";
const UNFINISHED: &str = ".tmp";

/// How long a lock is waited for. Whoever is being started by the process that had it holds it, too,
/// until it runs its own program, which takes moments.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// What a directory holds, each in rising order.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) logs: Vec<u64>,
    pub(crate) snapshots: Vec<Revision>,
    /// Files of a process that is gone.
    pub(crate) leftovers: Vec<PathBuf>,
}

/// A directory that no other process has open.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl Directory {
    /// Creates the directory if need be and locks it.
    pub(crate) fn lock(path: &Path) -> Result<Self, OpenError> {
        create_directory(path).map_err(|source| io_error("create", path, source))?;
        let file = path.join("lock");
        let lock = private(OpenOptions::new().write(true).create(true).truncate(false))
            .open(&file)
            .map_err(|source| io_error("open", &file, source))?;
        let begun = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { path: path.to_owned(), _lock: lock }),
                Err(fs::TryLockError::WouldBlock) if begun.elapsed() < LOCK_PATIENCE => {
                    std::thread::sleep(LOCK_RETRY);
                }
                Err(fs::TryLockError::WouldBlock) => {
                    return Err(OpenError::Locked { directory: path.to_owned() });
                }
                Err(fs::TryLockError::Error(source)) => {
                    return Err(io_error("lock", &file, source));
                }
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn list(&self) -> io::Result<Listing> {
        let mut listing = Listing::default();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            let number = |prefix| name.strip_prefix(prefix).and_then(|rest| rest.parse().ok());
            if name.ends_with(UNFINISHED) || name.starts_with(PAGE) {
                listing.leftovers.push(self.path.join(name));
            } else if let Some(sequence) = number(LOG) {
                listing.logs.push(sequence);
            } else if let Some(revision) = number(SNAPSHOT) {
                listing.snapshots.push(Revision::new(revision));
            }
        }
        listing.logs.sort_unstable();
        listing.snapshots.sort_unstable();
        Ok(listing)
    }
}

pub(crate) fn log(directory: &Path, sequence: u64) -> PathBuf {
    directory.join(format!("{LOG}{sequence:020}"))
}

pub(crate) fn snapshot(directory: &Path, revision: Revision) -> PathBuf {
    directory.join(format!("{SNAPSHOT}{:020}", revision.number()))
}

/// A page of the run that began with this log. A page may outlive its run in the hands of a watch, and
/// is removed when the watch ends, so no later run may use its name.
pub(crate) fn page(directory: &Path, run: u64, sequence: u64) -> PathBuf {
    directory.join(format!("{PAGE}{run:020}-{sequence:020}"))
}

/// The first bytes of a file: its header, or all of a file that is shorter.
pub(crate) fn read_head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEADER_BYTES);
    File::open(path)?.take(HEADER_BYTES as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Creates a file that only its owner can read: it may hold secrets.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    private(OpenOptions::new().write(true).create_new(true)).open(path)
}

/// Makes a file that is whole from the moment it has its name: `write` fills another one, which is
/// synced and renamed, and then the directory is synced.
pub(crate) fn create_whole(
    path: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<File> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    let result = write_and_rename(path, &unfinished, write);
    if result.is_err() {
        // What can not be removed now is removed when the directory is opened again.
        fs::remove_file(&unfinished).ok();
    }
    result
}

fn write_and_rename(
    path: &Path,
    unfinished: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<File> {
    let mut file =
        private(OpenOptions::new().write(true).create(true).truncate(true)).open(unfinished)?;
    write(&mut file)?;
    file.sync_all()?;
    fs::rename(unfinished, path)?;
    if let Some(directory) = path.parent() {
        sync_directory(directory)?;
    }
    Ok(file)
}

/// Makes names durable: without it a crash may forget a file that was synced itself.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { action, path: path.to_owned(), source }
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

fn create_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}
