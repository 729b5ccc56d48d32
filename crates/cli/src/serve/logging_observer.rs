//! Observers of the authorization chain that count events and log failures of webhooks.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use authz_chain::AuthorizerType;
use authz_reload::{Applied, Instruments, ReloadStatus};
use authz_webhook::{AttemptResult, CacheEvent, FailOpenCause, MatchOutcome, Observe, Rejection};
use metrics::AuthorizationMetrics;
use server::Log;

/// Passes every event to the metrics and logs failed webhook calls.
pub(super) struct LoggingObserver {
    pub(super) metrics: Arc<AuthorizationMetrics>,
    pub(super) log: Log,
}

impl Instruments for LoggingObserver {
    fn webhook(&self, name: &str) -> Arc<dyn Observe> {
        let metrics = self.metrics.webhook(name);
        Arc::new(WebhookLogObserver { name: name.into(), metrics, log: self.log })
    }

    fn member(&self, kind: AuthorizerType, name: &str) -> Option<Arc<dyn authz_chain::Observe>> {
        self.metrics.member(kind, name)
    }

    fn remote(&self) -> Arc<dyn https_client::Observe> {
        self.metrics.remote()
    }

    fn reloaded(&self, status: ReloadStatus, at: SystemTime) {
        self.metrics.reloaded(status, at);
    }

    fn applied(&self, applied: &Applied<'_>) {
        self.metrics.applied(applied);
    }
}

/// The observer of one webhook: it logs failed calls and counts everything.
struct WebhookLogObserver {
    name: Box<str>,
    metrics: Arc<dyn Observe>,
    log: Log,
}

impl Observe for WebhookLogObserver {
    fn attempted(&self, result: AttemptResult, took: Duration) {
        self.metrics.attempted(result, took);
    }

    fn failed(&self, why: &str) {
        self.metrics.failed(why);
        self.log
            .warn("authorization webhook call failed", &[("webhook", &self.name), ("why", &why)]);
    }

    fn failed_open(&self, cause: FailOpenCause, result: Option<AttemptResult>) {
        self.metrics.failed_open(cause, result);
    }

    fn matched(&self, took: Duration, outcome: MatchOutcome) {
        self.metrics.matched(took, outcome);
    }

    fn cache(&self, event: CacheEvent) {
        self.metrics.cache(event);
    }

    fn joined(&self) {
        self.metrics.joined();
    }

    fn rejected(&self, why: Rejection) {
        self.metrics.rejected(why);
    }
}
