//! Admission hooks through a server, over real sockets.
//!
//! The crates `admission` and `admission-hooks` test every detail of matching and of the responses of
//! hooks. These tests repeat the cases with real objects, namespaces, services and deadlines.
//!
//! The server has no paths with the operation CONNECT and no resource in two groups. Cases that need
//! one are tested with the most similar resource.

mod changing_configuration;
mod completed;
mod conditions;
mod deadlines;
mod denials;
mod dry_run;
mod equivalents;
mod exempt;
mod failures;
mod identity;
mod loops;
mod matching;
mod notes;
mod order;
mod patches;
mod reinvocation;
mod selectors;
mod services;
mod tokens;
mod told;

use fake_http::{Peer, Script};
use serde_json::{Value, json};
use server::ServerOptions;

use crate::admission_hooks::{HookAuthority, asked, register_with, webhook_configuration};
use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const NAMESPACES: &str = "/api/v1/namespaces";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const EXTERNAL: &str =
    "/apis/admissionregistration.k8s.io/v1alpha1/externaladmissionhookconfigurations";
const INITIALIZERS: &str = "/apis/admissionregistration.k8s.io/v1alpha1/initializerconfigurations";

/// A server, its administrator, and the CA of the hooks.
struct Scene {
    cluster: Cluster,
    admin: Client,
    authority: HookAuthority,
}

impl Scene {
    async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// A server with options that differ.
    async fn start_with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder"), change).await
    }

    /// Starts a server on the data in a folder.
    async fn start_in(folder: tempfile::TempDir, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let cluster = Cluster::start_by(folder, |_, _| {}, change).await;
        let admin = cluster.admin();
        Self { cluster, admin, authority: HookAuthority::new() }
    }

    fn hook(&self, script: impl Into<Script>) -> Peer {
        self.authority.hook(script)
    }

    /// An entry that asks a peer about configmaps, with some fields otherwise.
    fn webhook(&self, name: &str, peer: &Peer, changes: Value) -> Value {
        self.authority.webhook(name, peer, changes)
    }

    /// Makes these the entries of the one configuration of a kind.
    async fn configure(&self, path: &str, webhooks: &[Value]) {
        let code = self.admin.delete(&format!("{path}/c")).await.code;
        assert!(matches!(code, 200 | 404), "{code}");
        register_with(&self.admin, path, &webhook_configuration(path, "c", webhooks)).await;
    }

    /// Makes one peer the only hook of a kind.
    async fn ask(&self, path: &str, peer: &Peer, changes: Value) {
        self.configure(path, &[self.webhook("h.x.y", peer, changes)]).await;
    }

    /// Creates a configmap, with these query parameters.
    async fn create(&self, query: &str) -> Answer {
        self.admin.post(&format!("{MAPS}?{query}"), &map("m")).await
    }

    /// Grants alice verbs on resources of a group in all namespaces.
    async fn grant_alice(&self, verbs: &[&str], group: &str, resources: &[&str]) -> Client {
        let rules = json!([{"apiGroups": [group], "resources": resources, "verbs": verbs}]);
        let role = json!({"metadata": {"name": "own"}, "rules": rules});
        self.admin.post(&format!("{RBAC}/clusterroles"), &role).await.expect(201);
        let binding = json!({"metadata": {"name": "alice"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "own"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
        self.admin.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.expect(201);
        self.cluster.alice()
    }

    /// The value of a metric with its labels; zero if it is not there.
    async fn metric(&self, series: &str) -> f64 {
        let text = self.admin.get("/metrics").await.text();
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |line| line.parse().expect("a number"))
    }
}

/// The requests that a hook received since the last call, except those of the server itself.
fn told(peer: &Peer) -> Vec<Value> {
    let told = peer.take_requests();
    let told = told.iter().map(asked);
    told.filter(|told| told["userInfo"]["username"] != server::SERVER_USER).collect()
}

/// The only request that a hook received.
#[track_caller]
fn told_once(peer: &Peer) -> Value {
    let mut told = told(peer);
    assert_eq!(told.len(), 1, "{told:?}");
    told.remove(0)
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "b"}})
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

/// The message of a status with a code.
#[track_caller]
fn message(answer: Answer, code: u16) -> String {
    answer.expect(code)["message"].as_str().expect("a message").to_owned()
}

fn everything() -> Value {
    json!([crate::admission_hooks::rule(&["*"], "*", "*/*")])
}
