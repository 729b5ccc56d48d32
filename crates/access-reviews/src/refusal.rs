//! What becomes of a request by the decision about it: it goes on, or it is refused in Kubernetes'
//! words.

use api_object::{GroupResource, Status};
use authz::{Attributes, Decision, Failure, Reason, Resource, Target, Verdict};

/// How a request is refused. The first two come with the header `X-Content-Type-Options: nosniff`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// 403, an object.
    Forbidden(Status),
    /// 500, plain text in UTF-8: nobody allowed it, and somebody failed who might have.
    InternalError(String),
    /// 429, 503 or 504, an object: this server failed to ask.
    Unavailable(Status),
}

/// The refusal of a request, or `None` if it goes on.
///
/// 1. What is allowed goes on, whatever failed on the way.
/// 2. What is not is an internal error if something failed, for nobody knows what the answer would
///    have been.
/// 3. What this server failed to ask about is neither allowed nor forbidden, and may be tried again.
/// 4. Otherwise it is forbidden, whether it was denied or nobody had an opinion.
pub fn refusal(
    attributes: &Attributes<'_>,
    request_uri: &str,
    decision: &Decision,
) -> Option<Refusal> {
    match (decision.verdict, &decision.error) {
        (Verdict::Allow, _) => None,
        (Verdict::Unavailable(why), _) => Some(Refusal::Unavailable(Status::undecided(why))),
        (Verdict::Deny | Verdict::NoOpinion, Some(error)) => {
            Some(Refusal::InternalError(internal_error(request_uri, error)))
        }
        (Verdict::Deny | Verdict::NoOpinion, None) => {
            Some(Refusal::Forbidden(forbidden(attributes, &decision.reason)))
        }
    }
}

/// The 403 for a request that is not allowed.
///
/// Names come from clients, so the sentence about the request is made safe to show as HTML. The
/// reason is not: it is ours.
pub fn forbidden(attributes: &Attributes<'_>, reason: &Reason) -> Status {
    let mut why = escape(&sentence(attributes));
    if !reason.is_empty() {
        why.push_str(": ");
        why.push_str(&reason.to_string());
    }
    match &attributes.target {
        Target::Path(_) => Status::forbidden_path(&why),
        Target::Resource(resource) if is_unnamed(resource) => {
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

/// The text of the 500 for a request that nobody allowed and somebody failed to decide, with a line
/// feed at the end.
pub fn internal_error(request_uri: &str, error: &Failure) -> String {
    let uri = go_compat::quote(request_uri);
    escape(&format!("Internal Server Error: {uri}: {error}\n"))
}

fn is_unnamed(resource: &Resource<'_>) -> bool {
    resource.api_group.is_empty() && resource.resource.is_empty()
}

fn sentence(attributes: &Attributes<'_>) -> String {
    let user = go_compat::quote(attributes.user.map_or("", |user| &user.name));
    let verb = attributes.verb;
    let of = match &attributes.target {
        Target::Path(path) => {
            return format!("User {user} cannot {verb} path {}", go_compat::quote(path));
        }
        Target::Resource(resource) => resource,
    };
    let resource = match of.subresource {
        "" => go_compat::quote(of.resource),
        subresource => go_compat::quote(&format!("{}/{subresource}", of.resource)),
    };
    let group = go_compat::quote(of.api_group);
    let place = match of.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {}", go_compat::quote(namespace)),
    };
    format!("User {user} cannot {verb} resource {resource} in API group {group} {place}")
}

/// Makes a text safe to show as HTML. Quotes are left alone, as they only matter in attributes.
fn escape(text: &str) -> String {
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
