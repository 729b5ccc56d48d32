//! Reads the files that a kubeconfig or hook file refers to.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use document::ReadError;

/// The maximum size of a file of certificates, keys or tokens, in bytes. It is many times the size of
/// a bundle of all public CAs.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// A function that reads a file. This crate reads every file of a connection through one such function,
/// so that the caller knows exactly which bytes were used and which files were missing.
pub type ReadFileFn<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// Reads a file from the file system, at most one byte more than [`FILE_BYTES_MAX`].
///
/// # Errors
///
/// The error of the operating system.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file cannot be read. Displays as Go's message, with the path.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum FileError {
    /// The operating system cannot open or read the file.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The file is larger than [`FILE_BYTES_MAX`].
    #[error("read {}: file is larger than {FILE_BYTES_MAX} bytes", path.display())]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
    },
}

/// Reads the files that one file refers to, each once, and records their paths.
pub(crate) struct ReferencedFiles<'a> {
    base_folder: PathBuf,
    read: ReadFileFn<'a>,
    used_paths: Vec<PathBuf>,
    /// The result of reading each path. A second read must return the same content as the first.
    contents_by_path: HashMap<PathBuf, Result<Vec<u8>, FileError>>,
}

impl<'a> ReferencedFiles<'a> {
    /// Starts with the file at `path`, which becomes the first used path.
    pub(crate) fn new(path: &Path, read: ReadFileFn<'a>) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().unwrap_or(&path).to_owned();
        Self { base_folder: folder, read, used_paths: vec![path], contents_by_path: HashMap::new() }
    }

    /// Returns the absolute form of a path that the file contains.
    pub(crate) fn resolve_path(&self, path: impl AsRef<Path>) -> PathBuf {
        // Collecting the components removes `.` from the path in messages.
        self.base_folder.join(path).components().collect()
    }

    /// Reads a resolved path.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or it is too large. The error displays as Go's message.
    pub(crate) fn read(&mut self, path: &Path) -> Result<Vec<u8>, FileError> {
        self.record_used_path(path);
        if let Some(content) = self.contents_by_path.get(path) {
            return content.clone();
        }
        let content = match (self.read)(path) {
            Ok(bytes) if bytes.len() > FILE_BYTES_MAX => {
                Err(FileError::TooLarge { path: path.to_owned() })
            }
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(ReadError::new(path, &error).into()),
        };
        self.contents_by_path.insert(path.to_owned(), content.clone());
        content
    }

    /// Records a path that another component will read.
    pub(crate) fn record_used_path(&mut self, path: &Path) {
        if !self.used_paths.iter().any(|used| used == path) {
            self.used_paths.push(path.to_owned());
        }
    }

    pub(crate) fn into_used_paths(self) -> Vec<PathBuf> {
        self.used_paths
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn relative_paths_start_at_the_folder_of_the_file() {
        let files = ReferencedFiles::new(Path::new("/etc/guard/config.yaml"), &read_file);
        assert_eq!(files.resolve_path("ca.pem"), Path::new("/etc/guard/ca.pem"));
        assert_eq!(files.resolve_path("./pki/./ca.pem"), Path::new("/etc/guard/pki/ca.pem"));
        assert_eq!(files.resolve_path("/pki/ca.pem"), Path::new("/pki/ca.pem"));
        assert_eq!(files.into_used_paths(), [Path::new("/etc/guard/config.yaml")]);
        let relative = ReferencedFiles::new(Path::new("config.yaml"), &read_file);
        assert!(relative.resolve_path("ca.pem").is_absolute());
    }

    #[test]
    fn files_have_a_size_limit_and_are_read_once() {
        let n_reads = Cell::new(0);
        let fits = |_: &Path| {
            n_reads.set(n_reads.get() + 1);
            Ok(vec![b'x'; FILE_BYTES_MAX])
        };
        let mut files = ReferencedFiles::new(Path::new("/a"), &fits);
        assert!(files.read(Path::new("/b")).is_ok());
        assert!(files.read(Path::new("/b")).is_ok());
        assert_eq!(n_reads.get(), 1);
        assert_eq!(files.into_used_paths().len(), 2);
        let too_large = |_: &Path| Ok(vec![b'x'; FILE_BYTES_MAX + 1]);
        let error =
            ReferencedFiles::new(Path::new("/a"), &too_large).read(Path::new("/b")).unwrap_err();
        assert_eq!(error.to_string(), "read /b: file is larger than 4194304 bytes");
    }

    #[test]
    fn the_error_names_a_missing_file() {
        let mut files = ReferencedFiles::new(Path::new("/a"), &read_file);
        let error = files.read(Path::new("/does/not/exist")).unwrap_err();
        assert_eq!(error.to_string(), "open /does/not/exist: no such file or directory");
    }
}
