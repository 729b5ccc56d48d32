//! Files that may change while the server uses them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ring::digest::{Context, Digest, SHA256};

/// Upper bound on the size of a file. Certificates, keys and token lists are far smaller.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A group of files and the digest of their last contents.
///
/// Contents are compared and not modification times: a copied file can have any time, and mounted
/// volumes change the target of a link.
#[derive(Debug)]
pub struct WatchedFiles {
    watched_paths: Vec<PathBuf>,
    last_digest: Option<Digest>,
}

/// A file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `{}`", path.display())]
pub struct FileReadError {
    /// The path of the file.
    pub path: PathBuf,
    /// The error of the system.
    pub source: io::Error,
}

impl WatchedFiles {
    /// Files that were not read yet.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self { watched_paths: paths, last_digest: None }
    }

    /// The paths, in the order in which their contents are returned.
    pub fn watched_paths(&self) -> &[PathBuf] {
        &self.watched_paths
    }

    /// The contents of all files if any changed since the last call, else `None`. A change is
    /// returned once, whether or not the caller can use it.
    ///
    /// # Errors
    /// [`FileReadError`] for the first file that cannot be read; then the digest stays unchanged.
    pub fn read_if_changed(&mut self) -> Result<Option<Vec<Vec<u8>>>, FileReadError> {
        let contents = self
            .watched_paths
            .iter()
            .map(|path| read(path))
            .collect::<Result<Vec<_>, FileReadError>>()?;
        let digest = digest_of_contents(&contents);
        let is_seen = self.last_digest.is_some_and(|seen| seen.as_ref() == digest.as_ref());
        self.last_digest = Some(digest);
        Ok((!is_seen).then_some(contents))
    }
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, FileReadError> {
    let read = || {
        let mut contents = Vec::new();
        File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut contents)?;
        if contents.len() as u64 > FILE_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(contents)
    };
    read().map_err(|source| FileReadError { path: path.to_owned(), source })
}

fn digest_of_contents(contents: &[Vec<u8>]) -> Digest {
    let mut context = Context::new(&SHA256);
    for content in contents {
        context.update(&(content.len() as u64).to_be_bytes());
        context.update(content);
    }
    context.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_returned_once() {
        let directory = tempfile::tempdir().unwrap();
        let (a, b) = (directory.path().join("a"), directory.path().join("b"));
        std::fs::write(&a, "1").unwrap();
        std::fs::write(&b, "2").unwrap();
        let mut files = WatchedFiles::new(vec![a.clone(), b.clone()]);
        assert_eq!(files.read_if_changed().unwrap(), Some(vec![b"1".to_vec(), b"2".to_vec()]));
        assert_eq!(files.read_if_changed().unwrap(), None);
        std::fs::write(&b, "3").unwrap();
        assert_eq!(files.read_if_changed().unwrap(), Some(vec![b"1".to_vec(), b"3".to_vec()]));
        std::fs::remove_file(&a).unwrap();
        assert_eq!(files.read_if_changed().unwrap_err().path, a);
        std::fs::write(&a, "1").unwrap();
        assert_eq!(files.read_if_changed().unwrap(), None);
    }

    #[test]
    fn bytes_that_move_between_files_are_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let (a, b) = (directory.path().join("a"), directory.path().join("b"));
        std::fs::write(&a, "12").unwrap();
        std::fs::write(&b, "3").unwrap();
        let mut files = WatchedFiles::new(vec![a.clone(), b.clone()]);
        assert!(files.read_if_changed().unwrap().is_some());
        std::fs::write(&a, "1").unwrap();
        std::fs::write(&b, "23").unwrap();
        assert!(files.read_if_changed().unwrap().is_some());
    }
}
