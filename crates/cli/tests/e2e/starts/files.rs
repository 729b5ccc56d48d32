//! The files that flags name.

use std::path::PathBuf;

use fake_http::{Authority, Issued, Leaf, NOBODY};
use serde_json::json;
use tempfile::TempDir;

use crate::server::directory;

/// A folder with one file of each kind that the server reads.
pub(super) struct Files {
    folder: TempDir,
    /// The authority that issued all certificates.
    pub(super) authority_pem: String,
    /// An administrator by a certificate of that authority.
    pub(super) administrator: Issued,
}

impl Files {
    pub(super) fn new() -> Self {
        let folder = directory();
        let authority = Authority::new("files").unwrap();
        let administrator =
            authority.issue(&Leaf::client("ana").organization("system:masters")).unwrap();
        let server = authority.issue(&Leaf::loopback()).unwrap();
        administrator.write(folder.path(), "client").unwrap();
        server.write(folder.path(), "server").unwrap();
        let files = Self { folder, authority_pem: authority.pem(), administrator };
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            // Nobody is asked about an administrator.
            "clusters": [{"name": "guard", "cluster": {"server": format!("https://{NOBODY}/")}}],
            "users": [{"name": "*.example.com", "user": {"token": "t"}}],
            "contexts": [{"name": "guard", "context": {"cluster": "guard", "user": ""}}],
            "current-context": "guard",
        });
        let policy = json!({
            "apiVersion": "abac.authorization.kubernetes.io/v1beta1",
            "kind": "Policy",
            "spec": {"user": "ana", "namespace": "*", "resource": "*", "apiGroup": "*"},
        });
        let authorizers =
            [json!({"type": "Node", "name": "node"}), json!({"type": "RBAC", "name": "rbac"})];
        let authorization = json!({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthorizationConfiguration",
            "authorizers": authorizers,
        });
        let audit = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "rules": [{"level": "RequestResponse"}],
        });
        for (name, text) in [
            ("ca.crt", files.authority_pem.clone()),
            ("tokens.csv", "secret,ana,1,\"system:masters\"\n".to_owned()),
            ("kubeconfig", kubeconfig.to_string()),
            ("policies.jsonl", policy.to_string()),
            ("authorization.yaml", authorization.to_string()),
            ("audit.yaml", audit.to_string()),
        ] {
            std::fs::write(files.path(name), text).unwrap();
        }
        files
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The flags, with `DIR` standing for this folder.
    pub(super) fn fill(&self, flag: &str) -> String {
        flag.replace("DIR", self.folder.path().to_str().unwrap())
    }
}
