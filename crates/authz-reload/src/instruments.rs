//! What is told to whoever counts: metrics are made elsewhere.

use std::sync::Arc;
use std::time::SystemTime;

use authz_chain::AuthorizerType;

/// Makes the observers of everything that is assembled, and is told of reloads.
///
/// Observers are made while a configuration is assembled and not when a request comes, so an
/// implementation may look up its labels here. An authorizer that is assembled again gets a new
/// observer under the same name, and both mean the same series.
pub trait Instruments: Send + Sync {
    /// The observer of one webhook.
    fn webhook(&self, name: &str) -> Arc<dyn authz_webhook::Observe>;

    /// The observer of one authorizer of the chain; webhooks have one too. `None` if nobody wants
    /// to know what it answers, which saves looking at the clock.
    fn member(&self, kind: AuthorizerType, name: &str) -> Option<Arc<dyn authz_chain::Observe>>;

    /// The observer of all connections.
    fn remote(&self) -> Arc<dyn https_client::CertificateObserver>;

    /// A reload ended. The load at start and checks that find nothing new do not count.
    fn reloaded(&self, status: ReloadStatus, at: SystemTime) {
        let _ = (status, at);
    }

    /// A configuration is in effect: the one of the start, and each one that replaces it.
    fn applied(&self, applied: &Applied<'_>) {
        let _ = applied;
    }
}

/// How a reload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReloadStatus {
    /// The new configuration is in effect.
    Success,
    /// The old one stays.
    Failure,
}

impl ReloadStatus {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Success, Self::Failure];

    /// The value of the label `status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

/// A configuration that went into effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied<'a> {
    /// The hash of its file; `None` if it comes from flags.
    pub hash: Option<&'a str>,
    /// Its number, from 1.
    pub generation: u64,
    /// All its authorizers in order. Series of others may be forgotten.
    pub authorizers: &'a [(AuthorizerType, &'a str)],
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uninstrumented;

impl Instruments for Uninstrumented {
    fn webhook(&self, _name: &str) -> Arc<dyn authz_webhook::Observe> {
        Arc::new(authz_webhook::Unobserved)
    }

    fn member(&self, _kind: AuthorizerType, _name: &str) -> Option<Arc<dyn authz_chain::Observe>> {
        None
    }

    fn remote(&self) -> Arc<dyn https_client::CertificateObserver> {
        Arc::new(https_client::NoCertificateObserver)
    }
}
