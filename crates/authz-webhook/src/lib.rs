//! The webhook authorizer: sends a SubjectAccessReview to a remote service if the match conditions hold, and caches the
//! answer.
//!
//! Owns: the settings of a webhook, match conditions and their evaluation, the SubjectAccessReview that is sent and
//! read, the cache of answers, shared calls, retries, limits, and the choice of failures to which the failure policy applies.
//! Must not know: configuration files, HTTP libraries, addresses and credentials, the other
//! authorizers.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod answer_provider;
mod block_yaml;
mod cache;
mod cache_key;
mod compile_condition;
mod condition_hints;
mod decode_response;
mod encode_review;
mod error;
mod health;
mod http_error;
mod in_flight_calls;
mod limits;
mod match_conditions;
mod media_type;
mod observer;
mod probe;
mod response_document;
mod review_spec;
mod settings;
mod trace_events;
mod transport;
mod webhook;
mod webhook_call;

pub use compile_condition::{ConditionCompiler, ConditionError, ConditionIssue};
pub use encode_review::encode_review;
pub use error::{CallError, RetryAdvice};
pub use health::{LastFailure, WebhookHealth};
pub use limits::{RetryOptions, WebhookLimits};
pub use match_conditions::{EvaluationError, MatchCondition, MatchResult};
pub use observer::{
    AttemptResult, CacheEvent, CallRejection, FailOpenCause, MatchResultKind, NoObserver,
    WebhookObserver,
};
pub use probe::PROBE_USER;
pub use review_spec::{
    Extra, IncludedSelectors, NonResourceAttributes, ResourceAttributes, ReviewSpec,
    SelectorAttributes, SelectorRequirement, SelectorRequirements,
};
pub use settings::{
    AbsolutePath, CacheSettings, ConnectionInfo, FailurePolicy, MATCH_CONDITIONS_MAX,
    MatchConditions, ReviewVersion, Timeout, WebhookSettings,
};
pub use transport::{HttpResponse, ResponseFuture, Transport, TransportError, TransportErrorKind};
pub use webhook::{Webhook, WebhookDecision};
