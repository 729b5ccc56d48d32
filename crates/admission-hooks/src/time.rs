//! How long a call may take.

use std::time::Duration;

use admission::{FailurePolicy, Hook};
use tokio::time::Instant;

/// The longest that any call may take, whatever its hook says, unless told.
pub const CALL_TIME_MAX: Duration = Duration::from_secs(30);

/// The longest that the hooks of one request whose failure may be ignored take together, unless told.
///
/// A request may take a little longer, so that hooks nobody insists on never use it up by themselves.
pub const IGNORABLE_TIME_MAX: Duration = CALL_TIME_MAX;

/// The time of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    pub(crate) deadline: Instant,
    pub(crate) call_max: Duration,
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
        let limit = hook.timeout.min(left).min(self.call_max);
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
    format!("timeout={}s", limit.as_secs() + u64::from(limit.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use admission::{Configuration, ConfigurationKind, Snapshot};
    use serde_json::json;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Hooks with these timeouts and policies.
    fn hooks(members: &[(u64, &str)]) -> Snapshot {
        let webhook = |(seconds, policy): &(u64, &str)| json!({ "timeoutSeconds": seconds, "failurePolicy": policy });
        let webhooks: Vec<_> = members.iter().map(webhook).collect();
        let object = json!({ "webhooks": webhooks });
        let kind = ConfigurationKind::Mutating;
        let configuration = Configuration::compile(kind, object.as_object().unwrap());
        Snapshot::new(&[std::sync::Arc::new(configuration)])
    }

    fn time(deadline: Instant, ignorable_left: Duration) -> Time {
        Time { deadline, call_max: CALL_TIME_MAX, ignorable_left }
    }

    #[test]
    fn no_call_takes_longer_than_the_server_allows() {
        let snapshot = hooks(&[(20, "Fail"), (5, "Fail")]);
        let [slow, quick] = snapshot.mutating().hooks() else { panic!() };
        let now = Instant::now();
        let time = Time { call_max: 7 * SECOND, ..time(now + 34 * SECOND, 30 * SECOND) };
        assert_eq!(time.allot(slow, now), Ok(7 * SECOND));
        assert_eq!(time.allot(quick, now), Ok(5 * SECOND));
    }

    #[test]
    fn calls_that_follow_each_other_share_the_time_of_the_request() {
        // T-113
        let snapshot = hooks(&[(20, "Fail"), (5, "Fail"), (20, "Fail"), (20, "Fail")]);
        let now = Instant::now();
        let time = time(now + 10 * SECOND, 30 * SECOND);
        let told: Vec<_> = (0..4)
            .zip(snapshot.mutating().hooks())
            .map(|(n, hook)| query(time.allot(hook, now + n * SECOND).unwrap()))
            .collect();
        assert_eq!(told, ["timeout=10s", "timeout=5s", "timeout=8s", "timeout=7s"]);
        let hook = &snapshot.mutating().hooks()[0];
        assert_eq!(time.allot(hook, now + 10 * SECOND), Err(Shortage::Request));
    }

    #[test]
    fn what_is_told_is_rounded_up() {
        for (millis, want) in [(1, "timeout=1s"), (1000, "timeout=1s"), (1001, "timeout=2s")] {
            assert_eq!(query(Duration::from_millis(millis)), want);
        }
    }

    #[test]
    fn hooks_that_may_be_ignored_have_a_time_of_their_own() {
        let snapshot = hooks(&[(10, "Ignore"), (10, "Fail")]);
        let [ignorable, other] = snapshot.mutating().hooks() else { panic!() };
        let now = Instant::now();
        let mut time = time(now + 34 * SECOND, 12 * SECOND);
        assert_eq!(time.allot(ignorable, now), Ok(10 * SECOND));
        time.spend(FailurePolicy::Fail, 10 * SECOND);
        time.spend(FailurePolicy::Ignore, 10 * SECOND);
        assert_eq!(time.allot(ignorable, now), Ok(2 * SECOND));
        time.spend(FailurePolicy::Ignore, 10 * SECOND);
        assert_eq!(time.allot(ignorable, now), Err(Shortage::Ignorable));
        assert_eq!(time.allot(other, now), Ok(10 * SECOND));
    }
}
