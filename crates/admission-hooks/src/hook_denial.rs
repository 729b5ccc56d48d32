//! The denial of a request by a hook, with the `Status` that the hook sent.

use api_object::{Details, StatusCause};
use serde::Deserialize;

use crate::deserialize_objects;

/// The lowest status code of a denial. A hook that names a lower one, such as that of a redirect, gets this one.
const CODE_MIN: i32 = 400;

/// The denial of a request by a hook. Apart from the limits here, the hook chooses all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookDenial {
    /// The status code, at least 400. HTTP need not have it.
    pub code: i32,
    /// `Failure`, unless the hook chose another text.
    pub status: String,
    /// The machine-readable reason; may be empty.
    pub reason: String,
    /// The message for people, which names the hook.
    pub message: String,
    /// The object and the causes of the denial.
    pub details: Option<Box<Details>>,
}

impl HookDenial {
    pub(crate) fn new(webhook: &str, status: Option<HookStatus>) -> Self {
        let hook_status = status.unwrap_or_default();
        let denied = format!("admission webhook {} denied the request", go_compat::quote(webhook));
        let reason = hook_status.reason.unwrap_or_default();
        let message = match (hook_status.message.unwrap_or_default().as_str(), reason.as_str()) {
            ("", "") => format!("{denied} without explanation"),
            ("", reason) => format!("{denied}: {reason}"),
            (message, _) => format!("{denied}: {message}"),
        };
        let status = match hook_status.status.unwrap_or_default() {
            word if word.is_empty() || word == "Success" => "Failure".to_owned(),
            word => word,
        };
        Self {
            code: hook_status.code.unwrap_or_default().max(CODE_MIN),
            status,
            reason,
            message,
            details: hook_status.details.map(|details| Box::new(details.into())),
        }
    }
}

/// A `Status` in the response of a hook. A null member counts as absent.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct HookStatus {
    pub(crate) status: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) code: Option<i32>,
    #[serde(default, deserialize_with = "deserialize_objects::deserialize_object_or_null")]
    details: Option<HookStatusDetails>,
}

/// The limit on the causes of a hook that the client gets; one more says how many were omitted.
const CAUSES_MAX: usize = 100;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HookStatusDetails {
    name: Option<String>,
    group: Option<String>,
    kind: Option<String>,
    uid: Option<String>,
    #[serde(default, deserialize_with = "deserialize_objects::deserialize_objects_or_null")]
    causes: Vec<HookStatusCause>,
    retry_after_seconds: Option<i32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct HookStatusCause {
    reason: Option<String>,
    message: Option<String>,
    field: Option<String>,
}

impl From<HookStatusDetails> for Details {
    fn from(details: HookStatusDetails) -> Self {
        let n_left_out = details.causes.len().saturating_sub(CAUSES_MAX);
        let causes = details.causes.into_iter().take(CAUSES_MAX).map(|cause| StatusCause {
            reason: cause.reason.unwrap_or_default(),
            message: cause.message.unwrap_or_default(),
            field: cause.field.unwrap_or_default(),
        });
        let rest = (n_left_out > 0).then(|| StatusCause {
            message: format!("and {n_left_out} more errors"),
            ..StatusCause::default()
        });
        let retry_after_seconds = details.retry_after_seconds.unwrap_or_default();
        Self {
            name: details.name.unwrap_or_default(),
            group: details.group.unwrap_or_default(),
            kind: details.kind.unwrap_or_default(),
            uid: details.uid.unwrap_or_default(),
            causes: causes.chain(rest).collect(),
            retry_after_seconds: u32::try_from(retry_after_seconds).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn denial(told: Value) -> HookDenial {
        HookDenial::new("h.x.y", serde_json::from_value(told).unwrap())
    }

    #[test]
    fn causes_past_the_limit_are_counted() {
        for (n_told, n_want) in [(CAUSES_MAX, CAUSES_MAX), (150_000, CAUSES_MAX + 1)] {
            let told = vec![json!({"message": "m"}); n_told];
            let details = denial(json!({"details": {"causes": told}})).details.unwrap();
            assert_eq!(details.causes.len(), n_want);
            let last = &details.causes.last().unwrap().message;
            assert_eq!(last, if n_told == n_want { "m" } else { "and 149900 more errors" });
        }
    }

    /// L4: a hook that denies with the status code of a redirect does not redirect the client.
    #[test]
    fn denials_have_a_code_of_a_failure() {
        for (told, want) in [(200, 400), (399, 400), (400, 400), (401, 401), (500, 500), (-1, 400)]
        {
            assert_eq!(denial(json!({ "code": told })).code, want);
        }
    }

    #[test]
    fn denials_say_who_denies_and_why() {
        for (told, want) in [
            (json!(null), r#"admission webhook "h.x.y" denied the request without explanation"#),
            (
                json!({"reason": "Forbidden"}),
                r#"admission webhook "h.x.y" denied the request: Forbidden"#,
            ),
            (
                json!({"reason": "Forbidden", "message": "no", "code": 403}),
                r#"admission webhook "h.x.y" denied the request: no"#,
            ),
        ] {
            assert_eq!(denial(told).message, want);
        }
        for (told, want) in [("", "Failure"), ("Success", "Failure"), ("custom", "custom")] {
            assert_eq!(denial(json!({ "status": told })).status, want);
        }
    }

    #[test]
    fn details_pass_through() {
        let details = json!({
            "name": "n", "group": "g", "kind": "k", "uid": "u", "retryAfterSeconds": 3,
            "causes": [{"reason": "r", "message": "m", "field": "f"}],
        });
        let denial = denial(json!({"reason": "Odd", "details": details, "code": 422}));
        assert_eq!((denial.code, denial.reason.as_str()), (422, "Odd"));
        assert_eq!(serde_json::to_value(denial.details).unwrap(), details);
    }
}
