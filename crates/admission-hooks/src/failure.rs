//! Calls that fail (admission §4.13, class C).

use serde_json::Value;

use crate::refusal::HookStatus;

/// How much of a body that is text goes into a message.
const TEXT_BYTES_MAX: usize = 2048;

/// A call that failed. What that means is up to the failure policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub(crate) struct CallFailure {
    /// Why, beginning with the step that failed.
    pub(crate) cause: String,
    /// What is counted.
    pub(crate) code: i32,
}

impl CallFailure {
    /// Nobody could be called.
    pub(crate) fn no_client(cause: impl std::fmt::Display) -> Self {
        Self { cause: format!("could not get REST client: {cause}"), code: 500 }
    }

    /// The question could not be put.
    pub(crate) fn no_question(cause: impl std::fmt::Display) -> Self {
        Self { cause: format!("could not create admission objects: {cause}"), code: 400 }
    }

    /// There is no answer that could be read.
    pub(crate) fn no_answer(cause: impl std::fmt::Display) -> Self {
        Self { cause: format!("failed to call webhook: {cause}"), code: 503 }
    }

    /// The same with another code.
    pub(crate) fn with_code(self, code: i32) -> Self {
        Self { code, ..self }
    }

    /// The answer breaks the rules.
    pub(crate) fn bad_answer(cause: impl std::fmt::Display) -> Self {
        Self { cause: format!("received invalid webhook response: {cause}"), code: 503 }
    }

    /// The patch can not be read.
    pub(crate) fn bad_patch(cause: impl std::fmt::Display) -> Self {
        Self {
            cause: format!("received undecodable patch in webhook response: {cause}"),
            code: 503,
        }
    }

    /// The whole message for a client.
    pub(crate) fn message(&self, hook: &str) -> String {
        format!("failed calling webhook {}: {}", gotext::quote(hook), self.cause)
    }
}

/// What an answer outside of success means: a `Status` in its body tells more than its code.
pub(crate) fn of_reply(code: u16, is_text: bool, body: &[u8]) -> CallFailure {
    match told_status(body) {
        Some(told) => of_status(told),
        None => CallFailure::no_answer(words(code, is_text, body)).with_code(code.into()),
    }
}

/// What a `Status` in the place of a review means.
pub(crate) fn of_status(told: HookStatus) -> CallFailure {
    let code = told.code.unwrap_or_default();
    CallFailure::no_answer(told.message.unwrap_or_default()).with_code(code)
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

/// The words of Kubernetes' client for a code. It quotes only bodies that are text.
fn words(code: u16, is_text: bool, body: &[u8]) -> String {
    let said = body.get(..TEXT_BYTES_MAX).unwrap_or(body);
    let said = if is_text { said.trim_ascii() } else { b"unknown" };
    let said_text = || String::from_utf8_lossy(said).into_owned();
    let fixed = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => return said_text(),
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if said.is_empty() || said == b"unknown" => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => return said_text(),
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
        }
        500.. => {
            let said = gotext::quote_bytes(said);
            return format!(
                "an error on the server ({said}) has prevented the request from succeeding"
            );
        }
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
        assert_eq!((failure.cause.as_str(), failure.code), ("failed to call webhook: m", 409));
        let success = br#"{"kind":"Status","apiVersion":"v1","status":"Success","message":"m"}"#;
        for (code, is_text, body, want) in [
            (
                500,
                true,
                &b" boom\n"[..],
                "an error on the server (\"boom\") has prevented the request from succeeding",
            ),
            (
                500,
                false,
                success,
                "an error on the server (\"unknown\") has prevented the request from succeeding",
            ),
            (403, true, b"go away", "go away"),
            (
                302,
                true,
                b"",
                "the server responded with the status code 302 but did not return more information",
            ),
        ] {
            let failure = of_reply(code, is_text, body);
            assert_eq!(failure.cause, format!("failed to call webhook: {want}"));
            assert_eq!(failure.code, i32::from(code));
        }
    }
}
