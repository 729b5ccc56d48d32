//! The store on an etcd cluster, version 3, for several servers of one API.
//!
//! Keys, revisions and transactions are etcd's own. What this crate adds is watches: one watch of the
//! whole cluster per process, kept in order and in memory for a while, from which all others are served.
//! `docs/decisions/0010-etcd-engine.md` says why.
//!
//! Owns: requests to etcd and what their failures mean, fail-over, leases, compaction by age, watches.
//! Must not know: what a value means, which resources exist, HTTP of the API, the other engines.

mod bells;
mod client;
mod compactor;
mod engine;
mod entries;
mod failure;
mod format;
mod history;
mod hub;
mod lease;
mod member;
mod messages;
mod options;
mod read;
mod tls;
mod watch;
mod window;
mod write;

pub use engine::Etcd;
pub use format::FormatError;
pub use options::{IdentityFiles, OpenError, Options};
pub use read::PrefixError;
pub use tls::TlsFilesError;
pub use watch::{EtcdWatch, WATCHES_MAX};
