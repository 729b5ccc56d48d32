//! From the body of a request to what is to be asked.

use api_object::Status;
use authz::User;
use jiff::Timestamp;
use serde_json::Value;

use crate::access::{self, AccessReview};
use crate::explanation::{self, ExplanationReview};
use crate::identity;
use crate::kind::Kind;
use crate::legacy;
use crate::rules::{self, RulesReview};
use crate::subjects::{self, SubjectsReview};

/// What is known of the request that posts a review.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// The version in the path, such as `v1`.
    pub version: &'r str,
    /// The namespace in the path; empty if there is none.
    pub namespace: &'r str,
    /// Who posts it, after impersonation; `None` if nobody knows.
    pub user: Option<&'r User>,
    /// The time.
    pub now: Timestamp,
}

/// A review in which nothing is wrong, and which waits for an answer.
#[derive(Debug)]
pub enum Review {
    /// May somebody do something?
    Access(AccessReview),
    /// May somebody do something, and why?
    Explanation(ExplanationReview),
    /// What may somebody do?
    Rules(RulesReview),
    /// Who may do something?
    Subjects(SubjectsReview),
    /// Nothing is to be asked; this is the answer.
    Answered(Value),
}

/// Reads and checks the body of a review.
///
/// The body is an object whose `kind` and `apiVersion` whoever decoded it has compared with the
/// path, but for the legacy form, which is of no registered kind. Fields that are not known are
/// ignored; telling about them is the decoder's part too. The status that a client sends is
/// discarded.
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
        Kind::SelfSubjectReview => identity::answer(body, request).map(Review::Answered),
        Kind::ResourceAccessReview | Kind::LocalResourceAccessReview => {
            subjects::prepare(kind, body, request).map(Review::Subjects)
        }
        Kind::LegacyResourceAccessReview => legacy::prepare(body, request).map(Review::Subjects),
    }
}

/// What self reviews answer if there is nobody whom they could be about.
pub(crate) fn no_user() -> Status {
    Status::bad_request("no user present on request")
}
