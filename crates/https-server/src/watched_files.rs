//! Files that may change while they are in use.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ring::digest::{Context, Digest, SHA256};

/// The longest file that is read. Certificates, keys and lists of tokens are far shorter.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Files that belong together, and what they held when they were last read.
///
/// Contents are compared and not times: a copied file can have any time, and mounted volumes
/// change the files behind a link.
#[derive(Debug)]
pub struct WatchedFiles {
    paths: Vec<PathBuf>,
    seen: Option<Digest>,
}

/// A file can not be read.
#[derive(Debug, thiserror::Error)]
#[error("can not read `{}`", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// What the system says.
    pub source: io::Error,
}

impl WatchedFiles {
    /// Files of which nothing was read yet.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, seen: None }
    }

    /// The files, in the order in which their contents are returned.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The contents of all files if any differs from the last time, else `None`. A change is
    /// returned once, whatever the caller makes of it.
    ///
    /// # Errors
    /// [`ReadError`] for the first file that can not be read; then nothing counts as seen.
    pub fn read_if_changed(&mut self) -> Result<Option<Vec<Vec<u8>>>, ReadError> {
        let contents =
            self.paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, ReadError>>()?;
        let digest = digest(&contents);
        let is_seen = self.seen.is_some_and(|seen| seen.as_ref() == digest.as_ref());
        self.seen = Some(digest);
        Ok((!is_seen).then_some(contents))
    }
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ReadError> {
    let read = || {
        let mut contents = Vec::new();
        File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut contents)?;
        if contents.len() as u64 > FILE_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(contents)
    };
    read().map_err(|source| ReadError { path: path.to_owned(), source })
}

fn digest(contents: &[Vec<u8>]) -> Digest {
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
