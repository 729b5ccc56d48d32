//! The cluster of a story: our own server or kube-apiserver.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::kube_apiserver::KubeApiserver;
use crate::client::{Client, Connection};
use crate::server::{Place, Server, directory};

/// The variable that names the binary of kube-apiserver.
const KUBE_APISERVER: &str = "PORTCULLIS_KUBE_APISERVER";
/// The time after which a write that a cluster has not begun to use is a fault.
const EFFECT_MAX: Duration = Duration::from_secs(30);
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// The number of times that stories of this process waited for a policy.
static N_WAITS: AtomicU32 = AtomicU32::new(0);
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// A cluster with an administrator, and a folder for files of the story.
pub(super) struct Cluster {
    server: ClusterServer,
    folder: TempDir,
    runtime: Runtime,
}

/// The server in the role of the cluster.
enum ClusterServer {
    Portcullis { server: Server, _data: TempDir },
    KubeApiserver(Box<KubeApiserver>),
}

impl Cluster {
    /// Starts a cluster with the authorizers Node and RBAC.
    pub(super) fn start() -> Self {
        Self::start_with(None)
    }

    /// Starts a cluster with the text of an AuthorizationConfiguration.
    pub(super) fn start_with(authorization: Option<&str>) -> Self {
        let folder = directory();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = match std::env::var_os(KUBE_APISERVER) {
            Some(program) => {
                let server = KubeApiserver::start(Path::new(&program), authorization);
                ClusterServer::KubeApiserver(Box::new(server))
            }
            None => {
                let data = directory();
                let flag = authorization.map(|text| {
                    let file = folder.path().join("authorization.yaml");
                    std::fs::write(&file, text).unwrap();
                    format!("--authorization-config={}", file.display())
                });
                let flags: Vec<&str> = flag.as_deref().into_iter().collect();
                let server = Server::start_with(data.path(), &Place::Embedded, &flags);
                ClusterServer::Portcullis { server, _data: data }
            }
        };
        Self { server, folder, runtime }
    }

    /// The folder for files of the story.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The kubeconfig of the administrator.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        match &self.server {
            ClusterServer::Portcullis { server, .. } => server.kubeconfig(),
            ClusterServer::KubeApiserver(server) => server.kubeconfig(),
        }
    }

    fn client(&self) -> Client {
        match &self.server {
            ClusterServer::Portcullis { server, .. } => server.client(),
            ClusterServer::KubeApiserver(server) => server.client(),
        }
    }

    fn log(&self) -> String {
        match &self.server {
            ClusterServer::Portcullis { server, .. } => server.log(),
            ClusterServer::KubeApiserver(server) => server.log(),
        }
    }

    /// Writes a file of the story.
    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Runs kubectl as the administrator.
    pub(super) fn kubectl(&self, args: &[&str]) -> Output {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.kubeconfig()).args(args).output().unwrap()
    }

    /// Creates the objects of a manifest and waits until they count.
    pub(super) fn create(&self, manifest: &str) {
        let objects = self.write("objects.yaml", manifest);
        let created = self.kubectl(&["create", "-f", objects.to_str().unwrap()]);
        assert!(created.status.success(), "{created:?} {}", self.log());
        self.wait_until_policy_counts();
    }

    /// Creates objects, each at the path of its collection, and waits until they count.
    pub(super) fn create_all(&self, objects: &[(String, Value)]) {
        self.runtime.block_on(async {
            let mut connection = self.client().connect().await.unwrap();
            for (path, object) in objects {
                let (code, answer) = connection.send(Method::POST, path, object).await.unwrap();
                assert_eq!(code, 201, "{path}: {answer}");
            }
        });
        self.wait_until_policy_counts();
    }

    /// Waits until roles and bindings that were written before count. kube-apiserver reads each of the four kinds by a watch, so
    /// one new object of each kind counts after all older ones.
    pub(super) fn wait_until_policy_counts(&self) {
        self.runtime.block_on(async {
            let mut connection = self.client().connect().await.unwrap();
            for (kind, in_namespace) in [("ClusterRole", ""), ("Role", "/namespaces/default")] {
                // The objects are new each time: the cluster may still know older ones that are gone.
                let name = format!("waits-{}", N_WAITS.fetch_add(1, Ordering::Relaxed));
                let roles = format!("{RBAC}{in_namespace}/{}s", kind.to_lowercase());
                let bindings = format!("{}bindings", roles.trim_end_matches('s'));
                let rule = json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["wait"] });
                let role = json!({ "metadata": { "name": name }, "rules": [rule] });
                let group = "rbac.authorization.k8s.io";
                let binding = json!({
                    "metadata": { "name": name },
                    "roleRef": { "apiGroup": group, "kind": kind, "name": name },
                    "subjects": [{ "apiGroup": group, "kind": "User", "name": name }],
                });
                for (path, object) in [(&roles, role), (&bindings, binding)] {
                    let (code, answer) =
                        connection.send(Method::POST, path, &object).await.unwrap();
                    assert_eq!(code, 201, "{path}: {answer}");
                }
                wait_until_allowed(&mut connection, &name).await;
            }
        });
    }

    /// Writes a kubeconfig with the token of a service account; its context has the name and the namespace of the account.
    pub(super) fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> PathBuf {
        let token = self.kubectl(&["create", "token", name, "-n", namespace]);
        assert!(token.status.success(), "{token:?}");
        let token = String::from_utf8(token.stdout).unwrap();
        let admin = std::fs::read_to_string(self.kubeconfig()).unwrap();
        let path = self.write(&format!("{name}.kubeconfig"), &admin);
        let cluster = admin.lines().find_map(|line| line.trim().strip_prefix("cluster: "));
        let cluster = format!("--cluster={}", cluster.unwrap_or("portcullis").trim());
        let user = format!("--user={name}");
        let in_namespace = format!("--namespace={namespace}");
        for args in [
            &["config", "set-credentials", name, "--token", token.trim()][..],
            &["config", "set-context", name, &cluster, &user, &in_namespace],
        ] {
            let mut command = Command::new("kubectl");
            let done = command.arg("--kubeconfig").arg(&path).args(args).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        }
        path
    }
}

/// Asks until the cluster allows the request of the role that [`Cluster::wait_until_policy_counts`] writes.
async fn wait_until_allowed(connection: &mut Connection, user: &str) {
    let attributes = json!({ "namespace": "default", "verb": "wait", "resource": "pods" });
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": { "user": user, "resourceAttributes": attributes },
    });
    let begun = Instant::now();
    loop {
        let (code, answer) = connection.send(Method::POST, REVIEWS, &review).await.unwrap();
        assert_eq!(code, 201, "{answer}");
        if answer["status"]["allowed"] == true {
            return;
        }
        assert!(begun.elapsed() < EFFECT_MAX, "the role of {user} does not count: {answer}");
        // This waits for a real process: the cluster reads its policy.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs the program without the environment of the test. Returns exit code, output and errors.
pub(super) fn portcullis(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(program());
    command.env_remove("KUBECONFIG").env("HOME", "/nonexistent").args(args);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// The program under test.
pub(super) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_portcullis"))
}
