//! The contract of every authorizer: its input, its decision, and the trace that explains the decision.
//!
//! A request becomes [`Attributes`]; for an HTTP request [`RequestInfo`] comes first. An authorizer returns a
//! [`Decision`] with a [`Reason`] that names its source, and writes its steps to a [`TraceRecorder`] if one is on. Plugins
//! implement the [`Authorizer`] trait.
//!
//! Owns: attributes, field and label selectors with their parsers (they are part of a request's attributes, and every
//! authorizer must read them alike), decisions and reasons, traces, the classification of request paths.
//! Must not know: how any authorizer decides, the chain, serde, HTTP libraries, clocks, status codes.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod allowed_and_denied_subjects;
mod attributes;
mod authorizer;
mod decision;
mod decision_reason;
mod decision_trace;
mod namespace;
mod rbac_grant;
mod request_info;
mod selector;
mod shared_text;
mod user;
mod user_rules;
mod verb;

pub use allowed_and_denied_subjects::{DeniedSubjects, Subjects};
pub use attributes::{Attributes, Resource, Target};
pub use authorizer::{Authorizer, DecisionFuture};
pub use decision::{Decision, EvaluationErrors, UnavailableCause, Verdict};
pub use decision_reason::{Abstention, NodeAllowRule, Reason};
pub use decision_trace::{TRACE_ENTRIES_MAX, Trace, TraceEntry, TraceEvent, TraceRecorder, Value};
pub use namespace::Namespace;
pub use rbac_grant::{RbacGrant, RbacGrantSource, RbacSubject};
pub use request_info::{
    MalformedRequestError, RequestError, RequestInfo, ResourceInfo, TARGET_BYTES_MAX,
    UnclassifiableRequestError,
};
pub use selector::{
    FieldOperator, FieldRequirement, LabelOperator, LabelRequirement, ReviewSelectorOperator,
    SELECTOR_TERMS_MAX, Selector, SelectorError, parse_field_selector, parse_label_selector,
};
pub use shared_text::SharedText;
pub use user::{User, user_limit_key};
pub use user_rules::{NonResourceRule, ResourceRule, Rules};
pub use verb::Verb;
