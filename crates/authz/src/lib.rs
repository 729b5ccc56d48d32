//! The contract of every authorizer: its input, its decision, and the trace that explains the decision.
//!
//! A request becomes [`Attributes`]; for an HTTP request [`RequestInfo`] comes first. An authorizer returns a
//! [`Decision`] with a [`Reason`] that names its source, and writes its steps to a [`Recorder`] if one is on. Plugins
//! implement the [`Authorizer`] trait.
//!
//! Owns: attributes, field and label selectors with their parsers (they are part of a request's attributes, and every
//! authorizer must read them alike), decisions and reasons, traces, the classification of request paths.
//! Must not know: how any authorizer decides, the chain, serde, HTTP libraries, clocks, status codes.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod attributes;
mod authorizer;
mod decision;
mod namespace;
mod rbac_grant;
mod reason;
mod request_info;
mod rules;
mod selector;
mod shared_text;
mod subjects;
mod trace;
mod user;
mod verb;

pub use attributes::{Attributes, Resource, Target};
pub use authorizer::{Authorizer, DecisionFuture};
pub use decision::{Decision, EvaluationErrors, UnavailableCause, Verdict};
pub use namespace::Namespace;
pub use rbac_grant::{RbacGrant, RbacGrantSource, RbacSubject};
pub use reason::{Abstention, NodeRule, Reason};
pub use request_info::{
    MalformedRequest, RequestError, RequestInfo, ResourceInfo, TARGET_BYTES_MAX,
    UnclassifiedRequest,
};
pub use rules::{NonResourceRule, ResourceRule, Rules};
pub use selector::{
    FieldOperator, FieldRequirement, LabelOperator, LabelRequirement, ReviewOperator,
    SELECTOR_TERMS_MAX, Selector, SelectorError, parse_field_selector, parse_label_selector,
};
pub use shared_text::SharedText;
pub use subjects::{DeniedSubjects, Subjects};
pub use trace::{Recorder, TRACE_ENTRIES_MAX, Trace, TraceEntry, TraceEvent, Value};
pub use user::{User, user_limit_key};
pub use verb::Verb;
