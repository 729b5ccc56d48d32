//! The interface to metrics, which another crate implements.

use std::sync::Arc;
use std::time::SystemTime;

use authz_chain::{AuthorizerType, DecisionObserver};

/// Creates the observers of authorizers and connections, and observes reloads.
///
/// This is a trait because the crate `metrics` depends on this crate. The builder creates observers while it builds a
/// configuration and not for each request, so an implementation may look up its labels here. An authorizer that is
/// built again gets a new observer under the same name, and both count in the same series.
pub trait AuthorizationObserverFactory: Send + Sync {
    /// Creates the observer of the calls of one webhook.
    fn create_webhook_observer(&self, name: &str) -> Arc<dyn authz_webhook::WebhookObserver>;

    /// Creates the observer of the decisions of one authorizer; a webhook also has one. With `None` the chain does not
    /// read the clock.
    fn create_decision_observer(
        &self,
        kind: AuthorizerType,
        name: &str,
    ) -> Option<DecisionObserver>;

    /// Returns the observer of the connections to all webhooks.
    fn connection_observer(&self) -> Arc<dyn https_client::CertificateObserver>;

    /// Called when a reload ends. The first load and checks that find no change are not reloads. Checks of a file that
    /// was rejected before are not either. After a failure, a check that finds the configuration in effect again is a
    /// success: it ends the failure.
    fn on_reload(&self, status: ReloadStatus, at: SystemTime) {
        let _ = (status, at);
    }

    /// Called when a configuration takes effect: the first one at start, and each one that replaces it. Also called when
    /// the file changes and still defines the configuration in effect, because its hash is then another one.
    fn on_config_applied(&self, applied: &AppliedConfig<'_>) {
        let _ = applied;
    }
}

/// The result of a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReloadStatus {
    /// The new configuration is in effect.
    Success,
    /// The old configuration stays in effect.
    Failure,
}

impl ReloadStatus {
    /// Both results, for metric labels.
    pub const ALL: [Self; 2] = [Self::Success, Self::Failure];

    /// The value of the label `status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

/// A configuration that has taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppliedConfig<'a> {
    /// The hash of the configuration file; `None` if flags define the configuration.
    pub hash: Option<&'a str>,
    /// The number of the generation, counted from 1.
    pub generation: u64,
    /// The type and the name of each authorizer, in order. An implementation may delete the series of others.
    pub authorizer_types_and_names: &'a [(AuthorizerType, &'a str)],
}

/// An observer that ignores every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObservers;

impl AuthorizationObserverFactory for NoObservers {
    fn create_webhook_observer(&self, _name: &str) -> Arc<dyn authz_webhook::WebhookObserver> {
        Arc::new(authz_webhook::NoObserver)
    }

    fn create_decision_observer(
        &self,
        _kind: AuthorizerType,
        _name: &str,
    ) -> Option<DecisionObserver> {
        None
    }

    fn connection_observer(&self) -> Arc<dyn https_client::CertificateObserver> {
        Arc::new(https_client::NoCertificateObserver)
    }
}
