//! All numbers together, as a registry knows them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use authz::Decision;
use authz_chain::{AuthorizerType, DecisionObserver};
use authz_reload::{AppliedConfig, AuthorizationObservers, ReloadStatus};
use authz_webhook::Webhook;
use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use crate::authorizer::Authorizers;
use crate::certificate::Certificates;
use crate::family::{ALWAYS, FILE_MODE, Family};
use crate::reload::Reloads;
use crate::request::Requests;
use crate::webhook::Webhooks;

/// The numbers of the authorization chain.
///
/// Give it to whoever assembles the chain, as [`AuthorizationObservers`], and call [`Metrics::decided`] for each
/// request; the registry shows the rest.
#[derive(Debug)]
pub struct Metrics {
    is_file_mode: bool,
    requests: Requests,
    authorizers: Authorizers,
    webhooks: Webhooks,
    certificates: Arc<Certificates>,
    reloads: Reloads,
}

impl Metrics {
    /// All numbers at zero, to be seen in the registry.
    ///
    /// `identity` is the text by which this server is told from others, and is shown as a hash. Only
    /// a server whose chain a file configures (`is_file_mode`) shows numbers about reloads.
    ///
    /// # Errors
    /// The registry has some of the families already.
    pub fn new(
        registry: &Registry,
        identity: &str,
        is_file_mode: bool,
    ) -> Result<Arc<Self>, prometheus::Error> {
        let metrics = Arc::new(Self {
            is_file_mode,
            requests: Requests::default(),
            authorizers: Authorizers::default(),
            webhooks: Webhooks::default(),
            certificates: Arc::default(),
            reloads: Reloads::new(identity),
        });
        let file_mode: &[&Family] = if is_file_mode { &FILE_MODE } else { &[] };
        let families = ALWAYS.iter().chain(file_mode);
        let descriptions = families.map(|family| family.describe()).collect::<Result<_, _>>()?;
        registry.register(Box::new(Exposition { metrics: Arc::clone(&metrics), descriptions }))?;
        Ok(metrics)
    }

    /// These webhooks decide from now on; what they are doing is asked of them when somebody looks.
    ///
    /// Call this when a configuration takes effect: that observers were made for a webhook does not
    /// say that it is ever asked.
    pub fn serving<'a>(&self, webhooks: impl IntoIterator<Item = &'a Arc<Webhook>>) {
        self.webhooks.serving(webhooks);
    }

    /// The whole chain has answered about a request, after so long.
    pub fn decided(&self, decision: &Decision, took: Duration) {
        self.requests.decided(decision, took);
    }
}

impl AuthorizationObservers for Metrics {
    fn webhook_observer(&self, name: &str) -> Arc<dyn authz_webhook::WebhookObserver> {
        self.webhooks.named(name)
    }

    fn authorizer_observer(&self, kind: AuthorizerType, name: &str) -> Option<DecisionObserver> {
        let authorizer = self.authorizers.named(kind, name);
        Some(Arc::new(move |verdict, took| authorizer.count_decision(verdict, took)))
    }

    fn connection_observer(&self) -> Arc<dyn https_client::Observe> {
        Arc::<Certificates>::clone(&self.certificates)
    }

    fn on_reload(&self, status: ReloadStatus, at: SystemTime) {
        self.reloads.reloaded(status, at);
    }

    fn on_config_applied(&self, applied: &AppliedConfig<'_>) {
        self.reloads.applied(applied);
    }
}

/// What the registry holds.
struct Exposition {
    metrics: Arc<Metrics>,
    descriptions: Vec<Desc>,
}

impl Collector for Exposition {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let metrics = &self.metrics;
        let mut families = Vec::with_capacity(self.descriptions.len());
        families.extend(metrics.requests.collect());
        families.extend(metrics.authorizers.collect());
        families.extend(metrics.webhooks.collect());
        families.extend(metrics.certificates.collect());
        families.push(metrics.reloads.collect_generation());
        if metrics.is_file_mode {
            families.extend(metrics.reloads.collect_file());
        }
        families
    }
}
