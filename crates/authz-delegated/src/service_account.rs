//! The core server of the cluster that a pod runs in.

use std::io;
use std::path::{Path, PathBuf};

use https_client::{
    CaBundle, CaBundleError, Credentials, Place, Proxy, Scheme, Secret, Target, Trust,
};

/// Where pods find the credentials of their service account.
const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What a pod is told about its cluster: where the core server is, whom to trust, and who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAccount {
    /// The name or address of the core server; empty outside of a cluster.
    pub host: String,
    /// Its port; empty outside of a cluster.
    pub port: String,
    /// The file of the token, which is renewed all the time and so is read again and again.
    pub token_file: PathBuf,
    /// The file of the authorities that sign the certificate of the core server.
    pub ca_file: PathBuf,
}

/// Why a pod does not know its core server.
#[derive(Debug, thiserror::Error)]
pub enum ServiceAccountError {
    /// The process runs in no pod.
    #[error(
        "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and \
         KUBERNETES_SERVICE_PORT must be defined"
    )]
    NotInCluster,
    /// The port is none.
    #[error("KUBERNETES_SERVICE_PORT: `{0}` is not a port")]
    Port(String),
    /// A file can not be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file of the token has none.
    #[error("read empty token from file {0:?}")]
    EmptyToken(PathBuf),
    /// The file of the authorities has none.
    #[error("unable to load root certificates: {}: {error}", path.display())]
    Roots {
        /// The file.
        path: PathBuf,
        /// Why.
        error: CaBundleError,
    },
}

impl ServiceAccount {
    /// What the pod is told that this process runs in.
    pub fn of_this_pod() -> Self {
        Self::new(&|name| std::env::var(name).ok(), Path::new(FOLDER))
    }

    /// What a pod is told by these variables of its environment and the files in this folder.
    pub fn new(environment: &dyn Fn(&str) -> Option<String>, folder: &Path) -> Self {
        Self {
            host: environment("KUBERNETES_SERVICE_HOST").unwrap_or_default(),
            port: environment("KUBERNETES_SERVICE_PORT").unwrap_or_default(),
            token_file: folder.join("token"),
            ca_file: folder.join("ca.crt"),
        }
    }

    /// The core server, without a path.
    ///
    /// Kubernetes trusts the authorities of the system if those of the cluster can not be read. No
    /// public authority vouches for a core server, so here that is an error: the token would be shown
    /// to whoever has a certificate of any of them.
    pub(crate) fn target(&self) -> Result<Target, ServiceAccountError> {
        if self.host.is_empty() || self.port.is_empty() {
            return Err(ServiceAccountError::NotInCluster);
        }
        let port = self.port.parse().map_err(|_| ServiceAccountError::Port(self.port.clone()))?;
        let token = read(&self.token_file)?;
        let token = token.trim_ascii();
        if token.is_empty() {
            return Err(ServiceAccountError::EmptyToken(self.token_file.clone()));
        }
        let roots = CaBundle::from_pem(&read(&self.ca_file)?)
            .map_err(|error| ServiceAccountError::Roots { path: self.ca_file.clone(), error })?;
        let place = Place::Url { scheme: Scheme::Https, host: self.host.clone(), port: Some(port) };
        let credentials = Credentials::TokenFile {
            path: self.token_file.clone(),
            fallback: Some(Secret::new(token)),
        };
        Ok(Target {
            trust: Trust::CaBundle(roots),
            credentials,
            proxy: Proxy::Environment,
            ..Target::new(place, "")
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ServiceAccountError> {
    let content = kubeconfig::read_file(path).and_then(|content| {
        let fits = content.len() <= kubeconfig::FILE_BYTES_MAX;
        if fits { Ok(content) } else { Err(io::ErrorKind::FileTooLarge.into()) }
    });
    content.map_err(|error| ServiceAccountError::Read { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pod with files; `None` leaves one out.
    fn pod(token: Option<&str>, ca: Option<&str>) -> (tempfile::TempDir, ServiceAccount) {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("token", token), ("ca.crt", ca)] {
            if let Some(content) = content {
                std::fs::write(folder.path().join(name), content).unwrap();
            }
        }
        let environment = |name: &str| match name {
            "KUBERNETES_SERVICE_HOST" => Some("fd00::1".to_owned()),
            "KUBERNETES_SERVICE_PORT" => Some("6443".to_owned()),
            _ => None,
        };
        let account = ServiceAccount::new(&environment, folder.path());
        (folder, account)
    }

    fn authority() -> String {
        fake_http::Authority::new("cluster").unwrap().pem()
    }

    #[test]
    fn a_pod_knows_its_core_server() {
        let (_folder, account) = pod(Some("hush\n"), Some(&authority()));
        let target = account.target().unwrap();
        let host = "fd00::1".to_owned();
        assert_eq!(target.place, Place::Url { scheme: Scheme::Https, host, port: Some(6443) });
        assert!(matches!(target.trust, Trust::CaBundle(_)));
        let path = account.token_file.clone();
        let fallback = Some(Secret::new("hush"));
        assert_eq!(target.credentials, Credentials::TokenFile { path, fallback });
        assert_eq!(target.proxy, Proxy::Environment);
        assert!(!format!("{target:?}").contains("hush"));
    }

    #[test]
    fn outside_of_a_cluster_there_is_none() {
        let (_folder, account) = pod(Some("hush"), Some(&authority()));
        let want = "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and \
                    KUBERNETES_SERVICE_PORT must be defined";
        for outside in [
            ServiceAccount { host: String::new(), ..account.clone() },
            ServiceAccount { port: String::new(), ..account.clone() },
        ] {
            assert_eq!(outside.target().unwrap_err().to_string(), want);
        }
        for port in ["https", "65536", "-1", "443 "] {
            let error = ServiceAccount { port: port.to_owned(), ..account.clone() }.target();
            let want = format!("KUBERNETES_SERVICE_PORT: `{port}` is not a port");
            assert_eq!(error.unwrap_err().to_string(), want);
        }
    }

    #[test]
    fn both_files_are_needed() {
        let ca = authority();
        let error = |token, ca| pod(token, ca).1.target().unwrap_err();
        assert!(matches!(error(None, Some(&*ca)), ServiceAccountError::Read { path, .. }
            if path.ends_with("token")));
        assert!(matches!(error(Some("hush"), None), ServiceAccountError::Read { path, .. }
            if path.ends_with("ca.crt")));
        assert!(matches!(error(Some(" \n"), Some(&*ca)), ServiceAccountError::EmptyToken(_)));
        let at_limit = " ".repeat(kubeconfig::FILE_BYTES_MAX);
        assert!(matches!(error(Some(&*at_limit), None), ServiceAccountError::EmptyToken(_)));
        let too_large = format!("{at_limit} ");
        assert!(matches!(error(Some(&*too_large), None), ServiceAccountError::Read { .. }));
        let broken = error(Some("hush"), Some("nothing")).to_string();
        assert!(broken.ends_with("ca.crt: unable to parse bytes as PEM block"), "{broken}");
    }
}
