//! Why a directory can not be opened.

use std::io;
use std::path::PathBuf;

/// Why a store does not start. Nothing was changed that recovery would not have changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("data directory `{}` is in use by another process", directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// Others than its owner may write to it.
    #[error(
        "data directory `{0}` has mode {mode:04o}: others than its owner can exchange its files; \
         run `chmod go-w {0}`", directory.display()
    )]
    Writable {
        /// The directory.
        directory: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It belongs to another user, who can exchange its files.
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
    /// A file was complete once and is not any more. Only the operator can say what is right: restore
    /// a backup, or give up what follows.
    #[error("`{}` is damaged at offset {offset}: {reason}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
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
    /// The operating system refused.
    #[error("can not {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}
