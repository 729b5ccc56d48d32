//! Observers of the authorization chain that count events and log failures of webhooks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use authz_chain::{AuthorizerType, DecisionObserver};
use authz_reload::{AppliedConfig, AuthorizationObserverFactory, ReloadStatus};
use authz_webhook::{
    AttemptResult, CacheEvent, CallRejection, FailOpenCause, FailurePolicy, MatchResultKind,
    WebhookObserver,
};
use component_base::Log;
use metrics::AuthorizationMetrics;

/// Passes every event to the metrics and logs failed webhook calls.
pub(crate) struct AuthorizationLogObserver {
    pub(crate) authorization_metrics: Arc<AuthorizationMetrics>,
    pub(crate) log: Log,
}

impl AuthorizationObserverFactory for AuthorizationLogObserver {
    fn create_webhook_observer(&self, name: &str) -> Arc<dyn WebhookObserver> {
        let metrics = self.authorization_metrics.create_webhook_observer(name);
        Arc::new(AuthorizationWebhookLogObserver {
            name: name.into(),
            webhook_metrics: metrics,
            log: self.log,
            condition_error_log_rate_limit: Mutex::default(),
        })
    }

    fn create_decision_observer(
        &self,
        kind: AuthorizerType,
        name: &str,
    ) -> Option<DecisionObserver> {
        self.authorization_metrics.create_decision_observer(kind, name)
    }

    fn connection_observer(&self) -> Arc<dyn https_client::CertificateObserver> {
        self.authorization_metrics.connection_observer()
    }

    fn on_reload(&self, status: ReloadStatus, at: SystemTime) {
        self.authorization_metrics.on_reload(status, at);
    }

    fn on_config_applied(&self, applied: &AppliedConfig<'_>) {
        self.authorization_metrics.on_config_applied(applied);
    }
}

/// The observer of one webhook: it logs failed calls and counts everything.
struct AuthorizationWebhookLogObserver {
    name: Box<str>,
    webhook_metrics: Arc<dyn WebhookObserver>,
    log: Log,
    condition_error_log_rate_limit: Mutex<LogRateLimit>,
}

/// Minimum interval between log lines about failed match conditions of one webhook. A condition may fail for
/// every request, and so many lines would displace other warnings.
const MATCH_ERROR_INTERVAL: Duration = Duration::from_secs(1);

/// Decides which events are logged: the first one of each interval.
#[derive(Debug, Default)]
struct LogRateLimit {
    last_logged_at: Option<Instant>,
    n_suppressed_events: u64,
}

impl LogRateLimit {
    /// Returns the number of events that were not logged since the last line, if this event is to be
    /// logged; `None` if it is not.
    fn suppressed_events_if_due(&mut self, now: Instant) -> Option<u64> {
        let since_last = self.last_logged_at.map(|at| now.saturating_duration_since(at));
        if since_last.is_some_and(|since| since < MATCH_ERROR_INTERVAL) {
            self.n_suppressed_events = self.n_suppressed_events.saturating_add(1);
            return None;
        }
        self.last_logged_at = Some(now);
        Some(std::mem::take(&mut self.n_suppressed_events))
    }
}

impl WebhookObserver for AuthorizationWebhookLogObserver {
    fn on_attempt_end(&self, result: AttemptResult, took: Duration) {
        self.webhook_metrics.on_attempt_end(result, took);
    }

    fn on_call_failure(&self, why: &str) {
        self.webhook_metrics.on_call_failure(why);
        self.log
            .warn("authorization webhook call failed", &[("webhook", &self.name), ("why", &why)]);
    }

    fn on_fail_open(&self, cause: FailOpenCause, result: Option<AttemptResult>) {
        self.webhook_metrics.on_fail_open(cause, result);
    }

    fn on_conditions_evaluated(&self, took: Duration, outcome: MatchResultKind) {
        self.webhook_metrics.on_conditions_evaluated(took, outcome);
    }

    fn on_condition_error(&self, error: &str, policy: FailurePolicy) {
        self.webhook_metrics.on_condition_error(error, policy);
        let message = match policy {
            FailurePolicy::NoOpinion => {
                "authorization webhook skipped: a match condition cannot be evaluated"
            }
            FailurePolicy::Deny => {
                "authorization webhook denies: a match condition cannot be evaluated"
            }
        };
        let mut lines =
            self.condition_error_log_rate_limit.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = lines.suppressed_events_if_due(Instant::now());
        drop(lines);
        if let Some(n_suppressed_events) = recorded {
            let fields = [("webhook", &self.name as _), ("why", &error as _)];
            let left_out =
                (n_suppressed_events > 0).then_some(("left_out", &n_suppressed_events as _));
            self.log.warn(message, &fields.into_iter().chain(left_out).collect::<Vec<_>>());
        }
    }

    fn on_cache_event(&self, event: CacheEvent) {
        self.webhook_metrics.on_cache_event(event);
    }

    fn on_shared_call(&self) {
        self.webhook_metrics.on_shared_call();
    }

    fn on_call_rejected(&self, why: CallRejection) {
        self.webhook_metrics.on_call_rejected(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_logged_in_each_interval() {
        let begun = Instant::now();
        let mut lines = LogRateLimit::default();
        let cases = [
            (0, Some(0)),
            (0, None),
            (999, None),
            (1_000, Some(2)),
            (1_999, None),
            (2_500, Some(1)),
            (9_000, Some(0)),
        ];
        for (millis, want) in cases {
            let now = begun + Duration::from_millis(millis);
            assert_eq!(lines.suppressed_events_if_due(now), want, "{millis}");
        }
        // A thread may read the clock before another one and record its event after it.
        assert_eq!(lines.suppressed_events_if_due(begun), None);
    }
}
