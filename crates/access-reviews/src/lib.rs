//! Access reviews: SubjectAccessReview, its relatives, and the listing of allowed subjects.
//!
//! A review is posted, answered and not stored. [`prepare`] reads and validates the body and makes the attributes for the
//! chain; `respond` of each kind makes the body of the response; [`answer`] does both around the decision of a chain. The
//! review that servers receive thousands of times a second has a fast path, [`SubjectAccessReview`], that makes no tree.
//!
//! Owns: the kinds of reviews, their validation, the attributes for each, the bodies of responses and explanations, and the
//! errors of requests that are not allowed.
//! Must not know: HTTP, sockets, how bodies are decoded, how a chain decides.

mod access;
mod answer_review;
mod check_allowed;
mod explanation;
mod fast_review;
mod invalid_review;
mod legacy_resource_access_review;
mod metadata;
mod prepare;
mod read_body;
mod response;
pub mod review;
mod review_error;
mod review_kind;
mod rules;
mod self_subject_review;
mod subjects;
mod trace_json;

pub use access::AccessReview;
pub use answer_review::{answer_review, check_decided};
pub use check_allowed::{AccessError, ForbiddenRequest, ForbiddenTarget, check_allowed};
pub use explanation::ExplanationReview;
pub use fast_review::SubjectAccessReview;
pub use prepare::{PreparedReview, ReviewRequest, prepare_review};
pub use review_error::{AnswerError, ReviewError};
pub use review_kind::{PORTCULLIS_GROUP, ReviewKind};
pub use rules::RulesReview;
pub use subjects::SubjectsReview;
pub use trace_json::{TraceNode, authorizers_not_consulted, trace_json, trace_tree};
