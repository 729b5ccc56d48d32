//! The log file or standard output.

mod rotating_file;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;

use self::rotating_file::RotatingFile;
use crate::backend::{EventSink, SinkError, SinkFuture};

/// A log of whole lines. A lock keeps lines apart. Nothing is buffered, so that a written line survives the process.
#[derive(Debug)]
pub struct AuditLog {
    log_target: Mutex<LogTarget>,
}

#[derive(Debug)]
enum LogTarget {
    Stdout,
    File(RotatingFile),
}

/// When a file is replaced by a new one, and which old files are removed then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRotationOptions {
    /// The largest size of a file in bytes. A longer line gets a file of its own.
    pub file_bytes_max: Option<u64>,
    /// The age at which old files are removed.
    pub backup_age_max: Option<Duration>,
    /// The number of old files that are kept.
    pub backups_max: Option<usize>,
}

/// The reason why a line was not written to the log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be opened.
    #[error("cannot open audit log `{}`", path.display())]
    Open {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The line cannot be written as a whole.
    #[error("cannot write to the audit log")]
    Write(#[source] io::Error),
}

impl Default for LogRotationOptions {
    /// Files of 100 MiB, all of which are kept.
    fn default() -> Self {
        Self { file_bytes_max: Some(100 << 20), backup_age_max: None, backups_max: None }
    }
}

impl AuditLog {
    /// A log on standard output.
    pub fn log_to_stdout() -> Self {
        Self::new(LogTarget::Stdout)
    }

    /// A log that appends to a file. Missing directories are created.
    ///
    /// # Errors
    /// [`LogError::Open`] if the file cannot be opened.
    pub fn open_log_file(path: &Path, rotation: LogRotationOptions) -> Result<Self, LogError> {
        RotatingFile::open(path, rotation)
            .map(|file| Self::new(LogTarget::File(file)))
            .map_err(|source| LogError::Open { path: path.to_owned(), source })
    }

    fn new(target: LogTarget) -> Self {
        Self { log_target: Mutex::new(target) }
    }

    /// Writes a line, which ends with a line feed.
    ///
    /// # Errors
    /// [`LogError::Write`] if the whole line could not be written. The part that was written is ended by a line feed before
    /// the next line.
    pub fn write(&self, line: &[u8], now: Timestamp) -> Result<(), LogError> {
        let mut target = self.log_target.lock().unwrap_or_else(PoisonError::into_inner);
        let result = match &mut *target {
            LogTarget::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(line).and_then(|()| stdout.flush())
            }
            LogTarget::File(file) => file.write(line, now),
        };
        result.map_err(LogError::Write)
    }
}

impl EventSink for AuditLog {
    /// Writes on the thread of the caller, which is that of the backend.
    fn write_events<'a>(&'a self, lines: &'a [Bytes]) -> SinkFuture<'a> {
        Box::pin(async move {
            for (n_written, line) in lines.iter().enumerate() {
                if let Err(error) = self.write(line, Timestamp::now()) {
                    return Err(SinkError {
                        n_written_events: n_written,
                        n_lost_events: 1,
                        message: error.message_with_cause(),
                    });
                }
            }
            Ok(())
        })
    }
}

impl LogError {
    /// Returns the message of the error with that of its cause.
    fn message_with_cause(&self) -> String {
        match self {
            Self::Open { source, .. } | Self::Write(source) => format!("{self}: {source}"),
        }
    }
}

#[cfg(test)]
mod tests;
