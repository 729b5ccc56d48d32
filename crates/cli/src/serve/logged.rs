//! Numbers that also leave a trace in the log, where something fails.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use authz_chain::{AuthorizerType, DecisionObserver};
use authz_reload::{AppliedConfig, AuthorizationObservers, ReloadStatus};
use authz_webhook::{
    AttemptResult, CacheEvent, FailOpenCause, MatchOutcome, Rejection, WebhookObserver,
};
use metrics::AuthorizationMetrics;
use server::Log;

/// The metrics, and the log beside them.
pub(super) struct Logged {
    pub(super) metrics: Arc<AuthorizationMetrics>,
    pub(super) log: Log,
}

impl AuthorizationObservers for Logged {
    fn webhook_observer(&self, name: &str) -> Arc<dyn WebhookObserver> {
        let metrics = self.metrics.webhook_observer(name);
        Arc::new(LoggedWebhook { name: name.into(), metrics, log: self.log })
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

/// One webhook: its failures are logged, all else is only counted.
struct LoggedWebhook {
    name: Box<str>,
    metrics: Arc<dyn WebhookObserver>,
    log: Log,
}

impl WebhookObserver for LoggedWebhook {
    fn attempted(&self, result: AttemptResult, took: Duration) {
        self.metrics.attempted(result, took);
    }

    fn failed(&self, why: &str) {
        self.metrics.failed(why);
        self.log.warn("a webhook failed", &[("webhook", &self.name), ("why", &why)]);
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
