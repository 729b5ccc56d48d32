//! The API server: the processing of requests, and the background loops.
//!
//! [`Server`] is built from options, listens, and serves until it is stopped. `request.rs` contains the steps
//! of a request in order; `rest` has one file per verb.
//!
//! Owns: the order of the steps of a request, the snapshot that decisions are made from and its updates, the
//! verbs, the loops, health checks, metrics and logs.
//! Must not know: command lines, how stores keep their data, how authorizers decide.

#![deny(clippy::indexing_slicing)]

mod access_and_token_reviews;
mod admission;
mod audit_record_guard;
mod authorize;
mod background_loops;
mod bootstrap;
mod clock;
mod cluster_ips;
mod cluster_snapshot;
mod decodable_object_cache;
mod discovery;
mod encoded_event_cache;
mod error_status;
mod health;
mod hook_trace;
mod initializers;
mod list_body;
mod loopback;
mod memory_budget;
mod metrics;
mod object_ref;
mod out_of_space;
mod peer_trust;
mod pod_subresource_actions;
mod processor_turns;
mod request;
mod request_deadline;
mod request_error;
mod request_limits;
mod request_record;
mod request_seat;
mod respond;
mod response_bytes;
mod rest;
mod route;
mod serve;
mod server_state;
mod service_directory;
mod snapshot_cache;
mod store_check;
mod token_object_cache;
mod undecodable_objects;
mod watch_body;
mod write_begun_flag;
mod yield_timer;

pub use admission::{
    AdmissionConfigSyncMode, AdmissionConfigSyncOptions, AdmissionPlugin, AdmissionPlugins,
    AdmissionPluginsError, AdmittedObject, ConfiguredHooks,
};
pub use authorize::Authorized;
pub use bootstrap::BootstrapError;
pub use clock::Clock;
pub use cluster_ips::{ServiceIpRange, ServiceIpRangeError};
pub use cluster_snapshot::{ClusterSnapshot, Namespace, NamespacePhase};
pub use error_status::IntoStatus;
pub use initializers::UninitializedGetMode;
pub use loopback::SERVER_USER;
pub use request_limits::RequestLimits;
pub use serve::{
    AdmissionOptions, AuthorizerReplacer, BoxedFuture, Server, ServerOptions, StartError,
};
pub use server_state::ApiSettings;
pub use service_directory::{ServiceDirectory, ServiceRouting};
