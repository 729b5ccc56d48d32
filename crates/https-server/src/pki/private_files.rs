//! Atomic writes of private files.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};

use super::{PkiError, unusable_file_error};
use crate::watched_files::read;

/// Accessible for the owner only.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Creates a directory and its parents. The mode of an existing one stays.
pub(super) fn create_directory(path: &Path) -> Result<(), PkiError> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(path)
        .map_err(|source| PkiError::Directory { path: path.display().to_string(), source })
}

/// Refuses symbolic links: a link would let its creator choose which file the server trusts or
/// overwrites.
pub(super) fn refuse_symlink(path: &Path) -> Result<(), PkiError> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        let reason = "it is a symbolic link, and links in a data directory are not followed";
        return Err(unusable_file_error(path, reason.to_owned()));
    }
    Ok(())
}

pub(super) fn read_text_file(path: &Path) -> Result<String, PkiError> {
    String::from_utf8(read(path)?)
        .map_err(|_| unusable_file_error(path, "it is not text".to_owned()))
}

/// Writes a file that does not exist and reports whether it did. A file that appears meanwhile
/// stays.
pub(super) fn create_file_if_absent(path: &Path, contents: &[u8]) -> Result<bool, PkiError> {
    write_via_temporary_file(path, contents, |temporary| match fs::hard_link(temporary, path) {
        Ok(()) => {
            fs::remove_file(temporary)?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(temporary)?;
            Ok(false)
        }
        // Some file systems have no hard links. Then the last of several writers wins.
        Err(_) => fs::rename(temporary, path).map(|()| true),
    })
}

/// Replaces a file. Readers see either the old or the new one.
pub(super) fn replace_atomically(path: &Path, contents: &[u8]) -> Result<(), PkiError> {
    write_via_temporary_file(path, contents, |temporary| fs::rename(temporary, path))
}

/// Writes a temporary file, lets `place` move it to its final name, and syncs file and directory.
fn write_via_temporary_file<T>(
    path: &Path,
    contents: &[u8],
    place: impl FnOnce(&Path) -> io::Result<T>,
) -> Result<T, PkiError> {
    let write = || {
        let temporary = temporary_path(path)?;
        let placed = write_and_sync_file(&temporary, contents).and_then(|()| place(&temporary));
        if placed.is_err() {
            // The first error is more useful than an error of the cleanup.
            let _ = fs::remove_file(&temporary);
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
        placed
    };
    write().map_err(|source| PkiError::Write { path: path.display().to_string(), source })
}

fn write_and_sync_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.write_all(contents)?;
    file.sync_all()
}

/// A random hidden name in the same directory.
fn temporary_path(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("no random bytes"))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(path.with_file_name(format!(".{name}.{:016x}", u64::from_be_bytes(random))))
}
