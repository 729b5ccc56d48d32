//! Why a request is refused at its hooks.

use admission::HookSelectionError;
use authz::UnavailableCause;
use concurrency_limit::LimitReached;

use crate::hook_denial::HookDenial;

/// Why a request is refused at its hooks. It displays as the message that the client reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookRefusal {
    /// A hook denied the request.
    #[error("{}", .0.message)]
    Denied(HookDenial),
    /// The call of a hook failed, and its failure policy is `Fail`.
    #[error("Internal error occurred: {}", call_failure_message(.webhook, .failure))]
    FailedClosed {
        /// The name of the hook.
        webhook: String,
        /// The failed step and its error.
        failure: String,
    },
    /// The request is a dry run, and the hook has side effects.
    #[error("admission webhook {} does not support dry run", go_compat::quote(.webhook))]
    DryRunUnsupported {
        /// The name of the hook.
        webhook: String,
    },
    /// The deadline of the request has passed.
    #[error("Timeout: request did not complete within requested timeout")]
    DeadlineExceeded,
    /// This server cannot call the hook.
    #[error("{}", call_failure_message(.webhook, .why))]
    CallUnavailable {
        /// The name of the hook.
        webhook: String,
        /// The reason why this server cannot call the hook.
        why: String,
        /// Whether the client may try again soon.
        is_temporary: bool,
    },
    /// As many calls of the hook are in flight as this server permits.
    #[error("Too many requests: {}", call_failure_message(.webhook, .busy))]
    TooManyCalls {
        /// The name of the hook.
        webhook: String,
        /// The limit that is reached.
        busy: LimitReached,
    },
    /// This server stops before the call has ended.
    #[error("apiserver is shutting down")]
    ShuttingDown,
    /// This server cannot process the call or its response.
    #[error("Internal error occurred: {0}")]
    Internal(String),
    /// This server could not get the decision of an `authorizer` check in a match condition.
    #[error("no authorization decision is available")]
    Undecided(UnavailableCause),
    /// It cannot be decided whether a hook has to be called.
    #[error(transparent)]
    Selection(HookSelectionError),
}

impl HookRefusal {
    /// The label `code` of a refused call in Kubernetes' metrics.
    pub(crate) fn metric_code(&self) -> i32 {
        match self {
            Self::Denied(denial) => denial.code,
            Self::TooManyCalls { .. } => 429,
            Self::CallUnavailable { .. } | Self::ShuttingDown => 503,
            Self::DeadlineExceeded => 504,
            Self::FailedClosed { .. }
            | Self::DryRunUnsupported { .. }
            | Self::Internal(_)
            | Self::Undecided(_)
            | Self::Selection(_) => 0,
        }
    }
}

/// The message of Kubernetes about a call that failed. Server code that maps a [`HookRefusal`] uses it too.
#[must_use]
pub fn call_failure_message(webhook: &str, why: &dyn std::fmt::Display) -> String {
    format!("failed calling webhook {}: {why}", go_compat::quote(webhook))
}
