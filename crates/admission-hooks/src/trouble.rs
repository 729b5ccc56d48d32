//! What trouble with a hook means for the request (admission §4.13).

use admission::{FailurePolicy, Hook};
use api_object::Status;

use crate::call::Trouble;
use crate::failure::CallFailure;
use crate::observe::RejectionCause;
use crate::record::Verdict;
use crate::refusal::Refusal;

impl From<CallFailure> for Trouble {
    fn from(failure: CallFailure) -> Self {
        Self::Failed(failure)
    }
}

/// What became of the call, and whether the request goes on.
///
/// The failure policy is asked about [`Trouble::Failed`] alone.
pub(crate) fn settle(hook: &Hook, trouble: Trouble) -> (Verdict, Result<(), Refusal>) {
    match (trouble, hook.failure_policy) {
        (Trouble::Error(refusal) | Trouble::Local(refusal), _) => {
            (Verdict::Error(refusal.message.clone()), Err(refusal))
        }
        (Trouble::Failed(failure), FailurePolicy::Ignore) => {
            let CallFailure { message, cause, .. } = failure;
            (Verdict::FailOpen { cause, message }, Ok(()))
        }
        (Trouble::Failed(failure), FailurePolicy::Fail) => {
            let refusal = Status::internal(&failure.text(&hook.name)).into();
            (Verdict::FailClosed(failure.message), Err(refusal))
        }
    }
}

/// What is counted: a code, and why the request is refused, if it is.
pub(crate) fn counts(hook: &Hook, trouble: &Trouble) -> (i32, Option<RejectionCause>) {
    match trouble {
        Trouble::Error(_) => (0, Some(RejectionCause::Server)),
        Trouble::Local(refusal) => (refusal.code, Some(RejectionCause::Server)),
        Trouble::Failed(failure) => match hook.failure_policy {
            FailurePolicy::Ignore => (failure.code, None),
            FailurePolicy::Fail => (failure.code, Some(RejectionCause::Call)),
        },
    }
}
