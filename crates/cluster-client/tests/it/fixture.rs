//! Clusters that the tests share.

use std::path::{Path, PathBuf};

use cluster_client::ClusterClient;
use fake_http::{Authority, Leaf, Peer, Script, ServerTls};
use kubeconfig::{ContextOverrides, load_cluster_connection, read_file};
use tempfile::TempDir;

/// A scripted API server over TLS, with a folder for the kubeconfig and credential programs.
pub(crate) struct Cluster {
    pub(crate) peer: Peer,
    pub(crate) folder: TempDir,
}

impl Cluster {
    pub(crate) fn start(script: impl Into<Script>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("cluster").unwrap();
        let tls = ServerTls::new(authority.issue(&Leaf::loopback()).unwrap());
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        Self { peer: Peer::start_tls(script, &tls).unwrap(), folder }
    }

    /// A client whose kubeconfig has these settings of the user.
    pub(crate) fn client(&self, user: &str) -> ClusterClient {
        let address = self.peer.address();
        let kubeconfig = format!(
            "current-context: c\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'https://{address}', certificate-authority: ca.pem}}}}]\n\
             users: [{{name: u, user: {user}}}]\n"
        );
        let path = self.write("config", &kubeconfig);
        let connection = load_cluster_connection(&[path], &ContextOverrides::default(), &read_file);
        ClusterClient::new(connection.unwrap())
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a shell script that the user of a kubeconfig can run as `./NAME`.
    pub(crate) fn write_program(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.write(name, &format!("#!/bin/sh\n{script}\n"));
        set_mode(&path, std::fs::Permissions::from_mode(0o755));
    }
}

fn set_mode(path: &Path, mode: std::fs::Permissions) {
    std::fs::set_permissions(path, mode).unwrap();
}
