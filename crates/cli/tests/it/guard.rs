//! A real webhook: an HTTPS service on a loopback address, and its connection files.

use std::path::PathBuf;

use fake_http::{Answer, Authority, Conduct, Leaf, Peer, Request, Script, ServerTls};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A service with scripted answers, and a folder for its files.
pub(crate) struct Guard {
    peer: Peer,
    folder: TempDir,
}

/// An answer with this status of a review.
fn review(version: &str, status: &Value) -> Answer {
    let api_version = format!("authorization.k8s.io/{version}");
    let kind = "SubjectAccessReview";
    let review = json!({"apiVersion": api_version, "kind": kind, "status": status});
    Answer::json(review.to_string())
}

pub(crate) fn allow() -> Answer {
    review("v1", &json!({"allowed": true, "reason": "the guard knows you"}))
}

pub(crate) fn deny() -> Answer {
    review("v1", &json!({"allowed": false, "denied": true, "reason": "not on my watch"}))
}

pub(crate) fn no_opinion() -> Answer {
    review("v1", &json!({"allowed": false}))
}

/// An answer in the review version of the request.
pub(crate) fn in_either_version(is_allowed: bool) -> Script {
    Script::rule(move |request| {
        let is_v1 = String::from_utf8_lossy(&request.body).contains("authorization.k8s.io/v1\"");
        let version = if is_v1 { "v1" } else { "v1beta1" };
        let reason = "the guard knows you";
        review(version, &json!({"allowed": is_allowed, "denied": !is_allowed, "reason": reason}))
    })
}

/// The request is read and never answered.
pub(crate) fn hang() -> Answer {
    Answer::misbehave(Conduct::Hang)
}

impl Guard {
    /// A service with a good certificate.
    pub(crate) fn start(script: impl Into<Script>) -> Self {
        Self::with_certificate(script, &Leaf::loopback())
    }

    /// A service with this certificate, by an authority that its kubeconfig names.
    pub(crate) fn with_certificate(script: impl Into<Script>, leaf: &Leaf) -> Self {
        let authority = Authority::new("guard").unwrap();
        let tls = ServerTls::new(authority.issue(leaf).unwrap());
        let peer = Peer::start_tls(script, &tls).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let guard = Self { peer, folder };
        std::fs::write(guard.path("ca.crt"), authority.pem()).unwrap();
        let kubeconfig = guard.write("kubeconfig", "");
        std::fs::write(kubeconfig, kubeconfig_of(&guard.url(), "ca.crt")).unwrap();
        guard
    }

    /// The URL that reviews are posted to.
    pub(crate) fn url(&self) -> String {
        format!("https://{}/authorize", self.peer.address())
    }

    /// The path of a file in the folder. The file need not exist.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the folder and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The path of the kubeconfig of the service.
    pub(crate) fn kubeconfig(&self) -> String {
        self.path("kubeconfig").to_str().unwrap().to_owned()
    }

    /// A configuration with this webhook, named `guard.example.com`, before type RBAC. `more` are
    /// further fields of the webhook, a line each.
    pub(crate) fn configuration(&self, failure_policy: &str, more: &[&str]) -> String {
        let more: String = more.iter().map(|line| format!("    {line}\n")).collect();
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: guard.example.com
  webhook:
    timeout: 1s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: {failure_policy}
    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {}}}
{more}- type: RBAC
  name: rbac
",
            self.kubeconfig()
        );
        self.write("authorization.yaml", &text)
    }

    /// The requests since the last call of this function.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.peer.take_requests()
    }

    /// The bodies of those requests.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        let body = |request: Request| serde_json::from_slice(&request.body).unwrap();
        self.requests().into_iter().map(body).collect()
    }
}

/// A kubeconfig for a service. The file of the authority may be relative to that of the kubeconfig.
pub(crate) fn kubeconfig_of(url: &str, authority_file: &str) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "guard",
            "cluster": {"server": url, "certificate-authority": authority_file},
        }],
        "users": [{"name": "server", "user": {}}],
        "contexts": [{"name": "guard", "context": {"cluster": "guard", "user": "server"}}],
        "current-context": "guard",
    });
    config.to_string()
}
