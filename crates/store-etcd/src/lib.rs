//! The store on an etcd v3 cluster, which several API servers can share.
//!
//! Keys, revisions and transactions map directly to etcd. Watches do not: each process has one etcd watch of
//! the whole cluster, keeps the newest events in memory, and serves all watches of the store from them.
//! `docs/decisions/0010-etcd-engine.md` gives the reasons.
//!
//! Owns: requests to etcd and the classification of their failures, fail-over, leases, compaction by age, watches.
//! Must not know: what a value means, which resources exist, HTTP of the API, the other engines.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod call_error;
mod client;
mod compactor;
mod engine;
mod etcd_conversion;
mod etcd_messages;
mod event_stream;
mod event_window;
mod format_version;
mod grpc;
mod lease_pool;
mod member;
mod options;
mod protobuf;
mod read;
mod shared_watch;
mod tls;
mod watch;
mod write;

pub use engine::EtcdStore;
pub use format_version::FormatVersionError;
pub use options::{ClientCertificateFiles, OpenError, Options};
pub use read::PrefixInUse;
pub use tls::TlsFilesError;
