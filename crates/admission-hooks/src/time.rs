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
}

/// The query that tells a hook its time-out, in whole seconds and rounded up. It does not tell the
/// deadline of the request: a hook that gives up in time for it would fail because of the caller, and a
/// failure policy would answer for that.
pub(crate) fn query(timeout: Duration) -> String {
    format!("timeout={}s", timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0))
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
    fn hooks_are_told_their_own_time_and_not_the_callers() {
        // T-113 tells what the request has left; a caller could make a hook fail with that.
        let snapshot = hooks(&[20, 5]);
        let now = Instant::now();
        let time = Time { deadline: now + SECOND, call_max: CALL_TIME_MAX };
        let hooks = snapshot.mutating().hooks().iter();
        let told: Vec<_> = hooks.map(|hook| query(time.call_timeout(hook))).collect();
        assert_eq!(told, ["timeout=20s", "timeout=5s"]);
        assert!(time.is_over(now + SECOND));
    }

    #[test]
    fn what_is_told_is_rounded_up() {
        for (millis, want) in [(1, "timeout=1s"), (1000, "timeout=1s"), (1001, "timeout=2s")] {
            assert_eq!(query(Duration::from_millis(millis)), want);
        }
    }
}
