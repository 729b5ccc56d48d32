//! Reads and validates the body of a review.

use authz::User;
use jiff::Timestamp;
use serde_json::Value;

use crate::access_review::{self, AccessReview};
use crate::explanation_review::{self, ExplanationReview};
use crate::legacy_resource_access_review;
use crate::resource_access_review::{self, ResourceAccessReview};
use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;
use crate::rules_review::{self, RulesReview};
use crate::self_subject_review;

/// The request that posts a review.
#[derive(Debug, Clone, Copy)]
pub struct ReviewRequest<'r> {
    /// The version in the path, such as `v1`.
    pub version: &'r str,
    /// The namespace in the path; empty if there is none.
    pub namespace: &'r str,
    /// The user, after impersonation; `None` without an authenticated user.
    pub user: Option<&'r User>,
    /// The time at which the request is handled.
    pub now: Timestamp,
}

/// A valid review without its answer.
#[derive(Debug)]
pub enum PreparedReview {
    /// A review of one action of one user.
    Access(AccessReview),
    /// A review of one action of one user, with a trace of the decision.
    Explanation(ExplanationReview),
    /// A review that lists the rules of a user.
    Rules(RulesReview),
    /// A review that lists the subjects that may perform an action.
    Subjects(ResourceAccessReview),
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
            access_review::prepare_access_review(kind, body, request).map(PreparedReview::Access)
        }
        ReviewKind::SubjectAccessExplanation => {
            explanation_review::prepare_explanation_review(body, request)
                .map(PreparedReview::Explanation)
        }
        ReviewKind::SelfSubjectRulesReview => {
            rules_review::prepare_rules_review(body, request).map(PreparedReview::Rules)
        }
        ReviewKind::SelfSubjectReview => {
            self_subject_review::answer_self_subject_review(body, request)
                .map(PreparedReview::Answered)
        }
        ReviewKind::ResourceAccessReview | ReviewKind::LocalResourceAccessReview => {
            resource_access_review::prepare_resource_access_review(kind, body, request)
                .map(PreparedReview::Subjects)
        }
        ReviewKind::LegacyResourceAccessReview => {
            legacy_resource_access_review::prepare_legacy_review(body, request)
                .map(PreparedReview::Subjects)
        }
    }
}
