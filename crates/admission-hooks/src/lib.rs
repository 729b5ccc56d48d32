//! HookRequest the hooks of dynamic admission about a write.
//!
//! An [`admission::Snapshot`] says which hooks there are; [`Connections`] are the ways to them, made
//! once for each snapshot. A request takes a [`HookSession`]: [`HookSession::mutate`] asks the mutating
//! hooks one after the other, up to twice, and [`HookSession::validate`] asks the validating ones all at
//! once. What comes out are values: the object or a [`Refusal`], and [`Notes`] for the client, for the
//! audit log, and for whoever wants to know who touched an object.
//!
//! Owns: reviews on the wire, the order of calls, patches, failure policies, deadlines,
//! warnings and audit annotations.
//! Must not know: how configurations are stored and followed, HTTP routing, files, metrics formats,
//! how the schemas of kinds are kept.

mod passage;

mod mutate;
mod reinvocation;
mod validate;

mod kinds;
mod select;

mod answer;
mod call;
mod caught;
mod failure;
mod identity;
mod members;
mod patching;
mod review;
mod time;
mod trouble;

mod connection;
mod connections;
mod credentials;
mod hook_target;
mod pool;
mod way;

mod annotations;
mod observe;
mod record;
mod refusal;
mod warnings;

pub use annotations::{Annotation, AnnotationLevel};
pub use connection::{CALLS_IN_FLIGHT_MAX, HookEnvironment, RESPONSE_BYTES_MAX, Services};
pub use connections::Connections;
pub use credentials::{Access, AccessTable};
pub use failure::FailOpenCause;
pub use hook_target::{HookTargetError, hook_target};
pub use kinds::{Kinds, Untyped};
pub use observe::{
    CallReport, ConditionOutcome, ConditionReport, Observe, Phase, RejectionCause, Unobserved,
};
pub use passage::{Admission, HookRequest, HookSession, admit};
pub use record::{Event, Fate, Notes, SkipReason, Verdict};
pub use refusal::Refusal;
pub use time::CALL_TIME_MAX;
