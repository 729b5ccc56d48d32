//! Files that a configuration depends on, and what they held.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};

/// What a file held when it was looked at. Contents are compared and not times: a copied file can
/// have any time, and mounted volumes change the files behind a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Bytes with this SHA-256 digest.
    Digest([u8; 32]),
    /// Nothing that could be read.
    Unreadable(io::ErrorKind),
}

/// Files by path, each with what it held when it was first read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Files {
    seen: BTreeMap<PathBuf, Seen>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    content: Content,
    /// How much of it was read, so that the next look sees as much.
    bytes_max: usize,
}

impl Files {
    /// Notes what was read. What is already noted stays: if a file changes while a configuration is
    /// assembled, the first content differs from what is there later, and the change is noticed.
    fn note(&mut self, path: &Path, seen: Seen) {
        self.seen.entry(path.to_owned()).or_insert(seen);
    }

    pub(crate) fn note_all(&mut self, other: &Self) {
        for (path, seen) in &other.seen {
            self.note(path, *seen);
        }
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.seen.keys().map(PathBuf::as_path)
    }

    /// Whether every file still holds what it held. Reads them all.
    pub(crate) fn are_unchanged(&self) -> bool {
        self.seen.iter().all(|(path, seen)| {
            Content::of(read_up_to(path, seen.bytes_max).as_deref()) == seen.content
        })
    }
}

impl Content {
    fn of(read: Result<&[u8], &io::Error>) -> Self {
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

/// Reads files and remembers what they held.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    files: RefCell<Files>,
}

impl Recording {
    /// Reads a file, but not much more than `bytes_max`, so that whoever looks at the content can
    /// still see that it is too long.
    pub(crate) fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        let read = read_up_to(path, bytes_max);
        let content = Content::of(read.as_deref());
        self.files.borrow_mut().note(path, Seen { content, bytes_max });
        read
    }

    /// Notes a file that somebody else reads.
    pub(crate) fn note(&self, path: &Path, bytes_max: usize) {
        if !self.files.borrow().seen.contains_key(path) {
            // Whether it can be read is noted, and matters to whoever reads it.
            let _ = self.read(path, bytes_max);
        }
    }

    /// Notes everything that was read for something else.
    pub(crate) fn note_all(&self, files: &Files) {
        self.files.borrow_mut().note_all(files);
    }

    pub(crate) fn into_files(self) -> Files {
        self.files.into_inner()
    }
}

/// Reads a file, but not more than one byte past `bytes_max`.
pub(crate) fn read_up_to(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    // Opening a pipe waits for somebody who writes to it, perhaps forever.
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
    fn a_change_while_reading_is_noticed_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let recording = Recording::default();
        assert_eq!(recording.read(&path, 10).unwrap(), b"one");
        std::fs::write(&path, "two").unwrap();
        assert_eq!(recording.read(&path, 10).unwrap(), b"two");
        let files = recording.into_files();
        assert!(!files.are_unchanged(), "what counts is the first content");
        std::fs::write(&path, "one").unwrap();
        assert!(files.are_unchanged());
        std::fs::remove_file(&path).unwrap();
        assert!(!files.are_unchanged());
    }

    #[test]
    fn a_file_that_is_not_there_is_followed_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let recording = Recording::default();
        recording.note(&path, 10);
        let files = recording.into_files();
        assert_eq!(files.paths().collect::<Vec<_>>(), [path.as_path()]);
        assert!(files.are_unchanged());
        std::fs::write(&path, "").unwrap();
        assert!(!files.are_unchanged());
    }

    #[test]
    fn one_byte_more_than_permitted_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_up_to(&path, 5).unwrap(), b"12345");
        assert_eq!(read_up_to(&path, 3).unwrap(), b"1234");
        assert_eq!(read_up_to(folder.path(), 3).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        let device = read_up_to(Path::new("/dev/zero"), 3).unwrap_err();
        assert_eq!(device.kind(), io::ErrorKind::InvalidInput);
    }
}
