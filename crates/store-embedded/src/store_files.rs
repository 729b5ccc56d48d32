//! File names of the store, and crash-safe creation of files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use store::Revision;

use crate::frame::HEADER_BYTES;
use crate::open_error::OpenError;

const LOG: &str = "log-";
const SNAPSHOT: &str = "snapshot-";
const PAGE: &str = "page-";
const UNFINISHED: &str = ".tmp";

/// The files of a data directory, in ascending order.
#[derive(Debug, Default)]
pub(crate) struct StoreFiles {
    pub(crate) log_numbers: Vec<u64>,
    pub(crate) snapshot_revisions: Vec<Revision>,
    /// Temporary files of an earlier process.
    pub(crate) stale_temporary_files: Vec<PathBuf>,
}

/// Lists the files of the store in a directory.
pub(crate) fn list_store_files(directory: &Path) -> io::Result<StoreFiles> {
    let mut listing = StoreFiles::default();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let number = |prefix| name.strip_prefix(prefix).and_then(|rest| rest.parse().ok());
        if name.ends_with(UNFINISHED) || name.starts_with(PAGE) {
            listing.stale_temporary_files.push(directory.join(name));
        } else if let Some(sequence) = number(LOG) {
            listing.log_numbers.push(sequence);
        } else if let Some(revision) = number(SNAPSHOT) {
            listing.snapshot_revisions.push(Revision::new(revision));
        }
    }
    listing.log_numbers.sort_unstable();
    listing.snapshot_revisions.sort_unstable();
    Ok(listing)
}

pub(crate) fn log_path(directory: &Path, sequence: u64) -> PathBuf {
    directory.join(format!("{LOG}{sequence:020}"))
}

pub(crate) fn snapshot_path(directory: &Path, revision: Revision) -> PathBuf {
    directory.join(format!("{SNAPSHOT}{:020}", revision.as_u64()))
}

/// The path of a page of history. `run` is the number of the first log of this process: a watch may keep a
/// page open longer than its process keeps the store open, so no later run may reuse the name.
pub(crate) fn history_page_path(directory: &Path, run: u64, sequence: u64) -> PathBuf {
    directory.join(format!("{PAGE}{run:020}-{sequence:020}"))
}

/// Reads the header bytes of a file, or all of a shorter file.
pub(crate) fn read_header_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEADER_BYTES);
    open(path)?.take(HEADER_BYTES as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_no_follow(OpenOptions::new().read(true), path)
}

/// Reads a whole file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Creates a file with mode 0600: it may hold secrets.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    open_no_follow(OpenOptions::new().write(true).create_new(true), path)
}

/// Opens a file, or creates it with mode 0600. Does not follow symbolic links: a link in the directory could
/// redirect reads and writes to any file.
pub(crate) fn open_no_follow(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let opened = options.mode(0o600).custom_flags(no_follow).open(path);
    opened.map_err(|error| match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => io::Error::other(
            "it is a symbolic link, and links in a data directory are not followed",
        ),
        Ok(_) | Err(_) => error,
    })
}

/// Creates a file that is complete when it gets its name: `write` fills a temporary file, which is then synced
/// and renamed, and then the directory is synced.
pub(crate) fn create_atomically(
    path: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<File> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    let result = write_and_rename(path, &unfinished, write);
    if result.is_err() {
        // The next open removes a temporary file that cannot be removed now.
        fs::remove_file(&unfinished).ok();
    }
    result
}

fn write_and_rename(
    path: &Path,
    unfinished: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let mut file =
        open_no_follow(options.read(true).write(true).create(true).truncate(true), unfinished)?;
    write(&mut file)?;
    file.sync_all()?;
    fs::rename(unfinished, path)?;
    if let Some(directory) = path.parent() {
        // Remove a file whose name may not survive a crash.
        sync_directory(directory).inspect_err(|_| drop(fs::remove_file(path)))?;
    }
    Ok(file)
}

/// Makes file names durable. Without it a crash may lose the name of a file that was synced.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

pub(crate) fn open_io_error(action: &'static str, path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { action, path: path.to_owned(), source }
}
