//! Private files that are there whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};

use super::{PkiError, unusable};
use crate::watched_files::read;

/// For the owner alone.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Makes a directory and what leads to it. The mode of one that exists is its owner's business.
pub(super) fn create_directory(path: &Path) -> Result<(), PkiError> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(path)
        .map_err(|source| PkiError::Directory { path: path.display().to_string(), source })
}

/// A link would make the server trust, or write, a file of the choice of whoever made it.
pub(super) fn refuse_link(path: &Path) -> Result<(), PkiError> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        let reason = "it is a symbolic link, and links in a data directory are not followed";
        return Err(unusable(path, reason.to_owned()));
    }
    Ok(())
}

pub(super) fn read_text(path: &Path) -> Result<String, PkiError> {
    String::from_utf8(read(path)?).map_err(|_| unusable(path, "it is not text".to_owned()))
}

/// Writes a file that does not exist, and says whether it did: one that appeared meanwhile stays.
pub(super) fn create(path: &Path, contents: &[u8]) -> Result<bool, PkiError> {
    with_temporary(path, contents, |temporary| match fs::hard_link(temporary, path) {
        Ok(()) => {
            fs::remove_file(temporary)?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(temporary)?;
            Ok(false)
        }
        // Some file systems have no links. Then the last of several writers wins.
        Err(_) => fs::rename(temporary, path).map(|()| true),
    })
}

/// Puts a file in the place of another. Readers see the one or the other.
pub(super) fn replace(path: &Path, contents: &[u8]) -> Result<(), PkiError> {
    with_temporary(path, contents, |temporary| fs::rename(temporary, path))
}

/// Writes a file under a name of its own, lets `place` give it the right one, and makes sure that
/// both survive a crash.
fn with_temporary<T>(
    path: &Path,
    contents: &[u8],
    place: impl FnOnce(&Path) -> io::Result<T>,
) -> Result<T, PkiError> {
    let write = || {
        let temporary = temporary_path(path)?;
        let placed = write_synced(&temporary, contents).and_then(|()| place(&temporary));
        if placed.is_err() {
            // The first error says more than one about cleaning up after it.
            let _ = fs::remove_file(&temporary);
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
        placed
    };
    write().map_err(|source| PkiError::Write { path: path.display().to_string(), source })
}

fn write_synced(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.write_all(contents)?;
    file.sync_all()
}

/// A hidden name beside the file that no other writer uses.
fn temporary_path(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("no random bytes"))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(path.with_file_name(format!(".{name}.{:016x}", u64::from_be_bytes(random))))
}
