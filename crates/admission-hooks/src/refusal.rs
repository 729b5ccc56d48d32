//! The refusal of a request by a hook, or because of one.

use api_object::{Cause, Details, ForeignStatus, Status};
use serde::{Deserialize, Serialize, Serializer};

use crate::lenient_json;

/// The lowest HTTP status code of an error.
const CODE_MIN: i32 = 400;
/// The highest HTTP status code.
const CODE_MAX: i32 = 599;

/// The refusal of a request: a `Status` whose reason may be any text, because a hook may choose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status code, at least 400. A hook may choose one that HTTP does not have, see
    /// [`Refusal::http_code`].
    pub code: i32,
    /// `Failure`, unless a hook chose another text.
    pub status: String,
    /// The machine-readable reason; may be empty.
    pub reason: String,
    /// The message for people.
    pub message: String,
    /// The object and the causes of the refusal.
    pub details: Option<Box<Details>>,
}

impl Refusal {
    /// The deadline of the request has passed.
    pub(crate) fn deadline_exceeded() -> Self {
        Self {
            message: "Timeout: request did not complete within requested timeout".to_owned(),
            details: Some(Box::default()),
            ..Status::timeout().into()
        }
    }

    /// A hook denied the request. The message names the hook; the status code is at least 400.
    pub(crate) fn denied_by(hook: &str, status: Option<HookStatus>) -> Self {
        let hook_status = status.unwrap_or_default();
        let denied = format!("admission webhook {} denied the request", go_compat::quote(hook));
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
        let code = hook_status.code.unwrap_or_default();
        Self {
            code: if code < CODE_MIN { CODE_MIN } else { code },
            status,
            reason,
            message,
            details: hook_status.details.map(|details| Box::new(details.into())),
        }
    }

    /// The status code of the HTTP response: that of the hook if HTTP has it, otherwise 500.
    #[must_use]
    pub fn http_code(&self) -> u16 {
        let known = Some(self.code).filter(|code| (CODE_MIN..=CODE_MAX).contains(code));
        known.and_then(|code| u16::try_from(code).ok()).unwrap_or(500)
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self {
            code: i32::from(status.code),
            status: "Failure".to_owned(),
            reason: status.reason.into_owned(),
            message: status.message,
            details: status.details,
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let code = refusal.http_code();
        let foreign = ForeignStatus { status: refusal.status, code: refusal.code };
        Self {
            code,
            reason: refusal.reason.into(),
            message: refusal.message,
            details: refusal.details,
            continue_token: String::new(),
            foreign: Some(Box::new(foreign)),
        }
    }
}

/// Serializes the refusal as the `Status` in the response body.
impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct StatusBody<'a> {
            kind: &'static str,
            api_version: &'static str,
            metadata: Empty,
            status: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            message: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            reason: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            details: Option<&'a Details>,
            code: i32,
        }
        #[derive(Serialize)]
        struct Empty {}
        let body = StatusBody {
            kind: "Status",
            api_version: "v1",
            metadata: Empty {},
            status: &self.status,
            message: &self.message,
            reason: &self.reason,
            details: self.details.as_deref(),
            code: self.code,
        };
        body.serialize(serializer)
    }
}

/// A `Status` in the response of a hook. A null member counts as absent.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct HookStatus {
    pub(crate) status: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) code: Option<i32>,
    #[serde(default, deserialize_with = "lenient_json::object_or_null")]
    details: Option<HookDetails>,
}

/// The limit on the causes of a hook that the client gets; one more says how many were omitted.
const CAUSES_MAX: usize = 100;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HookDetails {
    name: Option<String>,
    group: Option<String>,
    kind: Option<String>,
    uid: Option<String>,
    #[serde(default, deserialize_with = "lenient_json::objects_or_null")]
    causes: Vec<HookCause>,
    retry_after_seconds: Option<i32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct HookCause {
    reason: Option<String>,
    message: Option<String>,
    field: Option<String>,
}

impl From<HookDetails> for Details {
    fn from(details: HookDetails) -> Self {
        let n_left_out = details.causes.len().saturating_sub(CAUSES_MAX);
        let causes = details.causes.into_iter().take(CAUSES_MAX).map(|cause| Cause {
            reason: cause.reason.unwrap_or_default(),
            message: cause.message.unwrap_or_default(),
            field: cause.field.unwrap_or_default(),
        });
        let rest = (n_left_out > 0).then(|| Cause {
            message: format!("and {n_left_out} more errors"),
            ..Cause::default()
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

    fn denial(told: Value) -> Refusal {
        Refusal::denied_by("h.x.y", serde_json::from_value(told).unwrap())
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
        // A status code that HTTP does not have stays in the body.
        let odd = denial(json!({ "code": 70_000 }));
        assert_eq!((odd.code, odd.http_code()), (70_000, 500));
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
        let refusal = denial(json!({"reason": "Odd", "details": details, "code": 422}));
        let want = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "admission webhook \"h.x.y\" denied the request: Odd", "reason": "Odd",
            "details": details, "code": 422,
        });
        assert_eq!(serde_json::to_value(&refusal).unwrap(), want);
    }

    #[test]
    fn a_status_says_the_same() {
        for told in [
            json!({"code": 403, "reason": "Odd"}),
            json!({"code": 70_000}),
            json!({"status": "custom", "details": {"causes": [{"message": "m"}]}}),
        ] {
            let refusal = denial(told);
            let status = Status::from(refusal.clone());
            assert_eq!(status.code, refusal.http_code());
            let (status, refusal) = (serde_json::to_value(status), serde_json::to_value(refusal));
            assert_eq!(status.unwrap(), refusal.unwrap());
        }
    }
}
