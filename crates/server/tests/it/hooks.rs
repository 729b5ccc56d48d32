//! Webhooks that a test scripts, and servers that ask them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use authz_reload::{AuthorizationOptions, AuthorizationPlan, AuthorizerBuilder, Generation};
use authz_webhook::WebhookLimits;
use fake_http::{Answer, Authority, Leaf, Peer, Script, ServerTls};
use serde_json::{Value, json};
use server::{ServiceDirectory, ServiceRouting};
use tempfile::TempDir;

use crate::cluster::Cluster;

/// A folder of files that configure authorization.
pub(crate) struct Hooks {
    pub(crate) folder: TempDir,
    pub(crate) authority: Authority,
    pub(crate) guards: WebhookLimits,
}

impl Hooks {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::new("webhooks").expect("an authority");
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).expect("a file");
        Self { folder, authority, guards: WebhookLimits::default() }
    }

    /// Starts a service, which presents a certificate for a name, and writes its kubeconfig.
    pub(crate) fn peer(&self, name: &str, script: impl Into<Script>) -> Peer {
        let peer = self.service(&Leaf::loopback(), script);
        self.kubeconfig(name, &format!("https://{}/authorize", peer.address()));
        peer
    }

    /// Starts a service with a certificate, which offers HTTP/2 as most do.
    pub(crate) fn service(&self, leaf: &Leaf, script: impl Into<Script>) -> Peer {
        let tls = ServerTls::new(self.authority.issue(leaf).expect("a certificate"));
        Peer::start_tls(script, &tls.offer_http2()).expect("a peer")
    }

    pub(crate) fn kubeconfig(&self, name: &str, server: &str) {
        let text = json!({
            "clusters": [{"cluster": {"server": server, "certificate-authority": "ca.pem"}}],
        });
        self.write(&format!("{name}.kubeconfig"), &text.to_string());
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// The entry of a webhook in a configuration, with some fields otherwise.
    pub(crate) fn webhook(&self, name: &str, changes: Value) -> Value {
        let kubeconfig = self.folder.path().join(format!("{name}.kubeconfig"));
        let mut webhook = json!({
            "timeout": "5s",
            "failurePolicy": "NoOpinion",
            "subjectAccessReviewVersion": "v1",
            "matchConditionSubjectAccessReviewVersion": "v1",
            "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": kubeconfig},
        });
        let own = webhook.as_object_mut().expect("an object");
        own.extend(changes.as_object().expect("an object").clone());
        json!({"type": "Webhook", "name": name, "webhook": webhook})
    }

    /// The plan of a server with a configuration of these authorizers.
    pub(crate) fn plan(&self, authorizers: &[Value]) -> AuthorizationPlan {
        let configuration = json!({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthorizationConfiguration",
            "authorizers": authorizers,
        });
        let path = self.write("authorization.json", &configuration.to_string());
        self.plan_of(&AuthorizationOptions { config_file: Some(path), ..Default::default() })
    }

    pub(crate) fn plan_of(&self, options: &AuthorizationOptions) -> AuthorizationPlan {
        authz_reload::plan_from_flags(options, authz_reload::DEFAULT_MODES).expect("a plan")
    }

    /// A server with these authorizers, and with options that differ.
    pub(crate) async fn cluster(
        &self,
        plan: &AuthorizationPlan,
        change: fn(&mut server::ServerOptions, &Path),
    ) -> Cluster {
        let folder = tempfile::tempdir().expect("a folder");
        Cluster::start_by(folder, change, |options| {
            let directory = Arc::new(ServiceDirectory::new(ServiceRouting::Endpoints));
            let metrics = Arc::clone(&options.authorization_metrics);
            let builder = self.builder(Arc::clone(&directory), metrics);
            options.authorizer_slots = Arc::clone(
                &builder.build_first_generation(plan).expect("authorizers").authorizer_slots,
            );
            options.service_directory = directory;
        })
        .await
    }

    fn builder(
        &self,
        directory: Arc<ServiceDirectory>,
        metrics: Arc<metrics::AuthorizationMetrics>,
    ) -> AuthorizerBuilder {
        AuthorizerBuilder {
            plugin_authorizers: authz_reload::PluginAuthorizers::default(),
            abac_options: manifests::abac::AbacPolicyLoadOptions::default(),
            webhook_limits: self.guards,
            connection_limits: https_client::Limits::default(),
            service_resolver: Some(directory),
            observer_factory: metrics,
            base_directory: self.folder.path().to_owned(),
        }
    }

    /// Builds the authorizers of a plan, without metrics.
    pub(crate) fn generation(&self, plan: &AuthorizationPlan) -> Generation {
        let registry = prometheus::Registry::new();
        let metrics = metrics::AuthorizationMetrics::new(&registry, "test", true).expect("metrics");
        let directory = Arc::new(ServiceDirectory::new(ServiceRouting::Endpoints));
        self.builder(directory, metrics).build_first_generation(plan).expect("authorizers")
    }
}

/// A review that answers with this status.
pub(crate) fn review(status: Value) -> Answer {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "status": status,
    });
    Answer::json(review.to_string())
}

pub(crate) fn allow() -> Answer {
    review(json!({"allowed": true, "reason": "because"}))
}

pub(crate) fn deny() -> Answer {
    review(json!({"allowed": false, "denied": true, "reason": "because not"}))
}

pub(crate) fn abstain() -> Answer {
    review(json!({"allowed": false}))
}

pub(crate) fn rbac() -> Value {
    json!({"type": "RBAC", "name": "rbac"})
}

/// No wait of a test takes as long as this.
pub(crate) const LONG: Duration = Duration::from_secs(20);
