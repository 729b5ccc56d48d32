//! The webhook authorizer: sends a SubjectAccessReview to a remote service if the match conditions hold, and caches the
//! answer.
//!
//! Owns: the settings of a webhook, match conditions and their evaluation, the SubjectAccessReview that is sent and
//! read, the cache of answers, shared calls, retries, limits, and which failures the failure policy applies to.
//! Must not know: configuration files, HTTP libraries, addresses and credentials, the other
//! authorizers.

mod block_yaml;
mod cache;
mod cache_key;
mod call;
mod compile_condition;
mod condition_hints;
mod conditions;
mod decode;
mod encode;
mod error;
mod health;
mod http_error;
mod in_flight_calls;
mod limits;
mod media_type;
mod observer;
mod response_document;
mod review_spec;
mod service;
mod settings;
mod trace_events;
mod transport;
mod webhook;

pub use compile_condition::{ConditionCompiler, ConditionError, ConditionIssue};
pub use conditions::{MatchCondition, MatchResult};
pub use error::{CallError, RetryAdvice};
pub use health::{LastFailure, WebhookHealth};
pub use limits::{RetryOptions, WebhookLimits};
pub use observer::{
    AttemptResult, CacheEvent, FailOpenCause, MatchOutcome, NoObserver, Rejection, WebhookObserver,
};
pub use review_spec::{
    Extra, IncludedSelectors, NonResourceAttributes, Requirement, Requirements, ResourceAttributes,
    ReviewSpec, SelectorAttributes,
};
pub use settings::{
    AbsolutePath, Caching, Connection, FailurePolicy, MATCH_CONDITIONS_MAX, MatchConditions,
    ReviewVersion, Timeout, WebhookSettings,
};
pub use transport::{HttpResponse, ResponseFuture, Transport, TransportError, TransportErrorKind};
pub use webhook::{Webhook, WebhookDecision};
