//! From a core server to what its reviews are posted by.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use authz_reload::{HookTransport, endpoint};
use authz_webhook::{AbsolutePath, Connection, Transport};
use https_client::{Client, Target};
use kubeconfig::Loaded;

use crate::bucket::Bucket;
use crate::build_error::BuildError;
use crate::observe::Counted;
use crate::options::{CoreServer, Options};
use crate::throttle::Throttled;

/// Where the core server takes questions, below the path that its URL may have.
const REVIEWS_PATH: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// A core server that is known.
pub(crate) struct Found {
    pub(crate) target: Target,
    /// How it was found, for whoever shows the settings.
    pub(crate) connection: Connection,
    /// What is accepted but should be changed.
    pub(crate) warnings: Vec<String>,
}

/// Finds the core server. Reads files, so it blocks.
pub(crate) fn find(core_server: &CoreServer) -> Result<Found, BuildError> {
    let mut found = match core_server {
        CoreServer::Kubeconfig(path) => in_kubeconfig(path)?,
        CoreServer::InCluster(account) => Found {
            target: account.target()?,
            connection: Connection::InClusterConfig,
            warnings: Vec::new(),
        },
    };
    let base = found.target.path.trim_end_matches('/');
    found.target.path = format!("{base}{REVIEWS_PATH}");
    Ok(found)
}

fn in_kubeconfig(path: &Path) -> Result<Found, BuildError> {
    let no_path = |error| BuildError::KubeconfigPath { path: path.to_owned(), error };
    let absolute = std::path::absolute(path).map_err(no_path)?;
    let connection = match kubeconfig::load(&absolute, &kubeconfig::read_file)? {
        Loaded::Kubeconfig(connection) => *connection,
        Loaded::Hooks(_) => return Err(BuildError::Hooks(path.to_owned())),
    };
    let shown = AbsolutePath::new(&absolute.to_string_lossy())
        .ok_or_else(|| no_path(io::ErrorKind::InvalidInput.into()))?;
    let warnings = connection.warnings.into_iter();
    Ok(Found {
        target: connection.target,
        connection: Connection::KubeConfigFile(shown),
        warnings: warnings
            .map(|warning| format!("{}: {}: {}", warning.file, warning.field, warning.message))
            .collect(),
    })
}

/// Posts reviews to a core server: counted, then at the permitted rate, then over the network.
pub(crate) fn transport(
    target: Target,
    timeout: Duration,
    options: &Options,
) -> Result<impl Transport + 'static, BuildError> {
    let endpoint = endpoint(&target);
    let client =
        Client::new(target, None, options.limits.clone(), Arc::new(https_client::Unobserved))?;
    Ok(Counted {
        inner: Throttled {
            inner: HookTransport::new(Arc::new(client), &endpoint, timeout),
            bucket: Bucket::new(options.rate_limit),
        },
        observe: Arc::clone(&options.observe),
    })
}
