//! The Status of a failure without what it quotes of the body that it is about.

use serde_json::Value;

use super::{REDACTED, Subject};

/// How the message about a body begins that can not be read at all. It ends with the first bytes of the body,
/// and whether those are a secret nobody knows.
const UNRECOGNIZED: &str = "the object provided is unrecognized";

/// Reasons of failures whose messages name objects and say nothing of what is in them.
const NAMING_REASONS: [&str; 14] = [
    "AlreadyExists",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
];

/// A Status without what it quotes: the bytes of a body that can not be read, whatever it was sent to, and for
/// a sensitive body every message but those that only name objects.
pub(crate) fn without_quotes(status: &Value, subject: Subject) -> Value {
    let mut status = status.clone();
    let text = |name: &str| status.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_unrecognized = text("message").starts_with(UNRECOGNIZED);
    let is_failure = text("status") == "Failure";
    let quotes =
        subject != Subject::Plain && is_failure && !NAMING_REASONS.contains(&text("reason"));
    let message = match (is_unrecognized, quotes) {
        (true, _) => format!("{UNRECOGNIZED}: {REDACTED}"),
        (false, true) => REDACTED.to_owned(),
        (false, false) => return status,
    };
    if let Value::Object(status) = &mut status {
        status.insert("message".to_owned(), message.into());
    }
    let causes = status.pointer_mut("/details/causes").and_then(Value::as_array_mut);
    for cause in causes.into_iter().flatten() {
        if let Some(message) = cause.get_mut("message") {
            *message = REDACTED.into();
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_status_quotes_of_a_secret_is_masked() {
        let status = |reason: &str, message: &str| {
            json!({"status": "Failure", "reason": reason, "message": message, "code": 400,
                "details": {"name": "db", "causes": [
                    {"reason": "FieldValueInvalid", "message": message, "field": "data[a]"}]}})
        };
        let unread = "the object provided is unrecognized (must be of type Secret): hunter";
        let cases = [
            (
                Subject::Data,
                "BadRequest",
                unread,
                "the object provided is unrecognized: [redacted]",
            ),
            (
                Subject::Plain,
                "BadRequest",
                unread,
                "the object provided is unrecognized: [redacted]",
            ),
            (Subject::Data, "BadRequest", "Secret in version: hunter", "[redacted]"),
            (Subject::Data, "Invalid", "Secret \"db\" is invalid: hunter", "[redacted]"),
            (Subject::Data, "InternalError", "hunter", "[redacted]"),
            (Subject::TokenReview, "BadRequest", "hunter", "[redacted]"),
            (Subject::TokenRequest, "Invalid", "hunter", "[redacted]"),
            (Subject::Data, "NotFound", "secrets \"db\" not found", "secrets \"db\" not found"),
            (Subject::Plain, "Invalid", "wrong", "wrong"),
        ];
        for (subject, reason, message, want) in cases {
            let masked = without_quotes(&status(reason, message), subject);
            assert_eq!(masked["message"], want, "{subject:?} {reason}");
            let is_kept = message == want;
            let cause = if is_kept { message } else { REDACTED };
            assert_eq!(masked["details"]["causes"][0]["message"], cause, "{subject:?} {reason}");
            assert_eq!(masked["details"]["causes"][0]["field"], "data[a]");
            assert_eq!(masked["details"]["name"], "db");
        }
    }
}
