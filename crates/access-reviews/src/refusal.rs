//! The error response to a request that is not allowed, in Kubernetes' words.

use api_object::{GroupResource, Status};
use authz::{Attributes, Decision, EvaluationErrors, Reason, Resource, Target, Verdict};

/// The response to a request that is not allowed. The first two come with the header `X-Content-Type-Options: nosniff`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Status code 403, with a Status object.
    Forbidden(Status),
    /// Status code 500, plain text in UTF-8: no authorizer allowed the request, and one failed that might have.
    InternalError(String),
    /// Status code 429, 503 or 504, with a Status object: this server could not consult an authorizer.
    Unavailable(Status),
}

/// The error response for a decision, or `None` if the request is allowed.
///
/// 1. An allowed request proceeds, also if an authorizer failed.
/// 2. If this server could not consult an authorizer, the client may try again: 429, 503 or 504.
/// 3. If an authorizer failed, the response is an internal error.
/// 4. Otherwise the request is forbidden, whether it was denied or all authorizers abstained.
pub fn refusal_for_decision(
    attributes: &Attributes<'_>,
    request_uri: &str,
    decision: &Decision,
) -> Option<Refusal> {
    match (decision.verdict, &decision.error) {
        (Verdict::Allow, _) => None,
        (Verdict::Unavailable(why), _) => Some(Refusal::Unavailable(Status::undecided(why))),
        (Verdict::Deny | Verdict::NoOpinion, Some(error)) => {
            Some(Refusal::InternalError(internal_error_text(request_uri, error)))
        }
        (Verdict::Deny | Verdict::NoOpinion, None) => {
            Some(Refusal::Forbidden(forbidden_status(attributes, &decision.reason)))
        }
    }
}

/// The 403 for a request that is not allowed.
///
/// The sentence about the request contains names from the client, so it is escaped for HTML. The reason is not.
pub fn forbidden_status(attributes: &Attributes<'_>, reason: &Reason) -> Status {
    let mut why = escape_html(&describe_request(attributes));
    if !reason.is_empty() {
        why.push_str(": ");
        why.push_str(&reason.to_string());
    }
    match &attributes.target {
        Target::Path(_) => Status::forbidden_path(&why),
        Target::Resource(resource) if has_no_resource(resource) => {
            let mut status = Status::forbidden_path(&why);
            if let Some(details) = &mut status.details {
                details.name = resource.name.to_owned();
            }
            status
        }
        Target::Resource(resource) => {
            let about = GroupResource::new(resource.api_group, resource.resource);
            Status::forbidden(&about, resource.name, &why)
        }
    }
}

/// The text of the 500 for a request that no authorizer allowed while one failed, with a line feed at the end.
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
    let scope = match target.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {}", go_compat::quote(namespace)),
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
