//! The metrics of authorization.

mod authorizer_answers;
mod chain_decisions;
mod config_reloads;
mod families;
mod webhook_calls;
mod webhook_certificates;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use authz::Decision;
use authz_chain::AuthorizerType;
use authz_reload::{AppliedConfig, AuthorizationObservers, ReloadStatus};
use authz_webhook::Webhook;
use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use self::authorizer_answers::AuthorizerAnswers;
use self::chain_decisions::ChainDecisions;
use self::config_reloads::ConfigReloads;
pub(crate) use self::families::FamilyDefinition;
use self::families::{COMMON, CONFIG_FILE};
use self::webhook_calls::WebhookCalls;
use self::webhook_certificates::WebhookCertificates;

/// The metrics of the authorizer chain.
///
/// The builder of the chain gets it as [`AuthorizationObservers`], and the server calls
/// [`AuthorizationMetrics::record_decision`] for each request.
#[derive(Debug)]
pub struct AuthorizationMetrics {
    has_config_file: bool,
    chain_decisions: ChainDecisions,
    authorizer_answers: AuthorizerAnswers,
    webhook_calls: WebhookCalls,
    webhook_certificates: Arc<WebhookCertificates>,
    config_reloads: ConfigReloads,
}

impl AuthorizationMetrics {
    /// Registers the metrics in a registry.
    ///
    /// `server_id` distinguishes this server from others; its hash is a label. The reload metrics are exposed only if a
    /// file configures the authorizers (`has_config_file`).
    ///
    /// # Errors
    /// The registry has some of the families already.
    pub fn new(
        registry: &Registry,
        server_id: &str,
        has_config_file: bool,
    ) -> Result<Arc<Self>, prometheus::Error> {
        let metrics = Arc::new(Self {
            has_config_file,
            chain_decisions: ChainDecisions::default(),
            authorizer_answers: AuthorizerAnswers::default(),
            webhook_calls: WebhookCalls::default(),
            webhook_certificates: Arc::default(),
            config_reloads: ConfigReloads::new(server_id),
        });
        let of_config_file: &[&FamilyDefinition] = if has_config_file { &CONFIG_FILE } else { &[] };
        let families = COMMON.iter().chain(of_config_file);
        let descriptors =
            families.map(|family| family.to_descriptor()).collect::<Result<_, _>>()?;
        let collector = RegistryCollector { metrics: Arc::clone(&metrics), descriptors };
        registry.register(Box::new(collector))?;
        Ok(metrics)
    }

    /// Sets the webhooks of the configuration in effect. The collector reads their cache sizes and calls in flight.
    ///
    /// The observer of a webhook does not show that the webhook is in effect, because a configuration that is built
    /// may never take effect.
    pub fn set_active_webhooks<'a>(&self, webhooks: impl IntoIterator<Item = &'a Arc<Webhook>>) {
        self.webhook_calls.set_active_webhooks(webhooks);
    }

    /// Records a decision of the whole chain and how long it took.
    pub fn record_decision(&self, decision: &Decision, took: Duration) {
        self.chain_decisions.record_chain_decision(decision, took);
    }
}

impl AuthorizationObservers for AuthorizationMetrics {
    fn webhook_observer(&self, name: &str) -> Arc<dyn authz_webhook::WebhookObserver> {
        self.webhook_calls.get_or_create(name)
    }

    fn authorizer_observer(
        &self,
        kind: AuthorizerType,
        name: &str,
    ) -> Option<authz_chain::DecisionObserver> {
        let counters = self.authorizer_answers.get_or_create(kind, name);
        Some(Arc::new(move |verdict, took| counters.count_decision(verdict, took)))
    }

    fn connection_observer(&self) -> Arc<dyn https_client::CertificateObserver> {
        Arc::<WebhookCertificates>::clone(&self.webhook_certificates)
    }

    fn on_reload(&self, status: ReloadStatus, at: SystemTime) {
        self.config_reloads.record_reload(status, at);
    }

    fn on_config_applied(&self, applied: &AppliedConfig<'_>) {
        self.config_reloads.set_config(applied);
    }
}

struct RegistryCollector {
    metrics: Arc<AuthorizationMetrics>,
    descriptors: Vec<Desc>,
}

impl Collector for RegistryCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptors.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let metrics = &self.metrics;
        let mut families = Vec::with_capacity(self.descriptors.len());
        families.extend(metrics.chain_decisions.collect());
        families.extend(metrics.authorizer_answers.collect());
        families.extend(metrics.webhook_calls.collect());
        families.extend(metrics.webhook_certificates.collect());
        families.push(metrics.config_reloads.collect_generation());
        if metrics.has_config_file {
            families.extend(metrics.config_reloads.collect_config_file());
        }
        families
    }
}
