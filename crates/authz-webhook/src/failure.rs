//! What an HTTP answer that is not a success says, and whether it is worth asking again.
//!
//! The messages and the rules are those of Kubernetes' client: a `Status` in the body tells more than
//! the status code, and its reason decides in the place of the code. A body that is no `Status` is not
//! repeated: the message reaches users who create access reviews, and the body may be that of a service
//! that they can not reach themselves.

use crate::decode::document_type;
use crate::document::{self, Node};
use crate::error::{CallError, Retry};
use crate::transport::Reply;

/// How much of the message of a `Status` is told.
const MESSAGE_BYTES_MAX: usize = 2048;

/// What is known of a failure, from the status code or from the body.
struct Failure {
    reason: String,
    code: i64,
    message: String,
    /// For how many seconds the service wants to be left alone, if it has any details to tell.
    delay_seconds: Option<i64>,
}

/// The failure that an answer outside of success means.
pub(crate) fn failure(reply: &Reply, is_text: bool, body: &str) -> CallError {
    let told = status_in(body);
    response(reply.status, told.unwrap_or_else(|| generic(reply, is_text)))
}

/// The failure that an unreadable content type means, whatever the status code.
pub(crate) fn broken_content_type(status: u16, fault: &str) -> CallError {
    let failure = Failure {
        reason: "InternalError".to_owned(),
        code: 500,
        message: format!("Internal error occurred: {fault}"),
        delay_seconds: None,
    };
    response(status, failure)
}

fn response(status: u16, failure: Failure) -> CallError {
    let retry = if is_retriable(&failure) { Retry::Later } else { Retry::Never };
    let is_timeout = status == 504 || is_timeout(&failure);
    CallError::Response { status, retry, is_timeout, message: failure.message.into() }
}

/// The integer in a header `Retry-After`, if it is one.
pub(crate) fn retry_after_seconds(reply: &Reply) -> Option<i64> {
    reply.retry_after.as_deref()?.parse().ok()
}

/// The reasons that say something by themselves, so that the code beside them does not count.
const KNOWN_REASONS: [&str; 19] = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "StorageReadError",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
];

fn is_retriable(failure: &Failure) -> bool {
    let is_known = KNOWN_REASONS.contains(&failure.reason.as_str());
    let asks_for_delay = failure
        .delay_seconds
        .is_some_and(|seconds| seconds > 0 || failure.reason == "ServerTimeout");
    failure.reason == "InternalError"
        || (!is_known && failure.code == 500)
        || is_timeout(failure)
        || failure.reason == "TooManyRequests"
        || failure.code == 429
        || asks_for_delay
}

fn is_timeout(failure: &Failure) -> bool {
    let is_known = KNOWN_REASONS.contains(&failure.reason.as_str());
    failure.reason == "Timeout" || (!is_known && failure.code == 504)
}

/// The failure that a body tells of: a `Status` of version v1, or of none, that says `Failure`.
fn status_in(body: &str) -> Option<Failure> {
    if body.is_empty() {
        return None;
    }
    let document = document::parse(body).ok()?;
    let found = document_type(&document).ok()?;
    let is_status = found.kind == "Status"
        && found.group.is_empty()
        && matches!(found.version.as_str(), "" | "v1");
    if !is_status {
        return None;
    }
    let mut failure =
        Failure { reason: String::new(), code: 0, message: String::new(), delay_seconds: None };
    let mut status = String::new();
    let Node::Object(members) = document else { return None };
    for (name, value) in members {
        match (name.as_str(), value) {
            (_, Node::Null) => {}
            ("status", Node::Text(text)) => status = text,
            ("message", Node::Text(text)) => {
                excerpt(&text, MESSAGE_BYTES_MAX).clone_into(&mut failure.message);
            }
            ("reason", Node::Text(text)) => failure.reason = text,
            ("code", Node::Number(Some(code))) if i32::try_from(code).is_ok() => {
                failure.code = code;
            }
            ("details", Node::Object(details)) => {
                failure.delay_seconds = Some(delay_seconds(&details)?);
            }
            // A member of another type makes this no status at all.
            ("status" | "message" | "reason" | "code" | "details", _) => return None,
            (_, _) => {}
        }
    }
    (status == "Failure").then_some(failure)
}

fn delay_seconds(details: &[(String, Node)]) -> Option<i64> {
    let mut seconds = 0;
    for (name, value) in details {
        match (name.as_str(), value) {
            ("retryAfterSeconds", Node::Number(number)) => {
                seconds = number.filter(|number| i32::try_from(*number).is_ok())?;
            }
            ("retryAfterSeconds", Node::Null) => {}
            ("retryAfterSeconds", _) => return None,
            (_, _) => {}
        }
    }
    Some(seconds)
}

/// The failure that a status code alone means.
fn generic(reply: &Reply, is_text: bool) -> Failure {
    let code = reply.status;
    let code_alone = || {
        format!(
            "the server responded with the status code {code} but did not return more information"
        )
    };
    // Kubernetes repeats text here, and calls everything else unknown.
    let unsaid = || if is_text { code_alone() } else { "unknown".to_owned() };
    let (reason, message) = match code {
        400 => ("BadRequest", "the server rejected our request for an unknown reason".to_owned()),
        401 => {
            let message = "the server has asked for the client to provide credentials";
            ("Unauthorized", message.to_owned())
        }
        403 => ("Forbidden", unsaid()),
        404 => ("NotFound", "the server could not find the requested resource".to_owned()),
        405 => {
            let message = "the server does not allow this method on the requested resource";
            ("MethodNotAllowed", message.to_owned())
        }
        406 => {
            let message =
                "the server was unable to respond with a content type that the client supports";
            ("NotAcceptable", message.to_owned())
        }
        409 => ("AlreadyExists", "the server reported a conflict".to_owned()),
        415 => ("UnsupportedMediaType", unsaid()),
        422 => {
            ("Invalid", "the server rejected our request due to an error in our request".to_owned())
        }
        429 => {
            let message =
                "the server has received too many requests and has asked us to try again later";
            ("TooManyRequests", message.to_owned())
        }
        503 => (
            "ServiceUnavailable",
            "the server is currently unable to handle the request".to_owned(),
        ),
        504 => {
            let message = "the server was unable to return a response in the time allotted, but \
                           may still be processing the request";
            ("Timeout", message.to_owned())
        }
        500.. => {
            let message =
                "an error on the server (\"unknown\") has prevented the request from succeeding";
            ("InternalError", message.to_owned())
        }
        _ => ("", code_alone()),
    };
    let delay_seconds = Some(retry_after_seconds(reply).unwrap_or(0));
    Failure { reason: reason.to_owned(), code: i64::from(code), message, delay_seconds }
}

/// The beginning of a text of the service, as much as may be told.
pub(crate) fn excerpt(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
