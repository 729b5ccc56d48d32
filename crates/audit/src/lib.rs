//! What happened at the gate, one line per event.
//!
//! Owns: the audit policy and which of its rules a request meets, events and their JSON form, what
//! is left out of them because it is secret, the log file and its rotation.
//! Must not know: HTTP libraries, when in the life of a request a stage is reached, stores.

#![deny(clippy::indexing_slicing)]

mod auditor;
mod event;
mod id;
mod log;
mod policy;
mod redact;
mod source_ips;
mod stage;

pub use auditor::Auditor;
pub use event::{EVENT_BYTES_MAX, Event, Received};
pub use id::{NoRandomness, audit_id};
pub use log::{Log, LogError, Rotation};
pub use policy::{Policy, PolicyError, Verdict};
pub use redact::{REDACTED, redact_uri};
pub use source_ips::source_ips;
pub use stage::{Level, Stage, Stages};
