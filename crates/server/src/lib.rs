//! The API server: the life of a request, and what the server does by itself.
//!
//! [`Server`] is built from options, listens, and serves until it is told to stop. A request is
//! followed from its first byte to its last in `request.rs`; `rest` holds one file per verb.
//!
//! Owns: the order of the steps of a request, the picture that decisions are made from and how it
//! follows the store, the verbs, the loops, health, numbers and logs.
//! Must not know: command lines, how stores keep their data, how authorizers decide.

mod admission;
mod audit_id;
mod audit_record_guard;
mod authority_files;
mod authorize;
mod bootstrap;
mod clock;
mod cluster_ips;
mod cluster_snapshot;
mod deadline;
mod discovery;
mod health;
mod initialize;
mod log;
mod loopback;
mod loops;
mod metrics;
mod object_ref;
mod panic_guard;
mod record;
mod request;
mod request_error;
mod respond;
mod rest;
mod review;
mod route;
mod serve;
mod server_state;
mod service_directory;
mod snapshot_cache;
mod store_status;
mod trace;
mod undecodable;
mod watch_body;
mod write_progress;

pub use admission::{Admitted, Hooks, SyncMode, SyncOptions};
pub use authority_files::AuthorityFiles;
pub use authorize::Authorized;
pub use bootstrap::BootstrapError;
pub use clock::Clock;
pub use cluster_ips::{ServiceRange, ServiceRangeError};
pub use cluster_snapshot::{ClusterSnapshot, Namespace, NamespacePhase};
pub use initialize::GetMode;
pub use log::{Fact, Level, Log, LogFormat};
pub use loopback::SERVER_USER;
pub use serve::{AdmissionOptions, Reseater, Server, ServerOptions, StartError};
pub use server_state::RequestOptions;
pub use service_directory::{ServiceDirectory, ServiceRouting};
