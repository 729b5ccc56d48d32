//! The webhook authorizer: sends a SubjectAccessReview to a remote service if the match conditions hold, and caches the
//! answer.
//!
//! Owns: the settings of a webhook, match conditions and their evaluation, the SubjectAccessReview that is sent and
//! read, the cache of answers, shared calls, retries, limits, and the choice of failures to which the failure policy applies.
//! Must not know: configuration files, HTTP libraries, addresses and credentials, the other
//! authorizers.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod block_yaml;
mod cache;
mod cache_key;
mod call_error;
mod compile_condition;
mod condition_hints;
mod decode_response;
mod encode_review;
mod health;
mod http_error;
mod in_flight_calls;
mod match_conditions;
mod media_type;
mod observer;
mod response_document;
mod review_spec;
mod settings;
mod trace_events;
mod transport;
mod webhook;
mod webhook_answers;
mod webhook_call;
mod webhook_limits;
mod webhook_probe;

pub use call_error::{CallError, RetryAdvice};
pub use compile_condition::{ConditionCompiler, ConditionError, ConditionIssue};
pub use encode_review::encode_review;
pub use health::{LastFailedCall, WebhookHealth};
pub use match_conditions::{EvaluationError, MatchCondition, MatchResult};
pub use observer::{
    AttemptResult, CacheEvent, CallRejection, FailOpenCause, MatchResultKind, NoObserver,
    WebhookObserver,
};
pub use review_spec::{
    IncludedSelectors, NonResourceAttributes, ResourceAttributes, ReviewSpec, SelectorAttributes,
    SelectorRequirement, SelectorRequirements, UserExtra,
};
pub use settings::{
    AbsolutePath, CacheSettings, ConnectionInfo, FailurePolicy, MATCH_CONDITIONS_MAX,
    MatchConditions, ReviewVersion, Timeout, WebhookSettings,
};
pub use transport::{HttpResponse, ResponseFuture, Transport, TransportError, TransportErrorKind};
pub use webhook::{Webhook, WebhookDecision};
pub use webhook_limits::{RetryOptions, WebhookLimits};
pub use webhook_probe::PROBE_USER;
