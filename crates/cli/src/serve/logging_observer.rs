//! Observers of the authorization chain that count events and log failures of webhooks.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use authz_chain::{AuthorizerType, DecisionObserver};
use authz_reload::{AppliedConfig, AuthorizationObservers, ReloadStatus};
use authz_webhook::{
    AttemptResult, CacheEvent, CallRejection, FailOpenCause, FailurePolicy, MatchResultKind,
    WebhookObserver,
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
        Arc::new(AuthorizationWebhookLogObserver { name: name.into(), metrics, log: self.log })
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
struct AuthorizationWebhookLogObserver {
    name: Box<str>,
    metrics: Arc<dyn WebhookObserver>,
    log: Log,
}

impl WebhookObserver for AuthorizationWebhookLogObserver {
    fn on_attempt(&self, result: AttemptResult, took: Duration) {
        self.metrics.on_attempt(result, took);
    }

    fn on_call_failure(&self, why: &str) {
        self.metrics.on_call_failure(why);
        self.log
            .warn("authorization webhook call failed", &[("webhook", &self.name), ("why", &why)]);
    }

    fn on_fail_open(&self, cause: FailOpenCause, result: Option<AttemptResult>) {
        self.metrics.on_fail_open(cause, result);
    }

    fn on_match(&self, took: Duration, outcome: MatchResultKind) {
        self.metrics.on_match(took, outcome);
    }

    fn on_match_error(&self, error: &str, policy: FailurePolicy) {
        self.metrics.on_match_error(error, policy);
        let message = match policy {
            FailurePolicy::NoOpinion => {
                "authorization webhook skipped: a match condition can not be evaluated"
            }
            FailurePolicy::Deny => {
                "authorization webhook denies: a match condition can not be evaluated"
            }
        };
        self.log.warn(message, &[("webhook", &self.name), ("why", &error)]);
    }

    fn on_cache_event(&self, event: CacheEvent) {
        self.metrics.on_cache_event(event);
    }

    fn on_shared_call(&self) {
        self.metrics.on_shared_call();
    }

    fn on_rejection(&self, why: CallRejection) {
        self.metrics.on_rejection(why);
    }
}
