//! The files that a configuration depends on, with a digest of each.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};

/// The content of a file when it was read. It compares digests instead of modification times, because a copied file
/// can have any time, and a mounted volume changes the file behind a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    /// The SHA-256 digest of the content.
    Digest([u8; 32]),
    /// The file could not be read.
    Unreadable(io::ErrorKind),
}

/// Files by path, each with its state when it was first read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FileSet {
    files_by_path: BTreeMap<PathBuf, RecordedFile>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RecordedFile {
    file_state: FileState,
    /// The maximum number of bytes that were read. The next read uses the same limit and so sees the same part.
    read_bytes_max: usize,
}

impl FileSet {
    /// Adds a file unless the set contains it. If a file changes while a configuration is built, its first state stays
    /// in the set, so the next check finds the change.
    fn add_file(&mut self, path: &Path, file: RecordedFile) {
        self.files_by_path.entry(path.to_owned()).or_insert(file);
    }

    pub(crate) fn add_all_files(&mut self, other: &Self) {
        for (path, file) in &other.files_by_path {
            self.add_file(path, *file);
        }
    }

    pub(crate) fn file_paths(&self) -> impl Iterator<Item = &Path> {
        self.files_by_path.keys().map(PathBuf::as_path)
    }

    /// Reads all files and reports whether each has the same state as before.
    pub(crate) fn are_files_unchanged(&self) -> bool {
        self.files_by_path.iter().all(|(path, file)| {
            FileState::new(read_file_up_to(path, file.read_bytes_max).as_deref()) == file.file_state
        })
    }
}

impl FileState {
    fn new(read: Result<&[u8], &io::Error>) -> Self {
        match read {
            Ok(bytes) => {
                let mut sum = [0; 32];
                sum.copy_from_slice(digest(&SHA256, bytes).as_ref());
                Self::Digest(sum)
            }
            Err(error) => Self::Unreadable(error.kind()),
        }
    }
}

/// Reads files and records their state.
#[derive(Debug, Default)]
pub(crate) struct FileRecorder {
    file_set: RefCell<FileSet>,
}

impl FileRecorder {
    /// Reads at most one byte more than `bytes_max`, so that the caller can detect a file that is too long.
    pub(crate) fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        let read = read_file_up_to(path, bytes_max);
        let state = FileState::new(read.as_deref());
        self.file_set
            .borrow_mut()
            .add_file(path, RecordedFile { file_state: state, read_bytes_max: bytes_max });
        read
    }

    /// Records a file that another crate reads.
    pub(crate) fn record_file(&self, path: &Path, bytes_max: usize) {
        if !self.file_set.borrow().files_by_path.contains_key(path) {
            // The recorded state contains the error, and the crate that reads the file reports it.
            let _ = self.read(path, bytes_max);
        }
    }

    /// Records files that were read before.
    pub(crate) fn record_files(&self, files: &FileSet) {
        self.file_set.borrow_mut().add_all_files(files);
    }

    pub(crate) fn into_file_set(self) -> FileSet {
        self.file_set.into_inner()
    }
}

/// Reads at most one byte more than `bytes_max` of a regular file.
pub(crate) fn read_file_up_to(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    // Opening a pipe blocks until another process writes to it, perhaps forever.
    let kind = std::fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_during_the_build_is_found_by_the_next_check() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let recorder = FileRecorder::default();
        assert_eq!(recorder.read(&path, 10).unwrap(), b"one");
        std::fs::write(&path, "two").unwrap();
        assert_eq!(recorder.read(&path, 10).unwrap(), b"two");
        let files = recorder.into_file_set();
        assert!(!files.are_files_unchanged(), "the first content counts");
        std::fs::write(&path, "one").unwrap();
        assert!(files.are_files_unchanged());
        std::fs::remove_file(&path).unwrap();
        assert!(!files.are_files_unchanged());
    }

    #[test]
    fn a_missing_file_is_recorded_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let recorder = FileRecorder::default();
        recorder.record_file(&path, 10);
        let files = recorder.into_file_set();
        assert_eq!(files.file_paths().collect::<Vec<_>>(), [path.as_path()]);
        assert!(files.are_files_unchanged());
        std::fs::write(&path, "").unwrap();
        assert!(!files.are_files_unchanged());
    }

    #[test]
    fn reading_stops_one_byte_above_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_file_up_to(&path, 5).unwrap(), b"12345");
        assert_eq!(read_file_up_to(&path, 3).unwrap(), b"1234");
        assert_eq!(
            read_file_up_to(folder.path(), 3).unwrap_err().kind(),
            io::ErrorKind::IsADirectory
        );
        let device = read_file_up_to(Path::new("/dev/zero"), 3).unwrap_err();
        assert_eq!(device.kind(), io::ErrorKind::InvalidInput);
    }
}
