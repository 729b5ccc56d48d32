//! Access reviews: SubjectAccessReview, its relatives, and the listing of allowed subjects.
//!
//! A review is posted, answered and not stored. [`prepare_review`] reads and validates the body and builds the attributes for
//! the chain. [`answer_review`] asks the chain and builds the body of the response. The review that servers receive thousands
//! of times a second has a fast path, [`SubjectAccessReview`], which builds no tree.
//!
//! Owns: the kinds of reviews, their validation, the attributes for each, the bodies of responses and explanations, and the
//! errors of requests that are not allowed.
//! Must not know: HTTP, sockets, how bodies are decoded, how a chain decides.

#![deny(clippy::indexing_slicing)]

mod access_review;
mod answer_review;
mod check_allowed;
mod explanation_review;
mod fast_review;
mod invalid_review;
mod legacy_resource_access_review;
mod prepare_review;
mod read_body;
mod resolve_resource;
mod resource_access_review;
mod review_error;
mod review_kind;
mod review_metadata;
pub mod review_parsing;
mod review_response;
mod rules_review;
mod self_subject_review;
mod trace_json;

pub use access_review::AccessReview;
pub use answer_review::{answer_review, check_authorizers_consulted};
pub use check_allowed::{AccessError, ForbiddenRequest, ForbiddenTarget, check_allowed};
pub use explanation_review::ExplanationReview;
pub use fast_review::PlainSubjectAccessReview;
pub use prepare_review::{PreparedReview, ReviewRequest, prepare_review};
pub use resolve_resource::{ResolvedResource, ResourceResolutionError, ResourceToResolve};
pub use resource_access_review::ResourceAccessReview;
pub use review_error::{AnswerError, ReviewError};
pub use review_kind::{PORTCULLIS_GROUP, ReviewKind};
pub use rules_review::RulesReview;
pub use trace_json::{
    TraceNode, authorizers_not_consulted, build_trace_tree, trace_from_json, trace_to_json,
};
