//! The `Status` of requests that admission webhooks deny or that fail while they are called.

use admission_hooks::HookRefusal;
use api_object::{Details, Status, WebhookStatus};

use super::IntoStatus;

/// The `retryAfterSeconds` of a request for which this server could not call a webhook.
const RETRY_AFTER_SECONDS: u32 = 1;

/// The HTTP status codes of failures.
const FAILURE_CODES: std::ops::RangeInclusive<i32> = 400..=599;

impl IntoStatus for HookRefusal {
    /// Every refusal at a hook is marked as foreign: a step of this server that ignores its own 404 or 409 must not
    /// ignore one that comes from a hook or from its configuration.
    fn into_status(self) -> Status {
        let message = self.to_string();
        let status = match self {
            Self::Denied(denial) => {
                let known_code = Some(denial.code).filter(|code| FAILURE_CODES.contains(code));
                let code = known_code.and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
                let foreign = WebhookStatus { status: denial.status, code: denial.code };
                return Status {
                    code,
                    reason: denial.reason.into(),
                    message: denial.message,
                    details: denial.details,
                    continue_token: String::new(),
                    webhook_status: Some(Box::new(foreign)),
                };
            }
            Self::FailedClosed { webhook, failure } => {
                Status::internal_error(&admission_hooks::call_failure_message(&webhook, &failure))
            }
            Self::DryRunUnsupported { .. } => Status::bad_request(message),
            Self::DeadlineExceeded => {
                Status { message, details: Some(Box::default()), ..Status::timeout() }
            }
            Self::CallUnavailable { is_temporary, .. } => {
                let details =
                    Details { retry_after_seconds: RETRY_AFTER_SECONDS, ..Details::default() };
                let details = is_temporary.then(|| Box::new(details));
                Status { details, ..Status::service_unavailable(message) }
            }
            Self::TooManyCalls { webhook, busy } => {
                let why = admission_hooks::call_failure_message(&webhook, &busy);
                Status::too_many_requests(&why, RETRY_AFTER_SECONDS)
            }
            Self::ShuttingDown => Status::service_unavailable(message),
            Self::Internal(why) => Status::internal_error(&why),
            Self::Undecided(why) => Status::authorization_undecided(why),
            Self::Selection(error) => error.into_status(),
        };
        let foreign = WebhookStatus { status: "Failure".to_owned(), code: i32::from(status.code) };
        Status { webhook_status: Some(Box::new(foreign)), ..status }
    }
}

#[cfg(test)]
mod tests {
    use admission_hooks::HookDenial;
    use serde_json::json;

    use super::*;

    fn denial(code: i32) -> HookDenial {
        HookDenial {
            code,
            status: "custom".to_owned(),
            reason: "Odd".to_owned(),
            message: "m".to_owned(),
            details: None,
        }
    }

    #[test]
    fn a_denial_keeps_what_the_hook_said() {
        let status = HookRefusal::Denied(denial(403)).into_status();
        let want = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "custom", "message": "m",
            "reason": "Odd", "code": 403,
        });
        assert_eq!(serde_json::to_value(&status).unwrap(), want);
        // A status code that HTTP does not have stays in the body.
        let status = HookRefusal::Denied(denial(70_000)).into_status();
        assert_eq!((status.code, status.webhook_status.unwrap().code), (500, 70_000));
    }

    #[test]
    fn each_refusal_has_its_status_and_displays_as_its_message() {
        let webhook = || "v.x.y".to_owned();
        let why = || "w".to_owned();
        let busy = concurrency_limit::LimitReached::Total { permits_max: 3 };
        for (refusal, code, reason, retry_after) in [
            (
                HookRefusal::FailedClosed { webhook: webhook(), failure: why() },
                500,
                "InternalError",
                0,
            ),
            (HookRefusal::DryRunUnsupported { webhook: webhook() }, 400, "BadRequest", 0),
            (HookRefusal::DeadlineExceeded, 504, "Timeout", 0),
            (
                HookRefusal::CallUnavailable { webhook: webhook(), why: why(), is_temporary: true },
                503,
                "ServiceUnavailable",
                1,
            ),
            (
                HookRefusal::CallUnavailable {
                    webhook: webhook(),
                    why: why(),
                    is_temporary: false,
                },
                503,
                "ServiceUnavailable",
                0,
            ),
            (HookRefusal::TooManyCalls { webhook: webhook(), busy }, 429, "TooManyRequests", 1),
            (HookRefusal::ShuttingDown, 503, "ServiceUnavailable", 0),
            (HookRefusal::Internal(why()), 500, "InternalError", 0),
        ] {
            let message = refusal.to_string();
            let status = refusal.into_status();
            assert_eq!((status.code, &*status.reason), (code, reason), "{message}");
            assert_eq!(status.message, message);
            assert_eq!(status.retry_after_seconds().unwrap_or_default(), retry_after, "{message}");
            assert!(!status.is_status_from_this_server());
        }
    }
}
