//! The contract of every authorizer: what is asked, what is answered, and how an answer is explained.
//!
//! A request becomes [`Attributes`], by way of [`RequestInfo`] when it came over HTTP. An authorizer
//! answers with a [`Decision`] and, if somebody listens, notes in a [`Recorder`] how it got there.
//! Outsiders plug in through the [`Authorizer`] trait.
//!
//! Owns: attributes, selectors, decisions, traces, the classification of request paths.
//! Must not know: any one authorizer, the chain, serde, HTTP libraries, clocks, status codes.

mod attributes;
mod authorizer;
mod decision;
mod rbac_grant;
mod reason;
mod request;
mod rules;
mod selector;
mod shared_text;
mod subjects;
mod trace;
mod user;

pub use attributes::{Attributes, Resource, Target};
pub use authorizer::{Answer, Authorizer};
pub use decision::{Decision, Failure, Unavailable, Verdict};
pub use rbac_grant::{RbacBindings, RbacGrant, RbacSubject};
pub use reason::{Abstention, NodeRule, Reason};
pub use request::{
    MalformedRequest, RequestError, RequestInfo, ResourceInfo, TARGET_BYTES_MAX,
    UnclassifiedRequest,
};
pub use rules::{NonResourceRule, ResourceRule, Rules};
pub use selector::{
    FieldOperator, FieldRequirement, LabelOperator, LabelRequirement, ReviewOperator,
    SELECTOR_TERMS_MAX, Selector, SelectorError, parse_field_selector, parse_label_selector,
};
pub use shared_text::SharedText;
pub use subjects::{Denied, Subjects};
pub use trace::{Entry, Event, Recorder, TRACE_ENTRIES_MAX, Trace, Value};
pub use user::{User, limit_name};
