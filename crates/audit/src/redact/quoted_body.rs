//! Removes quotes of request bodies from the Status of a failed request.

use serde_json::Value;

use super::webhook_url_redaction::redact_urls_in_text;
use super::{BodySensitivity, REDACTED};

/// The beginning of the message about a body that cannot be decoded. The message ends with the first bytes of the
/// body, which may be secret.
const UNRECOGNIZED: &str = "the object provided is unrecognized";

/// Reasons of failures whose messages name objects and do not quote their contents.
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

/// Redacts a Status: the quoted bytes of a body that cannot be decoded, for every resource, and for a sensitive body
/// all messages except for those that only name objects.
pub(crate) fn redact_quoted_body(status: &Value, sensitivity: BodySensitivity) -> Value {
    let mut status = match sensitivity {
        BodySensitivity::WebhookUrls => redact_urls_in_messages(status),
        BodySensitivity::Plain
        | BodySensitivity::SecretData
        | BodySensitivity::TokenReview
        | BodySensitivity::TokenRequest => status.clone(),
    };
    let text = |name: &str| status.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_unrecognized = text("message").starts_with(UNRECOGNIZED);
    let is_failure = text("status") == "Failure";
    let quotes = !matches!(sensitivity, BodySensitivity::Plain | BodySensitivity::WebhookUrls)
        && is_failure
        && !NAMING_REASONS.contains(&text("reason"));
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

/// Redacts the URLs in the messages of a Status.
fn redact_urls_in_messages(status: &Value) -> Value {
    let mut status = status.clone();
    let redact_message = |part: &mut Value| {
        if let Some(Value::String(message)) = part.get_mut("message") {
            *message = redact_urls_in_text(message);
        }
    };
    redact_message(&mut status);
    let causes = status.pointer_mut("/details/causes").and_then(Value::as_array_mut);
    causes.into_iter().flatten().for_each(redact_message);
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
                BodySensitivity::SecretData,
                "BadRequest",
                unread,
                "the object provided is unrecognized: [redacted]",
            ),
            (
                BodySensitivity::Plain,
                "BadRequest",
                unread,
                "the object provided is unrecognized: [redacted]",
            ),
            (BodySensitivity::SecretData, "BadRequest", "Secret in version: hunter", "[redacted]"),
            (
                BodySensitivity::SecretData,
                "Invalid",
                "Secret \"db\" is invalid: hunter",
                "[redacted]",
            ),
            (BodySensitivity::SecretData, "InternalError", "hunter", "[redacted]"),
            (BodySensitivity::TokenReview, "BadRequest", "hunter", "[redacted]"),
            (BodySensitivity::TokenRequest, "Invalid", "hunter", "[redacted]"),
            (
                BodySensitivity::SecretData,
                "NotFound",
                "secrets \"db\" not found",
                "secrets \"db\" not found",
            ),
            (BodySensitivity::Plain, "Invalid", "wrong", "wrong"),
            (BodySensitivity::WebhookUrls, "Invalid", "wrong", "wrong"),
        ];
        for (sensitivity, reason, message, want) in cases {
            let masked = redact_quoted_body(&status(reason, message), sensitivity);
            assert_eq!(masked["message"], want, "{sensitivity:?} {reason}");
            let is_kept = message == want;
            let cause = if is_kept { message } else { REDACTED };
            assert_eq!(
                masked["details"]["causes"][0]["message"], cause,
                "{sensitivity:?} {reason}"
            );
            assert_eq!(masked["details"]["causes"][0]["field"], "data[a]");
            assert_eq!(masked["details"]["name"], "db");
        }
    }
}
