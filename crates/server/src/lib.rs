//! The API server: the life of a request, and what the server does by itself.
//!
//! [`Server`] is built from options, listens, and serves until it is told to stop. A request is
//! followed from its first byte to its last in `request.rs`; `rest` holds one file per verb.
//!
//! Owns: the order of the steps of a request, the picture that decisions are made from and how it
//! follows the store, the verbs, the loops, health, numbers and logs.
//! Must not know: command lines, how stores keep their data, how authorizers decide.

mod addresses;
mod admit;
mod audit_id;
mod authority_files;
mod authorize;
mod bootstrap;
mod clock;
mod configurations;
mod confirm;
mod deadline;
mod discovery;
mod failure;
mod follow;
mod gate;
mod health;
mod hooks;
mod host;
mod initialize;
mod inside;
mod log;
mod loops;
mod metrics;
mod object_ref;
mod panic_guard;
mod record;
mod record_guard;
mod request;
mod respond;
mod rest;
mod review;
mod route;
mod serve;
mod servers;
mod service_directory;
mod standing;
mod store_status;
mod trace;
mod undecodable;
mod view;
mod watch_body;
mod write_progress;

pub use addresses::{ServiceRange, ServiceRangeError};
pub use authority_files::AuthorityFiles;
pub use bootstrap::BootstrapError;
pub use clock::Clock;
pub use confirm::{SyncMode, SyncOptions};
pub use gate::{Admitted, Authorized};
pub use hooks::Hooks;
pub use host::HostOptions;
pub use initialize::GetMode;
pub use inside::SERVER_USER;
pub use log::{Fact, Level, Log, LogFormat};
pub use serve::{AdmissionOptions, Reseater, Server, ServerOptions, StartError};
pub use service_directory::{ServiceDirectory, ServiceRouting};
pub use view::{Namespace, NamespacePhase, View};
