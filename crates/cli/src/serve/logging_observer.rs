//! Observers of the authorization chain that count events and log failures of webhooks.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use authz_chain::{AuthorizerType, DecisionObserver};
use authz_reload::{AppliedConfig, AuthorizationObservers, ReloadStatus};
use authz_webhook::{
    AttemptResult, CacheEvent, FailOpenCause, MatchOutcome, Rejection, WebhookObserver,
};
use metrics::AuthorizationMetrics;
use server::Log;

/// Passes every event to the metrics and logs failed webhook calls.
pub(super) struct LoggingObserver {
    pub(super) metrics: Arc<AuthorizationMetrics>,
    pub(super) log: Log,
}

impl AuthorizationObservers for LoggingObserver {
    fn webhook_observer(&self, name: &str) -> Arc<dyn WebhookObserver> {
        let metrics = self.metrics.webhook_observer(name);
        Arc::new(WebhookLogObserver { name: name.into(), metrics, log: self.log })
    }

    fn authorizer_observer(&self, kind: AuthorizerType, name: &str) -> Option<DecisionObserver> {
        self.metrics.authorizer_observer(kind, name)
    }

    fn connection_observer(&self) -> Arc<dyn https_client::CertificateObserver> {
        self.metrics.connection_observer()
    }

    fn on_reload(&self, status: ReloadStatus, at: SystemTime) {
        self.metrics.on_reload(status, at);
    }

    fn on_config_applied(&self, applied: &AppliedConfig<'_>) {
        self.metrics.on_config_applied(applied);
    }
}

/// The observer of one webhook: it logs failed calls and counts everything.
struct WebhookLogObserver {
    name: Box<str>,
    metrics: Arc<dyn WebhookObserver>,
    log: Log,
}

impl WebhookObserver for WebhookLogObserver {
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
