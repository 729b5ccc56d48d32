//! Why there are no authorizers.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use authz_webhook::Timeout;

use crate::paths::PathError;
use crate::service_account::ServiceAccountError;

/// Why the authorizers of an extension server can not be made. A server that can not make them must
/// not start.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A path that everybody may use is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The time of an attempt is out of range.
    #[error("timeout must be greater than zero and at most {max:?}, got {0:?}", max = Timeout::MAX)]
    Timeout(Duration),
    /// The path of the kubeconfig does not lead anywhere: it is empty, or the working directory is
    /// gone that it begins in.
    #[error("failed to get delegated authorization kubeconfig: `{}`: {error}", path.display())]
    KubeconfigPath {
        /// The path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The kubeconfig can not be used.
    #[error("failed to get delegated authorization kubeconfig: {0}")]
    Kubeconfig(kubeconfig::LoadError),
    /// The file that should be a kubeconfig is one of external authorization hooks. Those are for the
    /// core server, which every extension server asks: a hook here would be asked twice, or bypassed.
    #[error(
        "failed to get delegated authorization kubeconfig: `{}` is an \
         ExternalAuthorizationHookConfiguration, which only the core server may have",
        .0.display()
    )]
    Hooks(PathBuf),
    /// The cluster that this process should run in can not be used.
    #[error("failed to get delegated authorization kubeconfig: {0}")]
    InCluster(ServiceAccountError),
    /// The core server can not be called the way that its files say.
    #[error("failed to call the core server: {0}")]
    Client(https_client::BuildError),
}

impl From<kubeconfig::LoadError> for BuildError {
    fn from(error: kubeconfig::LoadError) -> Self {
        Self::Kubeconfig(error)
    }
}

impl From<ServiceAccountError> for BuildError {
    fn from(error: ServiceAccountError) -> Self {
        Self::InCluster(error)
    }
}

impl From<https_client::BuildError> for BuildError {
    fn from(error: https_client::BuildError) -> Self {
        Self::Client(error)
    }
}
