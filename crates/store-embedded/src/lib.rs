//! The embedded store: an append-only log in one directory, with all current versions in memory.
//!
//! Reads and watches use an immutable state and never block. One writer thread checks the expectations of
//! writes in order, appends a batch as one frame, syncs it, and only then publishes the new state and
//! acknowledges. Opening a directory reads the newest snapshot and the logs after it.
//!
//! Owns: the format of the files, recovery, group commit, the history of versions, expiry, compaction.
//! Must not know: what a value means, other engines, HTTP.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod checkpoint;
mod command_queue;
mod engine;
mod frame;
mod free_space;
mod history;
mod history_page;
mod history_pager;
mod history_retention;
mod locked_directory;
mod log_file;
mod maintenance;
mod maintenance_task;
mod open_error;
mod options;
mod read_only_cause;
mod record;
mod recovery;
mod snapshot;
mod space_budget;
mod store_files;
mod store_state;
mod tenant;
mod usage_accounting;
mod version;
mod version_tree;
mod watch;
mod writer;

pub use engine::EmbeddedStore;
pub use free_space::FreeSpaceSource;
pub use locked_directory::{DIRECTORY_MODE, LockedDirectory};
pub use open_error::OpenError;
pub use options::{Clock, Limits, Options, REVISION_GAP, SyncMode, SyncModeError};
pub use tenant::TenantResolver;
