//! The errors of posting a review.

use api_object::GroupKind;
use authz::{EvaluationErrors, UnavailableCause};
use field_errors::FieldErrors;

use crate::check_allowed::ForbiddenRequest;

/// The reason why a review is malformed or invalid. The client is at fault, and the texts are those of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// A value in the body has the wrong type.
    #[error("{kind} in version {} cannot be handled as a {kind}: {why}", go_compat::quote(version))]
    Malformed {
        /// The kind of the review.
        kind: &'static str,
        /// The version in the path.
        version: String,
        /// The first fault of the body.
        why: String,
    },
    /// A namespaced review is posted without a namespace.
    #[error("namespace is required on this type: ")]
    NamespaceRequired,
    /// The metadata names another namespace than the path.
    #[error(
        "the namespace of the provided object does not match the namespace sent on the request"
    )]
    NamespaceMismatch,
    /// A self review is posted without an authenticated user.
    #[error("no user present on request")]
    NoUser,
    /// The spec of a SelfSubjectRulesReview names no namespace.
    #[error("no namespace on request")]
    NoNamespace,
    /// The review breaks rules of its kind.
    #[error("{kind} {} is invalid: {errors}", go_compat::quote(name))]
    Invalid {
        /// The kind in the message.
        kind: GroupKind,
        /// The name in the message, often empty.
        name: String,
        /// All faults of the review.
        errors: FieldErrors,
    },
}

/// The reason why a valid review cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// This server could not consult an authorizer. The client may try again.
    #[error("the server is currently unable to authorize the request")]
    Unavailable(UnavailableCause),
    /// An authorizer failed to decide whether the caller has the further permission that the review needs.
    #[error("{0}")]
    PermissionCheck(EvaluationErrors),
    /// The caller lacks the further permission that the review needs.
    #[error(transparent)]
    Forbidden(ForbiddenRequest),
}
