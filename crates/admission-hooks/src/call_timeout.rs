//! Timeouts of calls and the deadline of a session.

use std::time::Duration;

use admission::Hook;
use tokio::time::Instant;

/// The default limit on the duration of a call, whatever `timeoutSeconds` its hook has.
pub const CALL_TIME_MAX: Duration = Duration::from_secs(30);

/// The deadline of a session and the limit for each of its calls.
///
/// INVARIANT: a call ends after the timeout of its hook, or at the deadline of the request. Only the
/// timeout is a failure of the hook, to which its failure policy applies; the deadline is a 504.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionDeadline {
    pub(crate) at: Instant,
    pub(crate) call_duration_max: Duration,
}

impl SessionDeadline {
    pub(crate) fn has_deadline_passed(&self, now: Instant) -> bool {
        self.at <= now
    }

    /// The `timeoutSeconds` of a hook, limited by the longest duration of a call.
    pub(crate) fn call_timeout(&self, hook: &Hook) -> Duration {
        hook.call_timeout.min(self.call_duration_max)
    }
}

/// The query that tells a hook its timeout, in whole seconds and rounded up. It does not contain the
/// deadline of the request: a hook that gives up because of that would fail due to the caller, and its
/// failure policy would apply.
pub(crate) fn announced_timeout_query(timeout: Duration) -> String {
    format!("timeout={}s", timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use admission::{Configuration, ConfigurationKind, Snapshot};
    use serde_json::json;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A snapshot of hooks with these timeouts.
    fn hooks(seconds: &[u64]) -> Snapshot {
        let webhooks: Vec<_> = seconds.iter().map(|own| json!({ "timeoutSeconds": own })).collect();
        let object = json!({ "webhooks": webhooks });
        let kind = ConfigurationKind::Mutating;
        let configuration = Configuration::compile_configuration(kind, object.as_object().unwrap());
        Snapshot::new(&[std::sync::Arc::new(configuration)])
    }

    #[test]
    fn no_call_takes_longer_than_the_server_allows() {
        let snapshot = hooks(&[20, 5]);
        let [slow, quick] = snapshot.mutating_hooks().hooks() else { panic!() };
        let time =
            SessionDeadline { at: Instant::now() + 34 * SECOND, call_duration_max: 7 * SECOND };
        assert_eq!(time.call_timeout(slow), 7 * SECOND);
        assert_eq!(time.call_timeout(quick), 5 * SECOND);
    }

    #[test]
    fn hooks_are_told_their_own_time_and_not_the_callers() {
        // Kubernetes tells hooks the remaining time of the request; a caller could make a hook fail with that.
        let snapshot = hooks(&[20, 5]);
        let now = Instant::now();
        let time = SessionDeadline { at: now + SECOND, call_duration_max: CALL_TIME_MAX };
        let hooks = snapshot.mutating_hooks().hooks().iter();
        let told: Vec<_> =
            hooks.map(|hook| announced_timeout_query(time.call_timeout(hook))).collect();
        assert_eq!(told, ["timeout=20s", "timeout=5s"]);
        assert!(time.has_deadline_passed(now + SECOND));
    }

    #[test]
    fn what_is_told_is_rounded_up() {
        for (millis, want) in [(1, "timeout=1s"), (1000, "timeout=1s"), (1001, "timeout=2s")] {
            assert_eq!(announced_timeout_query(Duration::from_millis(millis)), want);
        }
    }
}
