//! How long a call may take.

use std::time::Duration;

use admission::{FailurePolicy, Hook};
use tokio::time::Instant;

/// The longest that any call may take, whatever its hook says.
pub const CALL_TIME_MAX: Duration = Duration::from_secs(30);

/// The longest that the hooks of one request whose failure may be ignored take together, unless told.
///
/// A request may take a little longer, so that hooks nobody insists on never use it up by themselves.
pub const IGNORABLE_TIME_MAX: Duration = CALL_TIME_MAX;

/// The time of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    pub(crate) deadline: Instant,
    pub(crate) ignorable_left: Duration,
}

/// Why there is no time for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// The time of the request is over.
    Request,
    /// What hooks that may be ignored have together is used up.
    Ignorable,
}

impl Time {
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.deadline <= now
    }

    /// What a call of a hook may take from now on: what the hook says, but not longer than the
    /// request has left, nor than any call may take, nor than is left for hooks of its kind.
    pub(crate) fn allot(&self, hook: &Hook, now: Instant) -> Result<Duration, Shortage> {
        let left = self.deadline.saturating_duration_since(now);
        if left.is_zero() {
            return Err(Shortage::Request);
        }
        let limit = hook.timeout.min(left).min(CALL_TIME_MAX);
        match hook.failure_policy {
            FailurePolicy::Fail => Ok(limit),
            FailurePolicy::Ignore if self.ignorable_left.is_zero() => Err(Shortage::Ignorable),
            FailurePolicy::Ignore => Ok(limit.min(self.ignorable_left)),
        }
    }

    /// Takes note of how long calls of a hook, or of several at once, took.
    pub(crate) fn spend(&mut self, policy: FailurePolicy, spent: Duration) {
        match policy {
            FailurePolicy::Fail => {}
            FailurePolicy::Ignore => {
                self.ignorable_left = self.ignorable_left.saturating_sub(spent);
            }
        }
    }
}

/// What a hook is told of its time: whole seconds, rounded up.
pub(crate) fn query(limit: Duration) -> String {
    let seconds = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
    let limit = i64::try_from(Duration::from_secs(seconds).as_nanos()).unwrap_or(i64::MAX);
    format!("timeout={}", gotext::format_duration(limit))
}
