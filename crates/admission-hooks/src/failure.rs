//! Calls that fail (admission §4.13, class C).
//!
//! A tenant writes where a hook is, and any user whose request matches reads the message. So a body that
//! is neither a review nor a `Status` is not repeated: it may be that of a service that only this server
//! can reach.

use https_client::{Fault, FaultKind};
use serde_json::Value;

use crate::refusal::HookStatus;

/// How much of the message of a `Status` is told.
const MESSAGE_BYTES_MAX: usize = 2048;
/// How much is told of a name that an answer has in the wrong place.
pub(crate) const NAME_BYTES_MAX: usize = 256;

/// A call that failed on the far side. The failure policy decides what that means.
///
/// INVARIANT: nothing that happens on this side is one: no limit, no deadline of a caller, no lack of
/// descriptors, no fault of ours. Those are [`Trouble::Local`](crate::call::Trouble::Local).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CallFailure {
    /// What happened, beginning with the step that failed.
    pub(crate) message: String,
    /// What is counted.
    pub(crate) code: i32,
    pub(crate) cause: FailOpenCause,
}

/// The reason why a failure policy let a request pass without its hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailOpenCause {
    /// There was no connection, or nobody to connect to.
    Connect,
    /// There was no TLS connection.
    Tls,
    /// The connection ended before the answer did.
    ConnectionLost,
    /// The hook did not answer within its own `timeoutSeconds`.
    Timeout,
    /// The answer has a status code that is no success.
    HttpStatus,
    /// The answer is not a valid review, or longer than permitted.
    BadAnswer,
    /// The configuration of the hook does not allow to call it.
    Configuration,
    /// A match condition could not be evaluated, so that the hook was not called.
    MatchCondition,
}

impl FailOpenCause {
    /// All of them, in the order in which they are documented.
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

    /// A name for labels and for the audit log.
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
    fn new(step: &str, why: impl std::fmt::Display, code: i32, cause: FailOpenCause) -> Self {
        Self { message: format!("{step}: {why}"), code, cause }
    }

    /// The hook is configured so that no question can be put to it.
    pub(crate) fn no_question(why: impl std::fmt::Display) -> Self {
        Self::new("could not create admission objects", why, 400, FailOpenCause::Configuration)
    }

    /// There is no answer. `None` if that is not due to the hook.
    pub(crate) fn of_fault(fault: &Fault) -> Option<Self> {
        let cause = match fault.kind {
            // Nobody was asked: the failure policy is about hooks that were.
            FaultKind::Local | FaultKind::AddressRefused => return None,
            FaultKind::Refused | FaultKind::Dns | FaultKind::Connect => FailOpenCause::Connect,
            FaultKind::Tls => FailOpenCause::Tls,
            FaultKind::Timeout => FailOpenCause::Timeout,
            FaultKind::TooLarge => FailOpenCause::BadAnswer,
            FaultKind::Reset | FaultKind::Eof | FaultKind::Other => FailOpenCause::ConnectionLost,
        };
        Some(Self::new("failed to call webhook", fault, 503, cause))
    }

    /// There is no answer that could be read.
    pub(crate) fn no_answer(why: impl std::fmt::Display) -> Self {
        Self::new("failed to call webhook", why, 503, FailOpenCause::BadAnswer)
    }

    /// The answer says that it is none.
    fn of_code(why: impl std::fmt::Display, code: i32) -> Self {
        Self::new("failed to call webhook", why, code, FailOpenCause::HttpStatus)
    }

    /// The answer breaks the rules.
    pub(crate) fn bad_answer(why: impl std::fmt::Display) -> Self {
        let step = "received invalid webhook response";
        Self::new(step, why, 503, FailOpenCause::BadAnswer)
    }

    /// The patch can not be read.
    pub(crate) fn bad_patch(why: impl std::fmt::Display) -> Self {
        let step = "received undecodable patch in webhook response";
        Self::new(step, why, 503, FailOpenCause::BadAnswer)
    }

    /// The whole message for a client.
    pub(crate) fn text(&self, hook: &str) -> String {
        format!("failed calling webhook {}: {self}", go_compat::quote(hook))
    }
}

/// What an answer outside of success means: a `Status` in its body tells more than its code.
pub(crate) fn of_reply(code: u16, is_text: bool, body: &[u8]) -> CallFailure {
    match told_status(body) {
        Some(told) => of_status(told),
        None => CallFailure::of_code(words(code, is_text), code.into()),
    }
}

/// What a `Status` in the place of a review means.
pub(crate) fn of_status(told: HookStatus) -> CallFailure {
    let code = told.code.unwrap_or_default();
    let message = told.message.unwrap_or_default();
    CallFailure::of_code(excerpt(&message, MESSAGE_BYTES_MAX), code)
}

fn told_status(body: &[u8]) -> Option<HookStatus> {
    let document = Value::Object(serde_json::from_slice(body).ok()?);
    let member = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_status = member("kind") == "Status" && matches!(member("apiVersion"), "" | "v1");
    if !is_status || member("status") != "Failure" {
        return None;
    }
    serde_json::from_value(document).ok()
}

/// The beginning of a text of a hook, as much as may be told.
pub(crate) fn excerpt(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}

/// The words of Kubernetes' client for a code, where it repeats no body. It repeats those that are text,
/// and calls all others unknown.
fn words(code: u16, is_text: bool) -> String {
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
        let failure = of_reply(500, false, status);
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
            let failure = of_reply(code, is_text, body);
            assert_eq!(failure.message, format!("failed to call webhook: {want}"));
            assert_eq!(failure.code, i32::from(code));
        }
    }
}
