//! Checks whether a decision allows a request. The texts of the errors are those of Kubernetes.

use authz::{
    Attributes, Decision, EvaluationErrors, Reason, Resource, Target, UnavailableCause, Verdict,
};

/// The error of a request that no authorizer allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// An authorizer denied the request, or all authorizers abstained.
    #[error(transparent)]
    Forbidden(ForbiddenRequest),
    /// No authorizer allowed the request, and one that might have allowed it failed. The text is the body of the
    /// response, with a line feed at the end.
    #[error("{0}")]
    EvaluationFailed(String),
    /// This server could not consult an authorizer. The client may try again.
    #[error("the server is currently unable to authorize the request")]
    Unavailable(UnavailableCause),
}

/// A request that is forbidden, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ForbiddenRequest {
    /// The target of the request, which the response names.
    pub target: ForbiddenTarget,
    /// A sentence about the request, and the reason of the decision.
    pub message: String,
}

/// The target of a forbidden request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForbiddenTarget {
    /// The request was for a non-resource path.
    Path,
    /// A request for an object without API group and resource.
    NameOnly {
        /// The name of the object, often empty.
        name: String,
    },
    /// A request for a resource, or for one object of it.
    Resource {
        /// The API group; empty for the core group.
        api_group: String,
        /// The plural name of the resource.
        resource: String,
        /// The name of the object; empty if the request names none.
        name: String,
    },
}

/// Checks that a decision allows a request.
///
/// # Errors
/// 1. If the request is allowed, there is no error, even if an authorizer failed.
/// 2. If this server could not consult an authorizer, the error is `Unavailable`.
/// 3. If an authorizer failed, the error is `EvaluationFailed`.
/// 4. Otherwise the request is forbidden, whether it was denied or all authorizers abstained.
pub fn check_allowed(
    attributes: &Attributes<'_>,
    request_uri: &str,
    decision: &Decision,
) -> Result<(), AccessError> {
    match (decision.verdict, &decision.error) {
        (Verdict::Allow, _) => Ok(()),
        (Verdict::Unavailable(why), _) => Err(AccessError::Unavailable(why)),
        (Verdict::Deny | Verdict::NoOpinion, Some(error)) => {
            Err(AccessError::EvaluationFailed(internal_error_text(request_uri, error)))
        }
        (Verdict::Deny | Verdict::NoOpinion, None) => {
            Err(AccessError::Forbidden(ForbiddenRequest::new(attributes, &decision.reason)))
        }
    }
}

impl ForbiddenRequest {
    /// Describes a request that is not allowed, and why.
    ///
    /// The sentence about the request contains names from the client, so it is escaped for HTML. The reason is not.
    pub fn new(attributes: &Attributes<'_>, reason: &Reason) -> Self {
        let mut message = escape_html(&describe_request(attributes));
        if !reason.is_empty() {
            message.push_str(": ");
            message.push_str(&reason.to_string());
        }
        let target = match &attributes.target {
            Target::Path(_) => ForbiddenTarget::Path,
            Target::Resource(resource) if has_no_resource(resource) => {
                ForbiddenTarget::NameOnly { name: resource.name.to_owned() }
            }
            Target::Resource(resource) => ForbiddenTarget::Resource {
                api_group: resource.api_group.to_owned(),
                resource: resource.resource.to_owned(),
                name: resource.name.to_owned(),
            },
        };
        Self { target, message }
    }
}

/// The body of the response to a request that no authorizer allowed while one failed.
fn internal_error_text(request_uri: &str, error: &EvaluationErrors) -> String {
    let uri = go_compat::quote(request_uri);
    escape_html(&format!("Internal Server Error: {uri}: {error}\n"))
}

fn has_no_resource(resource: &Resource<'_>) -> bool {
    resource.api_group.is_empty() && resource.resource.is_empty()
}

fn describe_request(attributes: &Attributes<'_>) -> String {
    let user = go_compat::quote(attributes.user.map_or("", |user| &user.name));
    let verb = attributes.verb;
    let target = match &attributes.target {
        Target::Path(path) => {
            return format!("User {user} cannot {verb} path {}", go_compat::quote(path));
        }
        Target::Resource(resource) => resource,
    };
    let resource = match target.subresource {
        "" => go_compat::quote(target.resource),
        subresource => go_compat::quote(&format!("{}/{subresource}", target.resource)),
    };
    let group = go_compat::quote(target.api_group);
    let scope = match target.namespace.name() {
        None => "at the cluster scope".to_owned(),
        Some(namespace) => format!("in the namespace {}", go_compat::quote(namespace)),
    };
    format!("User {user} cannot {verb} resource {resource} in API group {group} {scope}")
}

/// Escapes a text for HTML, except quotes, which only matter in attributes.
fn escape_html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            char => safe.push(char),
        }
    }
    safe
}
