//! Reads the bytes of a file, with the errors that Kubernetes prints.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::source::DOCUMENT_BYTES_MAX;

/// A file that cannot be read. Displays as Kubernetes' message.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("open {}: {message}", path.display())]
pub struct ReadError {
    /// The path of the file.
    pub path: PathBuf,
    /// The message of the operating system.
    pub message: String,
}

impl ReadError {
    /// Wraps an error of the operating system about a file.
    pub fn new(path: &Path, error: &io::Error) -> Self {
        Self { path: path.to_owned(), message: go_io_error_text(error) }
    }
}

/// Reads a file up to one byte more than [`DOCUMENT_BYTES_MAX`], so that a loader sees that a
/// longer file is too large.
///
/// # Errors
///
/// The file cannot be opened or read.
pub fn read_file(path: &Path) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(DOCUMENT_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    std::fs::File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(|error| ReadError::new(path, &error))?;
    Ok(bytes)
}

/// The message of an I/O error as Go prints it: in lower case and without Rust's error number.
pub fn go_io_error_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
