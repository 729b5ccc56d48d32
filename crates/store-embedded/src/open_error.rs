//! The error of opening a data directory.

use std::io;
use std::path::PathBuf;

/// The reason why a store does not open. Recovery changes no file before it has checked the whole directory.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has locked the directory.
    #[error("data directory `{}` is in use by another process", directory.display())]
    Locked {
        /// The path of the data directory.
        directory: PathBuf,
    },
    /// Users other than its owner may write to the directory.
    #[error(
        "data directory `{0}` has mode {mode:04o}: users other than its owner can replace its files; \
         run `chmod go-w {0}`", directory.display()
    )]
    Writable {
        /// The path of the data directory.
        directory: PathBuf,
        /// The mode of the directory.
        mode: u32,
    },
    /// The directory belongs to another user, who can replace its files.
    #[error(
        "data directory `{0}` belongs to user {owner}, and this program runs as user {own}; run \
         `chown {own} {0}`", directory.display()
    )]
    Foreign {
        /// The path of the data directory.
        directory: PathBuf,
        /// The user id of its owner.
        owner: u32,
        /// The user id of this process.
        own: u32,
    },
    /// A file was complete and is damaged now. The operator must restore a backup or give up the later writes.
    #[error("`{}` is damaged at offset {offset}: {reason}", file.display())]
    Damaged {
        /// The path of the file.
        file: PathBuf,
        /// Byte offset of the damage.
        offset: u64,
        /// Description of the damage.
        reason: String,
    },
    /// A newer version of this program wrote a file. Nothing in the directory was changed.
    #[error(
        "`{}` has format version {version}, and this program reads versions up to {version_max}: \
         start the program that wrote it or a later one; nothing was changed", file.display()
    )]
    Newer {
        /// The path of the file.
        file: PathBuf,
        /// The format version of the file.
        version: u8,
        /// The newest version that this program reads.
        version_max: u8,
    },
    /// A required file does not exist.
    #[error("`{}` is missing", file.display())]
    Missing {
        /// The path of the file.
        file: PathBuf,
    },
    /// An operation of the file system failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The path of the file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}
