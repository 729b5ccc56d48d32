//! Reviews: questions about what somebody may do, and about who may do something.
//!
//! A review is posted, answered and forgotten. [`prepare`] reads and checks the body and says what
//! is to be asked; the asking lies in between and may take time; `respond` of each kind makes the
//! body of the answer. [`answer`] does the asking with a chain. The one review that servers are
//! asked thousands of times a second has a way of its own, [`SubjectAccessReview`], that makes no
//! tree.
//!
//! Owns: which reviews exist, their rules, what is asked for each, how answers, explanations and
//! refusals are written, what the audit log says of a decision.
//! Must not know: HTTP, sockets, how bodies are decoded, how a chain decides.

mod access;
mod answer;
mod explanation;
mod fault;
mod identity;
mod kind;
mod legacy;
mod metadata;
mod plain;
mod prepare;
mod read;
mod refusal;
mod response;
pub mod review;
mod rules;
mod subjects;
mod trace;

pub use access::AccessReview;
pub use answer::{answer, check_decided};
pub use explanation::ExplanationReview;
pub use kind::{Kind, PORTCULLIS_GROUP};
pub use plain::SubjectAccessReview;
pub use prepare::{Request, Review, prepare};
pub use refusal::{
    DECISION_ANNOTATION, REASON_ANNOTATION, Refusal, audit_annotations, forbidden, internal_error,
    refusal,
};
pub use rules::RulesReview;
pub use subjects::SubjectsReview;
pub use trace::{TraceNode, not_asked, trace_json, trace_tree};
