//! The metrics of authorization.

mod authorizer_decisions;
mod chain_decisions;
mod config_reloads;
mod family_definitions;
mod insecure_certificates;
mod webhook_calls;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use authz::Decision;
use authz_chain::AuthorizerType;
use authz_reload::{AppliedConfig, AuthorizationObserverFactory, ReloadStatus};
use authz_webhook::Webhook;
use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use self::authorizer_decisions::AuthorizerDecisions;
use self::chain_decisions::ChainDecisions;
use self::config_reloads::ConfigReloads;
pub(crate) use self::family_definitions::FamilyDefinition;
use self::family_definitions::{COMMON, CONFIG_FILE};
use self::insecure_certificates::InsecureCertificateCounters;
use self::webhook_calls::WebhookCalls;

/// The metrics of the authorizer chain.
///
/// The builder of the chain gets it as [`AuthorizationObserverFactory`], and the server calls
/// [`AuthorizationMetrics::record_decision`] for each request.
#[derive(Debug)]
pub struct AuthorizationMetrics {
    has_config_file: bool,
    chain_decisions: ChainDecisions,
    authorizer_decisions: AuthorizerDecisions,
    webhook_calls: WebhookCalls,
    insecure_certificate_counters: Arc<InsecureCertificateCounters>,
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
            authorizer_decisions: AuthorizerDecisions::default(),
            webhook_calls: WebhookCalls::default(),
            insecure_certificate_counters: Arc::default(),
            config_reloads: ConfigReloads::new(server_id),
        });
        let of_config_file: &[&FamilyDefinition] = if has_config_file { &CONFIG_FILE } else { &[] };
        let families = COMMON.iter().chain(of_config_file);
        let descriptors =
            families.map(|family| family.to_descriptor()).collect::<Result<_, _>>()?;
        let collector = AuthorizationCollector {
            authorization_metrics: Arc::clone(&metrics),
            metric_descriptors: descriptors,
        };
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
    pub fn record_chain_decision(&self, decision: &Decision, took: Duration) {
        self.chain_decisions.record_chain_decision(decision, took);
    }
}

impl AuthorizationObserverFactory for AuthorizationMetrics {
    fn create_webhook_observer(&self, name: &str) -> Arc<dyn authz_webhook::WebhookObserver> {
        self.webhook_calls.get_or_create_counters(name)
    }

    fn create_decision_observer(
        &self,
        kind: AuthorizerType,
        name: &str,
    ) -> Option<authz_chain::DecisionObserver> {
        let counters = self.authorizer_decisions.get_or_create_counters(kind, name);
        Some(Arc::new(move |verdict, took| counters.count_authorizer_decision(verdict, took)))
    }

    fn connection_observer(&self) -> Arc<dyn https_client::CertificateObserver> {
        Arc::<InsecureCertificateCounters>::clone(&self.insecure_certificate_counters)
    }

    fn on_reload(&self, status: ReloadStatus, at: SystemTime) {
        self.config_reloads.record_reload(status, at);
    }

    fn on_config_applied(&self, applied: &AppliedConfig<'_>) {
        self.config_reloads.set_applied_config(applied);
    }
}

struct AuthorizationCollector {
    authorization_metrics: Arc<AuthorizationMetrics>,
    metric_descriptors: Vec<Desc>,
}

impl Collector for AuthorizationCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.metric_descriptors.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let metrics = &self.authorization_metrics;
        let mut families = Vec::with_capacity(self.metric_descriptors.len());
        families.extend(metrics.chain_decisions.collect());
        families.extend(metrics.authorizer_decisions.collect());
        families.extend(metrics.webhook_calls.collect());
        families.extend(metrics.insecure_certificate_counters.collect());
        families.push(metrics.config_reloads.collect_config_generation());
        if metrics.has_config_file {
            families.extend(metrics.config_reloads.collect_config_file_metrics());
        }
        families
    }
}
