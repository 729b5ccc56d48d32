//! The store on an etcd cluster, version 3, for several servers of one API.
//!
//! Keys, revisions and transactions are etcd's own. What this crate adds is watches: one watch of the
//! whole cluster per process, kept in order and in memory for a while, from which all others are served.
//! `docs/decisions/0010-etcd-engine.md` says why.
//!
//! Owns: requests to etcd and what their failures mean, fail-over, leases, compaction by age, watches.
//! Must not know: what a value means, which resources exist, HTTP of the API, the other engines.

mod call_error;
mod client;
mod compactor;
mod conversion;
mod engine;
mod etcd_messages;
mod event_stream;
mod event_window;
mod format;
mod lease_pool;
mod member;
mod options;
mod read;
mod shared_watch;
mod tls;
mod watch;
mod write;

pub use engine::EtcdStore;
pub use format::FormatError;
pub use options::{IdentityFiles, OpenError, Options};
pub use read::PrefixInUse;
pub use tls::TlsFilesError;
pub use watch::EtcdWatch;
