//! Reads and validates the body of a review.

use authz::User;
use jiff::Timestamp;
use serde_json::Value;

use crate::access::{self, AccessReview};
use crate::explanation::{self, ExplanationReview};
use crate::legacy_resource_access_review;
use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;
use crate::rules::{self, RulesReview};
use crate::self_subject_review;
use crate::subjects::{self, SubjectsReview};

/// The request that posts a review.
#[derive(Debug, Clone, Copy)]
pub struct ReviewRequest<'r> {
    /// The version in the path, such as `v1`.
    pub version: &'r str,
    /// The namespace in the path; empty if there is none.
    pub namespace: &'r str,
    /// The user, after impersonation; `None` without an authenticated user.
    pub user: Option<&'r User>,
    /// Time at which the request is handled.
    pub now: Timestamp,
}

/// A valid review without its answer.
#[derive(Debug)]
pub enum PreparedReview {
    /// Whether a user may do something.
    Access(AccessReview),
    /// Whether a user may do something, with a trace.
    Explanation(ExplanationReview),
    /// The rules of a user.
    Rules(RulesReview),
    /// The subjects that may do something.
    Subjects(SubjectsReview),
    /// The body of the response, if no authorizer decides.
    Answered(Value),
}

/// Reads and validates the body of a review.
///
/// The decoder has compared `kind` and `apiVersion` with the path, except for the legacy form, whose kind is not registered,
/// and has warned about unknown fields, which are ignored here. The status that a client sends is discarded.
///
/// # Errors
/// The body is malformed, posted to the wrong place, or invalid.
pub fn prepare_review(
    kind: ReviewKind,
    body: &Value,
    request: &ReviewRequest<'_>,
) -> Result<PreparedReview, ReviewError> {
    match kind {
        ReviewKind::SubjectAccessReview
        | ReviewKind::LocalSubjectAccessReview
        | ReviewKind::SelfSubjectAccessReview => {
            access::prepare(kind, body, request).map(PreparedReview::Access)
        }
        ReviewKind::SubjectAccessExplanation => {
            explanation::prepare(body, request).map(PreparedReview::Explanation)
        }
        ReviewKind::SelfSubjectRulesReview => {
            rules::prepare(body, request).map(PreparedReview::Rules)
        }
        ReviewKind::SelfSubjectReview => {
            self_subject_review::answer(body, request).map(PreparedReview::Answered)
        }
        ReviewKind::ResourceAccessReview | ReviewKind::LocalResourceAccessReview => {
            subjects::prepare(kind, body, request).map(PreparedReview::Subjects)
        }
        ReviewKind::LegacyResourceAccessReview => {
            legacy_resource_access_review::prepare(body, request).map(PreparedReview::Subjects)
        }
    }
}
