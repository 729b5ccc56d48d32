//! The connection of a pod to its own cluster, from its service account.

use std::path::{Path, PathBuf};

use https_client::{Credentials, Destination, Scheme, Target};

use crate::cluster_connection::{ClusterConnection, ExecClusterInfo};
use crate::cluster_target::parse_ca_bundle;
use crate::connection::ServerConnection;
use crate::load_error::CertificateError;
use crate::referenced_files::{FileError, ReadFileFn, ReferencedFiles};

/// The folder in which a pod finds the credentials of its service account.
const SERVICE_ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The reason why a process has no connection to the cluster that it runs in.
#[derive(Debug, thiserror::Error)]
pub enum InClusterError {
    /// The environment does not name the API server.
    #[error(
        "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
    )]
    NotInCluster,
    /// A file of the service account cannot be used.
    #[error("{message}")]
    File {
        /// The message, with the path of the file.
        message: String,
    },
}

impl From<CertificateError> for InClusterError {
    fn from(error: CertificateError) -> Self {
        Self::File { message: error.to_string() }
    }
}

impl From<FileError> for InClusterError {
    fn from(error: FileError) -> Self {
        Self::File { message: error.to_string() }
    }
}

/// Loads the connection that a pod has to its cluster. `env` returns environment variables.
///
/// # Errors
///
/// The process does not run in a pod, or a file cannot be read.
pub fn in_cluster_connection(
    env: &dyn Fn(&str) -> Option<String>,
    read: ReadFileFn<'_>,
) -> Result<ClusterConnection, InClusterError> {
    let variable = |name| env(name).filter(|value| !value.is_empty());
    let (Some(host), Some(port)) =
        (variable("KUBERNETES_SERVICE_HOST"), variable("KUBERNETES_SERVICE_PORT"))
    else {
        return Err(InClusterError::NotInCluster);
    };
    let port = port.parse().map_err(|_| InClusterError::NotInCluster)?;
    let file = |name: &str| PathBuf::from(SERVICE_ACCOUNT_FOLDER).join(name);
    let (token, roots) = (file("token"), file("ca.crt"));
    let mut files = ReferencedFiles::new(&token, read);
    files.read(&token)?;
    let pem = files.read(&roots)?;
    let destination =
        Destination::Url { scheme: Scheme::Https, host: host.clone(), port: Some(port) };
    let mut target = Target::new(destination, "");
    target.server_trust = parse_ca_bundle(&pem)?;
    target.credentials = Credentials::TokenFile { path: token, fallback: None };
    let namespace = read(Path::new(&file("namespace"))).unwrap_or_default();
    let namespace = String::from_utf8_lossy(&namespace).trim().to_owned();
    let exec_cluster = ExecClusterInfo {
        server_url: format!("https://{host}:{port}"),
        certificate_authority_data: pem,
        ..ExecClusterInfo::default()
    };
    Ok(ClusterConnection {
        server_connection: ServerConnection {
            client_target: target,
            source_files: files.into_used_paths(),
            warnings: Vec::new(),
        },
        namespace,
        exec_settings: None,
        exec_cluster_info: exec_cluster,
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_process_outside_of_a_cluster_has_no_connection() {
        let read = |_: &Path| Err(io::Error::from_raw_os_error(2));
        let error = in_cluster_connection(&|_| None, &read).unwrap_err().to_string();
        assert!(error.contains("KUBERNETES_SERVICE_HOST"), "{error}");
        let env =
            |name: &str| Some(if name.ends_with("PORT") { "443" } else { "10.0.0.1" }.to_owned());
        let error = in_cluster_connection(&env, &read).unwrap_err().to_string();
        assert_eq!(
            error,
            "open /var/run/secrets/kubernetes.io/serviceaccount/token: no such file or directory"
        );
    }
}
