//! The `Status` of requests that may not impersonate, and of tokens that are not issued or reviewed.

use access_reviews::ForbiddenRequest;
use api_object::{GroupKind, GroupResource, Status};
use authn::{ImpersonationError, TokenRequestError, TokenReviewError};

use super::IntoStatus;

const AUTHENTICATION_GROUP: &str = "authentication.k8s.io";
const TOKEN_REQUEST: &str = "TokenRequest";

impl IntoStatus for ImpersonationError {
    fn into_status(self) -> Status {
        match self {
            Self::Header(_) | Self::NoUserName(_) => Status::bad_request(self.to_string()),
            Self::NoRequestor => Status::internal_error(&self.to_string()),
            Self::Forbidden(missing) => {
                ForbiddenRequest::new(&missing.denied_attributes(), &missing.reason).into_status()
            }
            Self::Undecided(why) => Status::authorization_undecided(why),
            Self::NoModeApplies => Status::error_without_reason(self.to_string()),
        }
    }
}

impl IntoStatus for TokenRequestError {
    fn into_status(self) -> Status {
        let message = self.to_string();
        match self {
            Self::Malformed(_)
            | Self::PodOfOtherAccount { .. }
            | Self::UnsupportedBoundKind { .. } => Status::bad_request(message),
            Self::Invalid { name, errors } => {
                let kind = GroupKind::new(AUTHENTICATION_GROUP, TOKEN_REQUEST);
                Status::invalid_object(&kind, &name, &errors)
            }
            Self::NotFound { kind, name } => {
                Status::not_found(&GroupResource::new("", kind.resource()), &name)
            }
            Self::AccountUid { name, .. } => {
                let resource = GroupResource::new(AUTHENTICATION_GROUP, TOKEN_REQUEST);
                Status::conflict(&resource, &name, &message)
            }
            Self::BoundObjectUid { group, kind, name, .. } => {
                Status::conflict(&GroupResource::new(&group, &kind), &name, &message)
            }
            Self::Lookup(_) | Self::Generation(_) => Status::internal_error(&message),
        }
    }
}

impl IntoStatus for TokenReviewError {
    fn into_status(self) -> Status {
        Status::bad_request(self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use authz::UnavailableCause;
    use field_errors::{FieldErrors, FieldPath};

    use super::*;

    fn shown(status: &Status) -> (u16, &str, &str) {
        (status.code, &status.reason, &status.message)
    }

    #[test]
    fn each_error_of_a_token_request_has_its_status() {
        let at = FieldPath::root("metadata");
        let errors = FieldErrors::from(at.child("name").invalid("x", "must match"));
        let text = str::to_owned;
        for (error, want) in [
            (
                TokenRequestError::Malformed(text("spec must be an object")),
                (
                    400,
                    "BadRequest",
                    "TokenRequest in version \"v1\" cannot be handled as a TokenRequest: spec must be \
                     an object",
                ),
            ),
            (
                TokenRequestError::Invalid { name: text("sa"), errors },
                (
                    422,
                    "Invalid",
                    "TokenRequest.authentication.k8s.io \"sa\" is invalid: metadata.name: Invalid \
                     value: \"x\": must match",
                ),
            ),
            (
                TokenRequestError::NotFound { kind: authn::ReferencedKind::Pod, name: text("p") },
                (404, "NotFound", "pods \"p\" not found"),
            ),
            (
                TokenRequestError::AccountUid {
                    name: text("sa"),
                    requested_uid: text("x"),
                    uid: text("sa-uid"),
                },
                (
                    409,
                    "Conflict",
                    "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"sa\": the \
                     UID in the token request (x) does not match the UID of the service account \
                     (sa-uid)",
                ),
            ),
            (
                TokenRequestError::BoundObjectUid {
                    group: String::new(),
                    kind: text("Secret"),
                    name: text("secret"),
                    requested_uid: text("x"),
                },
                (
                    409,
                    "Conflict",
                    "Operation cannot be fulfilled on Secret \"secret\": the UID in the bound object \
                     reference (x) does not match the UID in record. The object might have been \
                     deleted and then recreated",
                ),
            ),
            (
                TokenRequestError::PodOfOtherAccount { account: text("sa") },
                (
                    400,
                    "BadRequest",
                    "cannot bind token for serviceaccount \"sa\" to pod running with different \
                     serviceaccount name.",
                ),
            ),
            (
                TokenRequestError::UnsupportedBoundKind {
                    group: String::new(),
                    version: text("v1"),
                    kind: text("ConfigMap"),
                },
                (400, "BadRequest", "cannot bind token to object of type /v1, Kind=ConfigMap"),
            ),
            (
                TokenRequestError::Generation(text("signing failed")),
                (
                    500,
                    "InternalError",
                    "Internal error occurred: failed to generate token: signing failed",
                ),
            ),
        ] {
            assert_eq!(shown(&error.into_status()), want);
        }
    }

    #[test]
    fn each_error_of_impersonation_has_its_status() {
        for (error, want) in [
            (
                ImpersonationError::NoRequestor,
                (500, "InternalError", "Internal error occurred: no User found in the context"),
            ),
            (
                ImpersonationError::Undecided(UnavailableCause::TooManyCalls),
                (
                    429,
                    "TooManyRequests",
                    "Too many requests: an authorization webhook has too many calls in flight",
                ),
            ),
            (ImpersonationError::NoModeApplies, (500, "", "all impersonation modes failed")),
        ] {
            assert_eq!(shown(&error.into_status()), want);
        }
    }

    #[test]
    fn a_review_without_a_token_is_a_bad_request() {
        let want = (400, "BadRequest", "token is required for TokenReview in authentication");
        assert_eq!(shown(&TokenReviewError::NoToken.into_status()), want);
    }
}
