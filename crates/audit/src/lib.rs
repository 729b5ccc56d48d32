//! Audit events: which requests are recorded, what their events contain, and the backends that get them.
//!
//! Owns: the audit policy and its matching, events and their JSON form, the annotations about authorization, the
//! redaction of secrets, the bounded queues of the backends, the log file and its rotation.
//! Must not know: HTTP libraries, when in the life of a request a stage is reached, stores.

#![deny(clippy::indexing_slicing)]

mod audit_id;
mod audit_log;
mod auditor;
mod backend;
mod event;
mod event_list;
mod event_write_receipt;
mod policy;
mod redact;
mod source_ips;
mod stage;

pub use audit_id::{RandomnessError, audit_id_of_request};
pub use audit_log::{AuditLog, LogError, LogRotationOptions};
pub use auditor::{Auditor, FlushFuture, LOG_BACKEND};
pub use backend::{
    Backend, BackendMode, BackendOptions, BackendStatus, BatchThrottle, EventSink, LossCause,
    SinkError, SinkFuture, StartBackendError,
};
pub use event::{EVENT_BYTES_MAX, Event, ReceivedRequest};
pub use event_list::encode_event_list;
pub use event_write_receipt::{EventNotWritten, EventWriteFuture, EventWriteReceipt};
pub use policy::{Policy, PolicyError, RequestAuditConfig};
pub use redact::{REDACTED, redact_uri};
pub use source_ips::source_ips;
pub use stage::{Level, Stage, StageSet};
