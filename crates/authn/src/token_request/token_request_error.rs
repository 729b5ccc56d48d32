//! Why no token is issued for a `TokenRequest`.

use field_errors::FieldErrors;

use crate::service_account::{ObjectLookupError, ReferencedKind};

/// Why no token is issued for a `TokenRequest`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenRequestError {
    /// A member of the request has a wrong type.
    #[error("TokenRequest in version \"v1\" cannot be handled as a TokenRequest: {0}")]
    Malformed(String),
    /// The request is well-formed, but its values are not valid.
    #[error("the token request for \"{name}\" is invalid: {errors}")]
    Invalid {
        /// The name of the account, or empty.
        name: String,
        /// All faults of the request.
        errors: FieldErrors,
    },
    /// The account, or the object that the token shall be bound to, does not exist.
    #[error("{} {} not found", .kind.resource(), go_compat::quote(.name))]
    NotFound {
        /// The kind of the object.
        kind: ReferencedKind,
        /// The name of the object.
        name: String,
    },
    /// The request names another uid than that of the account.
    #[error(
        "the UID in the token request ({requested_uid}) does not match the UID of the service \
         account ({uid})"
    )]
    AccountUid {
        /// The name of the account.
        name: String,
        /// The uid in the request.
        requested_uid: String,
        /// The uid of the account.
        uid: String,
    },
    /// The uid in the bound object reference differs from the uid of the stored object.
    #[error(
        "the UID in the bound object reference ({requested_uid}) does not match the UID in record. \
         The object might have been deleted and then recreated"
    )]
    BoundObjectUid {
        /// The API group of the object.
        group: String,
        /// The kind of the object, as the request names it.
        kind: String,
        /// The name of the object.
        name: String,
        /// The uid in the request.
        requested_uid: String,
    },
    /// The pod that the token shall be bound to runs as another account.
    #[error(
        "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
        go_compat::quote(.account)
    )]
    PodOfOtherAccount {
        /// The account that the token is for.
        account: String,
    },
    /// Tokens cannot be bound to objects of this kind.
    #[error("cannot bind token to object of type {group}/{version}, Kind={kind}")]
    UnsupportedBoundKind {
        /// The API group of the object.
        group: String,
        /// The version of the object.
        version: String,
        /// The kind of the object.
        kind: String,
    },
    /// It is unknown whether an object exists.
    #[error(transparent)]
    Lookup(#[from] ObjectLookupError),
    /// The token cannot be generated.
    #[error("failed to generate token: {0}")]
    Generation(String),
}
