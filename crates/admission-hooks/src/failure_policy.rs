//! Applies the failure policy of a hook to a failed call.

use admission::{FailurePolicy, Hook};

use crate::call_failure::CallFailure;
use crate::hook_call::CallError;
use crate::hook_observer::RejectionCause;
use crate::hook_refusal::HookRefusal;
use crate::session_report::CallVerdict;

/// Decides whether the request goes on without the hook.
///
/// 1. An error of the request or of this server refuses the request.
/// 2. A failure of the hook is subject to its `failurePolicy`: `Ignore` lets the request pass, `Fail`
///    refuses it.
pub(crate) fn apply_failure_policy(
    hook: &Hook,
    error: CallError,
) -> (CallVerdict, Result<(), HookRefusal>) {
    match (error, hook.failure_policy) {
        (CallError::Rejected(refusal) | CallError::ServerFault(refusal), _) => {
            (CallVerdict::Error(refusal.to_string()), Err(refusal))
        }
        (CallError::HookFailed(failure), FailurePolicy::Ignore) => {
            let CallFailure { message, failure_cause: cause, .. } = failure;
            (CallVerdict::FailOpen { cause, message }, Ok(()))
        }
        (CallError::HookFailed(failure), FailurePolicy::Fail) => {
            let (webhook, failure) = (hook.name.clone(), failure.message);
            let refusal = HookRefusal::FailedClosed { webhook, failure: failure.clone() };
            (CallVerdict::FailClosed(failure), Err(refusal))
        }
    }
}

/// The status code for the metrics, and the cause of the refusal if the request is refused.
pub(crate) fn metric_code_and_cause(
    hook: &Hook,
    error: &CallError,
) -> (i32, Option<RejectionCause>) {
    match error {
        CallError::Rejected(_) => (0, Some(RejectionCause::Server)),
        CallError::ServerFault(refusal) => (refusal.metric_code(), Some(RejectionCause::Server)),
        CallError::HookFailed(failure) => match hook.failure_policy {
            FailurePolicy::Ignore => (failure.code, None),
            FailurePolicy::Fail => (failure.code, Some(RejectionCause::Call)),
        },
    }
}
