//! How long a call may take.

use std::time::Duration;

use admission::Hook;
use tokio::time::Instant;

/// The longest that any call may take, whatever its hook says, unless told.
pub const CALL_TIME_MAX: Duration = Duration::from_secs(30);

/// The time of one request.
///
/// INVARIANT: a call ends after the time-out of its hook, or at the deadline of the request. Only the
/// former is a failure of the hook, which its failure policy decides about; the latter is a 504.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    pub(crate) deadline: Instant,
    pub(crate) call_max: Duration,
}

impl Time {
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.deadline <= now
    }

    /// The time-out of a hook: what it says, but not longer than any call may take.
    pub(crate) fn call_timeout(&self, hook: &Hook) -> Duration {
        hook.timeout.min(self.call_max)
    }

    /// What a hook is told of its time: whole seconds, rounded up, of its time-out or of what the
    /// request has left.
    pub(crate) fn query(&self, timeout: Duration, now: Instant) -> String {
        let left = self.deadline.saturating_duration_since(now).min(timeout);
        format!("timeout={}s", left.as_secs() + u64::from(left.subsec_nanos() > 0))
    }
}

#[cfg(test)]
mod tests {
    use admission::{Configuration, ConfigurationKind, Snapshot};
    use serde_json::json;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Hooks with these time-outs.
    fn hooks(seconds: &[u64]) -> Snapshot {
        let webhooks: Vec<_> = seconds.iter().map(|own| json!({ "timeoutSeconds": own })).collect();
        let object = json!({ "webhooks": webhooks });
        let kind = ConfigurationKind::Mutating;
        let configuration = Configuration::compile(kind, object.as_object().unwrap());
        Snapshot::new(&[std::sync::Arc::new(configuration)])
    }

    #[test]
    fn no_call_takes_longer_than_the_server_allows() {
        let snapshot = hooks(&[20, 5]);
        let [slow, quick] = snapshot.mutating().hooks() else { panic!() };
        let time = Time { deadline: Instant::now() + 34 * SECOND, call_max: 7 * SECOND };
        assert_eq!(time.call_timeout(slow), 7 * SECOND);
        assert_eq!(time.call_timeout(quick), 5 * SECOND);
    }

    #[test]
    fn calls_that_follow_each_other_share_the_time_of_the_request() {
        // T-113
        let snapshot = hooks(&[20, 5, 20, 20]);
        let now = Instant::now();
        let time = Time { deadline: now + 10 * SECOND, call_max: CALL_TIME_MAX };
        let told: Vec<_> = (0..4)
            .zip(snapshot.mutating().hooks())
            .map(|(n, hook)| time.query(time.call_timeout(hook), now + n * SECOND))
            .collect();
        assert_eq!(told, ["timeout=10s", "timeout=5s", "timeout=8s", "timeout=7s"]);
        assert!(time.is_over(now + 10 * SECOND));
    }

    #[test]
    fn what_is_told_is_rounded_up() {
        let now = Instant::now();
        let time = Time { deadline: now + 10 * SECOND, call_max: CALL_TIME_MAX };
        for (millis, want) in [(1, "timeout=1s"), (1000, "timeout=1s"), (1001, "timeout=2s")] {
            assert_eq!(time.query(Duration::from_millis(millis), now), want);
        }
    }
}
