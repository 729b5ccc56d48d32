//! What can be chosen.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use authz_webhook::Guards;
use https_client::Limits;

use crate::bucket::RateLimit;
use crate::observe::{Observe, Unobserved};
use crate::service_account::ServiceAccount;

/// How long answers are kept: short, so that changes are soon in effect, but long enough for storms.
const DEFAULT_TTL: Duration = Duration::from_secs(10);

/// How long the core server may take for one attempt.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// What can be chosen for the authorizers of an extension server.
#[derive(Clone)]
pub struct Options {
    /// Who decides.
    pub core_server: CoreServer,
    /// Groups whose members may do everything, `system:masters` unless told: the core server would
    /// say the same of them. With none, the core server is asked about everybody.
    pub always_allow_groups: Vec<String>,
    /// Paths that everybody may use without the core server being asked; the flag
    /// `--authorization-always-allow-paths`. `/healthz`, `/readyz` and `/livez` unless told, so that
    /// a server whose core server is gone is not taken for dead itself.
    ///
    /// The leading slash is optional. A `*` at the end, and only there, makes it a prefix.
    pub always_allow_paths: Vec<String>,
    /// How long an allowance is used again; zero keeps none. Ten seconds unless told; the flag
    /// `--authorization-webhook-cache-authorized-ttl`.
    pub authorized_ttl: Duration,
    /// How long any other answer is used again; zero keeps none. Ten seconds unless told; the flag
    /// `--authorization-webhook-cache-unauthorized-ttl`.
    pub unauthorized_ttl: Duration,
    /// How long one attempt may take, with its wait for the rate limit: more than nothing, at most
    /// [`authz_webhook::Timeout::MAX`]. Ten seconds unless told.
    pub timeout: Duration,
    /// How often the core server may be asked.
    pub rate_limit: RateLimit,
    /// How often a failed request is tried again, and what keeps a bad core server from harming this
    /// one.
    pub guards: Guards,
    /// What bounds the connections to the core server.
    pub limits: Limits,
    /// Who counts requests.
    pub observe: Arc<dyn Observe>,
}

/// Where the core server is, and who we are to it. That user must be permitted to create
/// `subjectaccessreviews` of the API group `authorization.k8s.io`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoreServer {
    /// As a kubeconfig file says; the flag `--authorization-kubeconfig`.
    Kubeconfig(PathBuf),
    /// The one of the cluster whose pod this process runs in.
    InCluster(ServiceAccount),
}

impl CoreServer {
    /// The core server that the flag `--authorization-kubeconfig` means: without a file it is the
    /// one of the cluster that this process runs in.
    pub fn from_flag(kubeconfig: Option<PathBuf>) -> Self {
        match kubeconfig.filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => Self::Kubeconfig(path),
            None => Self::InCluster(ServiceAccount::of_this_pod()),
        }
    }
}

impl Options {
    /// The defaults, which are those of Kubernetes.
    pub fn new(core_server: CoreServer) -> Self {
        Self {
            core_server,
            always_allow_groups: owned(&["system:masters"]),
            always_allow_paths: owned(&["/healthz", "/readyz", "/livez"]),
            authorized_ttl: DEFAULT_TTL,
            unauthorized_ttl: DEFAULT_TTL,
            timeout: DEFAULT_TIMEOUT,
            rate_limit: RateLimit::default(),
            guards: Guards::default(),
            limits: Limits::default(),
            observe: Arc::new(Unobserved),
        }
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// The observer says nothing about itself.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("core_server", &self.core_server)
            .field("always_allow_groups", &self.always_allow_groups)
            .field("always_allow_paths", &self.always_allow_paths)
            .field("authorized_ttl", &self.authorized_ttl)
            .field("unauthorized_ttl", &self.unauthorized_ttl)
            .field("timeout", &self.timeout)
            .field("rate_limit", &self.rate_limit)
            .field("guards", &self.guards)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_kubernetes() {
        let options = Options::new(CoreServer::Kubeconfig("/k".into()));
        assert_eq!(options.always_allow_groups, ["system:masters"]);
        assert_eq!(options.always_allow_paths, ["/healthz", "/readyz", "/livez"]);
        let ten = Duration::from_secs(10);
        let times = [options.authorized_ttl, options.unauthorized_ttl, options.timeout];
        assert_eq!(times, [ten, ten, ten]);
        assert_eq!((options.rate_limit.qps.get(), options.rate_limit.burst.get()), (200, 400));
        assert_eq!(options.guards.retry.attempts_max, 5);
    }

    #[test]
    fn without_a_kubeconfig_the_pod_tells() {
        let path = PathBuf::from("/etc/core.yaml");
        assert_eq!(CoreServer::from_flag(Some(path.clone())), CoreServer::Kubeconfig(path));
        for flag in [None, Some(PathBuf::new())] {
            let CoreServer::InCluster(account) = CoreServer::from_flag(flag) else { panic!() };
            let folder = "/var/run/secrets/kubernetes.io/serviceaccount";
            assert_eq!(account.token_file, PathBuf::from(format!("{folder}/token")));
            assert_eq!(account.ca_file, PathBuf::from(format!("{folder}/ca.crt")));
        }
    }
}
