//! What trouble with a hook means for the request (admission §4.13).

use admission::{FailurePolicy, Hook};
use object::Status;

use crate::call::Trouble;
use crate::failure::CallFailure;
use crate::observe::RejectionCause;
use crate::record::Verdict;
use crate::refusal::Refusal;
use crate::time::Shortage;

impl From<CallFailure> for Trouble {
    fn from(failure: CallFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Shortage> for Trouble {
    fn from(shortage: Shortage) -> Self {
        match shortage {
            Shortage::Request => Self::Error(Refusal::deadline()),
            Shortage::Ignorable => Self::Failed(CallFailure::no_answer(
                "webhook was not called: the time for webhooks that may be ignored is used up",
            )),
        }
    }
}

/// What became of the call, and whether the request goes on.
pub(crate) fn settle(hook: &Hook, trouble: Trouble) -> (Verdict, Result<(), Refusal>) {
    match (trouble, hook.failure_policy) {
        (Trouble::Error(refusal), _) => (Verdict::Error(refusal.message.clone()), Err(refusal)),
        (Trouble::Failed(failure), FailurePolicy::Ignore) => {
            (Verdict::FailOpen(failure.cause), Ok(()))
        }
        (Trouble::Failed(failure), FailurePolicy::Fail) => {
            let refusal = Status::internal(&failure.message(&hook.name)).into();
            (Verdict::FailClosed(failure.cause), Err(refusal))
        }
        (Trouble::Panicked { text, .. }, FailurePolicy::Ignore) => {
            (Verdict::FailOpen(text), Ok(()))
        }
        (Trouble::Panicked { phase, text }, FailurePolicy::Fail) => {
            let (plugin, name) = (phase.plugin(), &hook.name);
            let message = format!("{plugin}/{name} has panicked: {text}");
            (Verdict::FailClosed(text), Err(Status::internal(&message).into()))
        }
    }
}

/// What is counted: a code, and why the request is refused, if it is.
pub(crate) fn counts(hook: &Hook, trouble: &Trouble) -> (i32, Option<RejectionCause>) {
    let is_refused = match hook.failure_policy {
        FailurePolicy::Ignore => None,
        FailurePolicy::Fail => Some(RejectionCause::Call),
    };
    match trouble {
        Trouble::Error(_) => (0, Some(RejectionCause::Server)),
        Trouble::Failed(failure) => (failure.code, is_refused),
        Trouble::Panicked { .. } => (500, is_refused),
    }
}
