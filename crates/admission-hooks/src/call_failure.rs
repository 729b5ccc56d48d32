//! Failures of hooks, to which failure policies apply.
//!
//! A tenant chooses the address of a hook, and any user whose request matches the hook reads the message.
//! So the message never contains a response body that is neither a review nor a `Status`: the body may be
//! that of a service that only this server can reach.

use https_client::{Fault, FaultKind};
use serde_json::Value;

use crate::hook_denial::HookStatus;

/// The longest part of the message of a `Status` that an error message contains.
const MESSAGE_BYTES_MAX: usize = 2048;
/// The longest part of an unexpected name that an error message contains.
pub(crate) const NAME_BYTES_MAX: usize = 256;

/// A failure of the hook, to which its failure policy applies.
///
/// INVARIANT: no limit, deadline, resource shortage or bug of this server becomes a `CallFailure`. Those
/// are [`CallError::ServerFault`](crate::hook_call::CallError::ServerFault).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CallFailure {
    /// The failed step and its error.
    pub(crate) message: String,
    /// The status code in the metrics.
    pub(crate) code: i32,
    pub(crate) failure_cause: HookFailureCause,
}

/// Why a failure policy let a request pass without its hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookFailureCause {
    /// The address could not be resolved or connected to.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The connection ended before the response was complete.
    ConnectionLost,
    /// The hook did not respond within its own `timeoutSeconds`.
    Timeout,
    /// The response has a status code other than 2xx.
    HttpStatus,
    /// The response is not a valid review, or is too long.
    BadAnswer,
    /// The hook cannot be called as it is configured.
    Configuration,
    /// A match condition failed, so that the hook was not called.
    MatchCondition,
}

impl HookFailureCause {
    /// All causes, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Connect,
        Self::Tls,
        Self::ConnectionLost,
        Self::Timeout,
        Self::HttpStatus,
        Self::BadAnswer,
        Self::Configuration,
        Self::MatchCondition,
    ];

    /// The name in metric labels and in the audit log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::ConnectionLost => "connection_lost",
            Self::Timeout => "timeout",
            Self::HttpStatus => "http_status",
            Self::BadAnswer => "bad_answer",
            Self::Configuration => "configuration",
            Self::MatchCondition => "match_condition",
        }
    }
}

impl CallFailure {
    fn new(step: &str, why: impl std::fmt::Display, code: i32, cause: HookFailureCause) -> Self {
        Self { message: format!("{step}: {why}"), code, failure_cause: cause }
    }

    /// No review can be encoded for the hook as it is configured.
    pub(crate) fn unbuildable_review(why: impl std::fmt::Display) -> Self {
        Self::new("could not create admission objects", why, 400, HookFailureCause::Configuration)
    }

    /// The exchange failed. `None` if the hook did not cause that.
    pub(crate) fn from_transport_fault(fault: &Fault) -> Option<Self> {
        let cause = match fault.kind {
            // The hook was not called, so its failure policy does not apply.
            FaultKind::Local | FaultKind::AddressRefused => return None,
            FaultKind::Refused | FaultKind::Dns | FaultKind::Connect => HookFailureCause::Connect,
            FaultKind::Tls => HookFailureCause::Tls,
            FaultKind::Timeout => HookFailureCause::Timeout,
            FaultKind::TooLarge => HookFailureCause::BadAnswer,
            FaultKind::Reset | FaultKind::Eof | FaultKind::Other => {
                HookFailureCause::ConnectionLost
            }
        };
        Some(Self::new("failed to call webhook", fault, 503, cause))
    }

    /// The response cannot be decoded.
    pub(crate) fn unreadable_response(why: impl std::fmt::Display) -> Self {
        Self::new("failed to call webhook", why, 503, HookFailureCause::BadAnswer)
    }

    /// The response has an error status.
    fn from_http_status(why: impl std::fmt::Display, code: i32) -> Self {
        Self::new("failed to call webhook", why, code, HookFailureCause::HttpStatus)
    }

    /// The response is a review that breaks the rules of its version.
    pub(crate) fn invalid_response(why: impl std::fmt::Display) -> Self {
        let step = "received invalid webhook response";
        Self::new(step, why, 503, HookFailureCause::BadAnswer)
    }

    /// The patch cannot be decoded.
    pub(crate) fn invalid_patch(why: impl std::fmt::Display) -> Self {
        let step = "received undecodable patch in webhook response";
        Self::new(step, why, 503, HookFailureCause::BadAnswer)
    }
}

/// The failure of a response with an error status. A `Status` in its body overrides the status code.
pub(crate) fn failure_from_http_reply(code: u16, is_text: bool, body: &[u8]) -> CallFailure {
    match parse_status(body) {
        Some(status) => failure_from_status(status),
        None => CallFailure::from_http_status(client_go_error_text(code, is_text), code.into()),
    }
}

/// The failure of a response that is a `Status` instead of a review.
pub(crate) fn failure_from_status(status: HookStatus) -> CallFailure {
    let code = status.code.unwrap_or_default();
    let message = status.message.unwrap_or_default();
    CallFailure::from_http_status(truncate_text(&message, MESSAGE_BYTES_MAX), code)
}

fn parse_status(body: &[u8]) -> Option<HookStatus> {
    let document = Value::Object(serde_json::from_slice(body).ok()?);
    let member = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_status = member("kind") == "Status" && matches!(member("apiVersion"), "" | "v1");
    if !is_status || member("status") != "Failure" {
        return None;
    }
    serde_json::from_value(document).ok()
}

/// The beginning of a text of a hook, cut to a number of bytes.
pub(crate) fn truncate_text(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}

/// The message of Kubernetes' client for a status code without a body. That client quotes bodies that are
/// text, which this server does not, and calls all others unknown.
fn client_go_error_text(code: u16, is_text: bool) -> String {
    let fixed = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 if !is_text => "unknown",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 => "the server was unable to respond with a content type that the client supports",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
        }
        500.. => "an error on the server (\"unknown\") has prevented the request from succeeding",
        _ => {
            return format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            );
        }
    };
    fixed.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_in_the_body_tells_more_than_the_code() {
        let status =
            br#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m","code":409}"#;
        let failure = failure_from_http_reply(500, false, status);
        assert_eq!((failure.message.as_str(), failure.code), ("failed to call webhook: m", 409));
        let success = br#"{"kind":"Status","apiVersion":"v1","status":"Success","message":"m"}"#;
        for (code, is_text, body, want) in [
            (
                500,
                true,
                &b" boom\n"[..],
                "an error on the server (\"unknown\") has prevented the request from succeeding",
            ),
            (
                500,
                false,
                success,
                "an error on the server (\"unknown\") has prevented the request from succeeding",
            ),
            (403, false, b"{}", "unknown"),
            (
                403,
                true,
                b"go away",
                "the server responded with the status code 403 but did not return more information",
            ),
            (
                302,
                true,
                b"",
                "the server responded with the status code 302 but did not return more information",
            ),
        ] {
            let failure = failure_from_http_reply(code, is_text, body);
            assert_eq!(failure.message, format!("failed to call webhook: {want}"));
            assert_eq!(failure.code, i32::from(code));
        }
    }
}
