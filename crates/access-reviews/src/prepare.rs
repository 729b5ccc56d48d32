//! Reads and validates the body of a review.

use api_object::Status;
use authz::User;
use jiff::Timestamp;
use serde_json::Value;

use crate::access::{self, AccessReview};
use crate::explanation::{self, ExplanationReview};
use crate::legacy_resource_access_review;
use crate::review_kind::Kind;
use crate::rules::{self, RulesReview};
use crate::self_subject_review;
use crate::subjects::{self, SubjectsReview};

/// The request that posts a review.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// The version in the path, such as `v1`.
    pub version: &'r str,
    /// The namespace in the path; empty if there is none.
    pub namespace: &'r str,
    /// The user, after impersonation; `None` without an authenticated user.
    pub user: Option<&'r User>,
    /// The current time.
    pub now: Timestamp,
}

/// A valid review without its answer.
#[derive(Debug)]
pub enum Review {
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
/// 400 for a body of the wrong shape or in the wrong place, 422 for one that breaks a rule.
pub fn prepare(kind: Kind, body: &Value, request: &Request<'_>) -> Result<Review, Status> {
    match kind {
        Kind::SubjectAccessReview
        | Kind::LocalSubjectAccessReview
        | Kind::SelfSubjectAccessReview => access::prepare(kind, body, request).map(Review::Access),
        Kind::SubjectAccessExplanation => {
            explanation::prepare(body, request).map(Review::Explanation)
        }
        Kind::SelfSubjectRulesReview => rules::prepare(body, request).map(Review::Rules),
        Kind::SelfSubjectReview => self_subject_review::answer(body, request).map(Review::Answered),
        Kind::ResourceAccessReview | Kind::LocalResourceAccessReview => {
            subjects::prepare(kind, body, request).map(Review::Subjects)
        }
        Kind::LegacyResourceAccessReview => {
            legacy_resource_access_review::prepare(body, request).map(Review::Subjects)
        }
    }
}

/// The error of a self review without an authenticated user.
pub(crate) fn no_user() -> Status {
    Status::bad_request("no user present on request")
}
