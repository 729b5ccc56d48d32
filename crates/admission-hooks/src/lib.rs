//! Calls the webhooks of dynamic admission about a write.
//!
//! An [`admission::Snapshot`] has the configured hooks, and [`HookConnections`] has a client for each of them.
//! For one write:
//! 1. [`admission::Snapshot::match_hooks`] matches the rules of all hooks, once.
//! 2. [`HookSession::mutate`] calls the mutating hooks one after the other, in at most two rounds.
//! 3. [`HookSession::validate`] calls the validating hooks, all at once.
//! 4. [`HookSession::into_report`] returns warnings, audit annotations and one event for each hook.
//!
//! Owns: the wire format of reviews, the order of calls, patches, failure policies, deadlines, warnings
//! and audit annotations.
//! Must not know: how configurations are stored and watched, HTTP routing, the status codes of responses to
//! clients, files, metrics formats, the schemas of kinds.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod hook_session;

mod mutating_hooks;
mod reinvocation;
mod select_hook;
mod validating_hooks;

mod object_converter;

mod bounded_document;
mod call_failure;
mod call_timeout;
mod catch_panic;
mod deserialize_objects;
mod failure_policy;
mod hook_call;
mod hook_response;
mod immutable_metadata;
mod json_patch;
mod review_request;

mod client_pool;
mod hook_clients;
mod hook_connection;
mod hook_connections;
mod hook_target;
mod long_condition_evaluations;
mod service_credentials;

mod audit_annotations;
mod client_warnings;
mod hook_denial;
mod hook_observer;
mod hook_refusal;
mod response_limits;
mod session_report;

pub use audit_annotations::{AnnotationLevel, AuditAnnotation};
pub use call_failure::HookFailureCause;
pub use call_timeout::CALL_TIME_MAX;
pub use catch_panic::{PanicMessage, catch_panic};
pub use hook_connection::{
    CALLS_IN_FLIGHT_MAX, ClusterServices, HookEnvironment, RESPONSE_BYTES_MAX,
};
pub use hook_connections::HookConnections;
pub use hook_denial::HookDenial;
pub use hook_observer::{
    CallReport, ConditionOutcome, ConditionReport, HookObserver, NoObserver, Phase, RejectionCause,
};
pub use hook_refusal::{HookRefusal, call_failure_message};
pub use hook_session::{HookRequest, HookSession};
pub use hook_target::{HookTargetError, hook_target};
pub use object_converter::{ObjectConversionError, ObjectConverter, UntypedConverter};
pub use response_limits::new_response_bytes_limit;
pub use service_credentials::{ServiceCredentials, ServiceCredentialsTable};
pub use session_report::{CallVerdict, HookEvent, HookOutcome, SessionReport, SkipReason};
