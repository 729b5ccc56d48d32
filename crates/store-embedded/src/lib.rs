//! A store in one directory of one machine: an append-only log, and everything in memory.
//!
//! Reads and watches take an immutable state and never wait for anything. Writes go to one
//! thread, which checks their expectations in order, appends a whole batch as one frame, syncs it, and
//! only then shows the new state and acknowledges. Opening a directory reads the last snapshot and the
//! log after it.
//!
//! Owns: the format of the files, recovery, group commit, the history of versions, expiry, compaction.
//! Must not know: what a value means, other engines, HTTP.

mod budget;
mod checkpoint;
mod chores;
mod directory;
mod disk;
mod engine;
mod error;
mod files;
mod frame;
mod history;
mod housekeeping;
mod ledger;
mod log;
mod options;
mod page;
mod pager;
mod queue;
mod record;
mod recovery;
mod retention;
mod share;
mod snapshot;
mod state;
mod tree;
mod version;
mod wakers;
mod watch;
mod writer;

pub use directory::{DIRECTORY_MODE, LockedDirectory};
pub use disk::Disk;
pub use engine::Embedded;
pub use error::OpenError;
pub use options::{Clock, Limits, Options, REVISION_GAP, SyncMode, SyncModeError};
pub use share::ShareOf;
pub use watch::{EmbeddedWatch, WATCHES_MAX};
