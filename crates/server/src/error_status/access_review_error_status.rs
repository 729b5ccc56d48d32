//! The `Status` of reviews that cannot be answered and of requests that no authorizer allows.

use access_reviews::{AnswerError, ForbiddenRequest, ForbiddenTarget, ReviewError};
use api_object::{GroupResource, Status};
use authz::UnavailableCause;

use super::IntoStatus;

impl IntoStatus for ReviewError {
    fn into_status(self) -> Status {
        match self {
            Self::Malformed { .. }
            | Self::NamespaceRequired
            | Self::NamespaceMismatch
            | Self::NoUser
            | Self::NoNamespace => Status::bad_request(self.to_string()),
            Self::Invalid { kind, name, errors } => Status::invalid_object(&kind, &name, &errors),
        }
    }
}

impl IntoStatus for AnswerError {
    fn into_status(self) -> Status {
        match self {
            Self::Unavailable(why) => why.into_status(),
            Self::PermissionCheck(error) => Status::internal_error(&error.to_string()),
            Self::Forbidden(request) => request.into_status(),
        }
    }
}

impl IntoStatus for UnavailableCause {
    fn into_status(self) -> Status {
        Status::authorization_undecided(self)
    }
}

impl IntoStatus for ForbiddenRequest {
    fn into_status(self) -> Status {
        match self.target {
            ForbiddenTarget::Path => Status::forbidden_path(&self.message),
            ForbiddenTarget::NameOnly { name } => {
                let mut status = Status::forbidden_path(&self.message);
                if let Some(details) = &mut status.details {
                    details.name = name;
                }
                status
            }
            ForbiddenTarget::Resource { api_group, resource, name } => {
                let resource = GroupResource::new(&api_group, &resource);
                Status::forbidden(&resource, &name, &self.message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use authz::{Attributes, Reason, Resource, Target, User, Verb};
    use serde_json::{Value, json};

    use super::*;

    fn forbidden(target: Target<'_>) -> (String, Value) {
        let user = User { name: "ana".to_owned(), ..User::default() };
        let attributes = Attributes { user: Some(&user), verb: Verb::GET, target };
        let status = ForbiddenRequest::new(&attributes, &Reason::default()).into_status();
        assert_eq!((status.code, status.reason.as_ref()), (403, "Forbidden"));
        (status.message.clone(), serde_json::to_value(&status).unwrap()["details"].clone())
    }

    #[test]
    fn forbidden_requests_name_their_target() {
        let scope = "in API group \"\" at the cluster scope";
        let pod = Resource { resource: "pods", name: "p", ..Resource::default() };
        for (target, message, details) in [
            (
                Target::Path("/healthz"),
                "forbidden: User \"ana\" cannot get path \"/healthz\"".to_owned(),
                json!({}),
            ),
            (
                Target::Resource(pod),
                format!(
                    "pods \"p\" is forbidden: User \"ana\" cannot get resource \"pods\" {scope}"
                ),
                json!({"name": "p", "kind": "pods"}),
            ),
            (
                Target::Resource(Resource { name: "", api_group: "apps", ..pod }),
                "pods.apps is forbidden: User \"ana\" cannot get resource \"pods\" in API group \
                 \"apps\" at the cluster scope"
                    .to_owned(),
                json!({"group": "apps", "kind": "pods"}),
            ),
            (
                Target::Resource(Resource { resource: "", ..pod }),
                format!("forbidden: User \"ana\" cannot get resource \"\" {scope}"),
                json!({"name": "p"}),
            ),
        ] {
            assert_eq!(forbidden(target), (message, details));
        }
    }

    #[test]
    fn unavailable_authorizers_have_codes_of_their_own() {
        for (why, code, retry_after) in [
            (UnavailableCause::TooManyCalls, 429, Some(1)),
            (UnavailableCause::OutOfResources, 503, Some(1)),
            (UnavailableCause::DeadlineExceeded, 504, None),
        ] {
            for status in [why.into_status(), AnswerError::Unavailable(why).into_status()] {
                assert_eq!((status.code, status.retry_after_seconds()), (code, retry_after));
            }
        }
    }

    #[test]
    fn malformed_reviews_are_bad_requests_and_others_invalid() {
        let status = ReviewError::NoUser.into_status();
        assert_eq!((status.code, status.message.as_str()), (400, "no user present on request"));
        let mut errors = field_errors::FieldErrors::new();
        errors.push(field_errors::FieldPath::root("spec").required(""));
        let kind = api_object::GroupKind::new("authorization.k8s.io", "");
        let error = ReviewError::Invalid { kind, name: String::new(), errors };
        let text = error.to_string();
        let status = error.into_status();
        assert_eq!((status.code, &status.message), (422, &text));
        let failed = authz::EvaluationErrors::message("no answer");
        let status = AnswerError::PermissionCheck(failed).into_status();
        let want = "Internal error occurred: no answer";
        assert_eq!((status.code, status.message.as_str()), (500, want));
    }
}
