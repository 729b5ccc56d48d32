//! Errors of opening a data directory.

use std::io;
use std::path::PathBuf;

/// Why a store does not open. Recovery changes nothing before it has found the directory sound.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("data directory `{}` is in use by another process", directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// Users other than its owner may write to it.
    #[error(
        "data directory `{0}` has mode {mode:04o}: users other than its owner can replace its files; \
         run `chmod go-w {0}`", directory.display()
    )]
    Writable {
        /// The directory.
        directory: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It belongs to another user, who can replace its files.
    #[error(
        "data directory `{0}` belongs to user {owner}, and this program runs as user {own}; run \
         `chown {own} {0}`", directory.display()
    )]
    Foreign {
        /// The directory.
        directory: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this process.
        own: u32,
    },
    /// A file was complete once and is damaged now. The operator must decide: restore a backup, or give up
    /// the writes that follow.
    #[error("`{}` is damaged at offset {offset}: {reason}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Byte offset of the damage.
        offset: u64,
        /// Description of the damage.
        reason: String,
    },
    /// A later program wrote a file. Nothing in the directory was changed.
    #[error(
        "`{}` has format version {version}, and this program reads versions up to {version_max}: \
         start the program that wrote it or a later one; nothing was changed", file.display()
    )]
    Newer {
        /// The file.
        file: PathBuf,
        /// Its version.
        version: u8,
        /// The newest version that this program reads.
        version_max: u8,
    },
    /// A file that must be there is not.
    #[error("`{}` is missing", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// An operation of the file system failed.
    #[error("can not {action} `{}`", path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}
