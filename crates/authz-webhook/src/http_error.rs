//! The error for an HTTP response that is not a success, and whether another attempt may succeed.
//!
//! The messages and the rules are those of Kubernetes' client: the reason of a `Status` in the body takes precedence
//! over the status code. A body that is not a `Status` is not repeated: the message reaches users who create access
//! reviews, and the body may be that of a service that they cannot reach themselves.

use field_errors::truncate_to_bytes;

use crate::call_error::{CallError, RetryAdvice};
use crate::decode_response::read_kind_and_version;
use crate::response_document::{self, DocumentValue};
use crate::transport::HttpResponse;

/// The longest message of a `Status` that is repeated, in bytes.
const MESSAGE_BYTES_MAX: usize = 2048;

/// An error response, from the status code or from a `Status` in the body.
struct StatusFailure {
    reason: String,
    code: i64,
    message: String,
    /// The delay that the service asks for, if the error has details.
    retry_delay_seconds: Option<i64>,
}

/// The error for a response with a status code that is not a success.
pub(crate) fn error_from_response(reply: &HttpResponse, is_text: bool, body: &str) -> CallError {
    let failure = parse_status_failure(body);
    to_call_error(reply.status, failure.unwrap_or_else(|| failure_for_status_code(reply, is_text)))
}

/// The error for an invalid content type, whatever the status code.
pub(crate) fn invalid_content_type_error(status: u16, fault: &str) -> CallError {
    let failure = StatusFailure {
        reason: "InternalError".to_owned(),
        code: 500,
        message: format!("Internal error occurred: {fault}"),
        retry_delay_seconds: None,
    };
    to_call_error(status, failure)
}

fn to_call_error(status: u16, failure: StatusFailure) -> CallError {
    let retry_advice = if is_retriable(&failure) { RetryAdvice::Later } else { RetryAdvice::Never };
    let is_timeout = status == 504 || is_timeout(&failure);
    CallError::Response { status, retry_advice, is_timeout, message: failure.message.into() }
}

/// The integer in the header `Retry-After`; `None` if it is not an integer.
pub(crate) fn retry_after_seconds(reply: &HttpResponse) -> Option<i64> {
    reply.retry_after.as_deref()?.parse().ok()
}

/// The reasons that Kubernetes defines. If a `Status` has one of them, its status code is ignored.
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

fn is_retriable(failure: &StatusFailure) -> bool {
    let is_kubernetes_kind = KNOWN_REASONS.contains(&failure.reason.as_str());
    let asks_for_delay = failure
        .retry_delay_seconds
        .is_some_and(|seconds| seconds > 0 || failure.reason == "ServerTimeout");
    failure.reason == "InternalError"
        || (!is_kubernetes_kind && failure.code == 500)
        || is_timeout(failure)
        || failure.reason == "TooManyRequests"
        || failure.code == 429
        || asks_for_delay
}

fn is_timeout(failure: &StatusFailure) -> bool {
    let is_kubernetes_kind = KNOWN_REASONS.contains(&failure.reason.as_str());
    failure.reason == "Timeout" || (!is_kubernetes_kind && failure.code == 504)
}

/// The failure in a body that is a `Status` of version v1 or of no version, with status `Failure`.
fn parse_status_failure(body: &str) -> Option<StatusFailure> {
    if body.is_empty() {
        return None;
    }
    let document = response_document::parse_response_document(body).ok()?;
    let found = read_kind_and_version(&document).ok()?;
    let is_status = found.kind == "Status"
        && found.group.is_empty()
        && matches!(found.version.as_str(), "" | "v1");
    if !is_status {
        return None;
    }
    let mut failure = StatusFailure {
        reason: String::new(),
        code: 0,
        message: String::new(),
        retry_delay_seconds: None,
    };
    let mut status = String::new();
    let DocumentValue::Object(members) = document else { return None };
    for (name, value) in members {
        match (name.as_str(), value) {
            (_, DocumentValue::Null) => {}
            ("status", DocumentValue::Text(text)) => status = text,
            ("message", DocumentValue::Text(text)) => {
                truncate_to_bytes(&text, MESSAGE_BYTES_MAX).clone_into(&mut failure.message);
            }
            ("reason", DocumentValue::Text(text)) => failure.reason = text,
            ("code", DocumentValue::Number(Some(code))) if i32::try_from(code).is_ok() => {
                failure.code = code;
            }
            ("details", DocumentValue::Object(details)) => {
                failure.retry_delay_seconds = Some(retry_delay_seconds(&details)?);
            }
            // With a member of another type the body is not a Status.
            ("status" | "message" | "reason" | "code" | "details", _) => return None,
            (_, _) => {}
        }
    }
    (status == "Failure").then_some(failure)
}

fn retry_delay_seconds(details: &[(String, DocumentValue)]) -> Option<i64> {
    let mut seconds = 0;
    for (name, value) in details {
        match (name.as_str(), value) {
            ("retryAfterSeconds", DocumentValue::Number(number)) => {
                seconds = number.filter(|number| i32::try_from(*number).is_ok())?;
            }
            ("retryAfterSeconds", DocumentValue::Null) => {}
            ("retryAfterSeconds", _) => return None,
            (_, _) => {}
        }
    }
    Some(seconds)
}

/// The failure for a status code without a `Status` in the body.
fn failure_for_status_code(reply: &HttpResponse, is_text: bool) -> StatusFailure {
    let code = reply.status;
    let code_alone = || {
        format!(
            "the server responded with the status code {code} but did not return more information"
        )
    };
    // Kubernetes repeats text here, and says "unknown" for other content types.
    let without_body = || if is_text { code_alone() } else { "unknown".to_owned() };
    let (reason, message) = match code {
        400 => ("BadRequest", "the server rejected our request for an unknown reason".to_owned()),
        401 => {
            let message = "the server has asked for the client to provide credentials";
            ("Unauthorized", message.to_owned())
        }
        403 => ("Forbidden", without_body()),
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
        415 => ("UnsupportedMediaType", without_body()),
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
    let retry_delay_seconds = Some(retry_after_seconds(reply).unwrap_or(0));
    StatusFailure { reason: reason.to_owned(), code: i64::from(code), message, retry_delay_seconds }
}

#[cfg(test)]
mod tests;
