//! The audit log: one JSON line per event.
//!
//! Owns: the audit policy and its matching, events and their JSON form, the annotations about authorization, the
//! redaction of secrets, the log file and its rotation.
//! Must not know: HTTP libraries, when in the life of a request a stage is reached, stores.

#![deny(clippy::indexing_slicing)]

mod audit_id;
mod auditor;
mod event;
mod log;
mod policy;
mod redact;
mod source_ips;
mod stage;

pub use audit_id::{NoRandomness, audit_id};
pub use auditor::Auditor;
pub use event::{EVENT_BYTES_MAX, Event, ReceivedRequest};
pub use log::{Log, LogError, Rotation};
pub use policy::{Policy, PolicyError, RequestAuditConfig};
pub use redact::{REDACTED, redact_uri};
pub use source_ips::source_ips;
pub use stage::{Level, Stage, StageSet};
