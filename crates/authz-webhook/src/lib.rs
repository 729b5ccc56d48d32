//! The webhook authorizer: asks a remote service, under conditions, and remembers what it said.
//!
//! Owns: what a validated webhook entry says, match conditions and why they hold or not, the view of
//! a request that conditions see; the `SubjectAccessReview` on the wire, the cache of answers, shared
//! calls, retries, limits, and which failures the failure policy applies to.
//! Must not know: configuration files, HTTP libraries, addresses and credentials, the other
//! authorizers.

mod cache;
mod call;
mod compile;
mod conditions;
mod decode;
mod document;
mod encode;
mod error;
mod failure;
mod flight;
mod guards;
mod health;
mod hints;
mod key;
mod media_type;
mod observe;
mod record;
mod review;
mod service;
mod settings;
mod transport;
mod webhook;
mod yaml;

pub use compile::{ConditionCompiler, ConditionError, Issue};
pub use conditions::{MatchCondition, Matching};
pub use error::{CallError, Retry};
pub use guards::{Guards, RetryOptions};
pub use health::{Health, LastFailure};
pub use observe::{
    AttemptResult, CacheEvent, FailOpenCause, MatchOutcome, Observe, Rejection, Unobserved,
};
pub use review::{
    Extra, NonResourceAttributes, Requirement, Requirements, ResourceAttributes, ReviewSpec,
    SelectorAttributes, Selectors,
};
pub use settings::{
    AbsolutePath, Caching, Connection, FailurePolicy, MATCH_CONDITIONS_MAX, MatchConditions,
    ReviewVersion, Timeout, WebhookSettings,
};
pub use transport::{Fault, FaultKind, Reply, Sending, Transport};
pub use webhook::{Answered, Webhook};
