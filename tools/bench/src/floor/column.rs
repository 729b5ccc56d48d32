//! The servers that are compared: the floor, ours, and a running kube-apiserver.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::floor::case::{Case, LARGE_NAMESPACE};
use crate::floor::fan_out::event_path;
use crate::floor::listening_process::listening_pid;
use crate::server::case::request_as;
use crate::server::client::{Client, Connection};
use crate::server::measured_server::MeasuredServer;
use crate::server::populate::{
    ADMIN_TOKEN, CLUSTER_ROLE_BINDINGS, LISTED_NAMESPACE, N_LISTED, N_WATCHERS, TOKEN, config_map,
    create_all, create_as, watcher_token,
};
use crate::server::process::Process;

/// The connections that create objects.
const N_WRITERS: usize = 8;
/// The service account whose token is signed.
const SERVICE_ACCOUNT: &str = "load";

/// One server with the credentials for it.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) client: Client,
    pub(crate) pid: u32,
    /// The token of the user who sends the load.
    pub(crate) token: String,
    /// The token of the user who creates objects.
    pub(crate) admin_token: String,
    /// The tokens of those who watch, one for each connection.
    pub(crate) watch_tokens: Vec<String>,
    /// The signed token of a service account.
    pub(crate) service_account_token: String,
    /// Whether the server answers constants and stores nothing.
    pub(crate) is_floor: bool,
    /// The process and its directory, if this value started it.
    _process: Option<(Process, TempDir)>,
}

impl Column {
    /// The server of this repository, with the users of its token file.
    pub(crate) fn ours(server: &MeasuredServer) -> Self {
        Self {
            name: "ours",
            client: server.client.clone(),
            pid: server.process.pid(),
            token: TOKEN.to_owned(),
            admin_token: ADMIN_TOKEN.to_owned(),
            watch_tokens: (0..N_WATCHERS).map(watcher_token).collect(),
            service_account_token: String::new(),
            is_floor: false,
            _process: None,
        }
    }

    /// A kube-apiserver that runs on this machine. Its administrator's token is used for everything.
    ///
    /// # Errors
    /// The URL is not `https://ADDRESS:PORT`, or no process of this user listens there.
    pub(crate) fn peer(url: &str, token: &str) -> anyhow::Result<Self> {
        let address = url.strip_prefix("https://").map(|rest| rest.trim_end_matches('/'));
        let address: SocketAddr = address
            .and_then(|address| address.parse().ok())
            .with_context(|| format!("`--peer {url}` is not https://ADDRESS:PORT"))?;
        let pid = listening_pid(address.port())?
            .with_context(|| format!("no process of this machine listens on {address}"))?;
        Ok(Self {
            name: "kube-apiserver",
            client: Client::dangerous_trust_any(address)?,
            pid,
            token: token.to_owned(),
            admin_token: token.to_owned(),
            watch_tokens: vec![token.to_owned(); N_WATCHERS],
            service_account_token: String::new(),
            is_floor: false,
            _process: None,
        })
    }

    /// Starts the floor with the answers of another server.
    ///
    /// # Errors
    /// The program does not start, or the other server refuses a request.
    pub(crate) async fn floor(program: &Path, answering: &Self) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("bench-floor-").tempdir()?;
        let mut lines = String::new();
        let mut connection = answering.client.connect().await?;
        for (idx, case) in Case::ALL.iter().enumerate() {
            let (method, path) = case.target();
            let requests = case.requests(answering);
            let request = requests.repeated.first().context("a case without a request")?;
            let answer = connection.exchange(request).await?;
            ensure!((requests.is_right)(answer), "{method} {path}: {}", answer.code);
            std::fs::write(directory.path().join(format!("answer-{idx}")), answer.body)?;
            lines += &format!("{method} {path} {} answer-{idx}\n", answer.code);
        }
        std::fs::write(directory.path().join("event"), event())?;
        for round in 0..64 {
            lines += &format!("WATCH {} 200 event\n", event_path(round));
        }
        std::fs::write(directory.path().join("answers"), lines)?;
        let process = Process::spawn(Command::new(program).arg(directory.path()))?;
        Ok(Self {
            name: "floor",
            client: Client::new(process.address, &directory.path().join("ca.crt"))?,
            pid: process.pid(),
            token: answering.token.clone(),
            admin_token: answering.admin_token.clone(),
            watch_tokens: answering.watch_tokens.clone(),
            service_account_token: answering.service_account_token.clone(),
            is_floor: true,
            _process: Some((process, directory)),
        })
    }

    /// Creates the objects that the cases read, unless they exist, and returns a token of a service account that
    /// may read them.
    ///
    /// # Errors
    /// The server refuses an object.
    pub(crate) async fn populate(&self, n_large: u64) -> anyhow::Result<String> {
        let mut connection = self.client.connect().await?;
        for (namespace, n_objects) in [(LISTED_NAMESPACE, N_LISTED), (LARGE_NAMESPACE, n_large)] {
            let path = format!("/api/v1/namespaces/{namespace}/configmaps");
            if self.exists(&mut connection, &format!("/api/v1/namespaces/{namespace}")).await? {
                // Our server has this namespace already, and the peer may be used a second time.
                let last = format!("{path}/listed-{:09}", n_objects - 1);
                if self.exists(&mut connection, &last).await? {
                    continue;
                }
            } else {
                let object = json!({
                    "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
                });
                self.create(&mut connection, "/api/v1/namespaces", &object).await?;
            }
            create_all(&self.admin_token, &self.client, N_WRITERS, n_objects, &path, |number| {
                config_map(&format!("listed-{number:09}"))
            })
            .await?;
        }
        self.service_account_token(&mut connection).await
    }

    async fn service_account_token(&self, connection: &mut Connection) -> anyhow::Result<String> {
        let accounts = format!("/api/v1/namespaces/{LISTED_NAMESPACE}/serviceaccounts");
        let path = format!("{accounts}/{SERVICE_ACCOUNT}");
        if !self.exists(connection, &path).await? {
            let account = json!({
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": SERVICE_ACCOUNT },
            });
            self.create(connection, &accounts, &account).await?;
            let binding = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": { "name": "load-service-account" },
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view",
                },
                "subjects": [{
                    "kind": "ServiceAccount", "namespace": LISTED_NAMESPACE, "name": SERVICE_ACCOUNT,
                }],
            });
            self.create(connection, CLUSTER_ROLE_BINDINGS, &binding).await?;
        }
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": { "expirationSeconds": 3_600 },
        });
        let path = format!("{path}/token");
        let request = request_as(&self.admin_token, "POST", &path, Some(&request));
        let answer = connection.exchange(&request).await?;
        let answer: Value = serde_json::from_slice(answer.body)?;
        let token = answer.pointer("/status/token").and_then(Value::as_str);
        Ok(token.with_context(|| format!("no token: {answer}"))?.to_owned())
    }

    /// Creates an object as the administrator.
    ///
    /// # Errors
    /// The server refuses it.
    pub(crate) async fn create(
        &self,
        connection: &mut Connection,
        path: &str,
        object: &Value,
    ) -> anyhow::Result<()> {
        create_as(&self.admin_token, connection, path, object).await
    }

    async fn exists(&self, connection: &mut Connection, path: &str) -> anyhow::Result<bool> {
        let request = request_as(&self.admin_token, "GET", path, None);
        Ok(connection.exchange(&request).await?.code == 200)
    }
}

/// The event that the floor delivers, with the metadata that a server adds.
fn event() -> String {
    let mut object = config_map("watched-000000000");
    if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), "fan-out-0".into());
        metadata.insert("uid".to_owned(), "0d4bd42c-1ab8-4c0e-8b6e-3e2f1a6f2f0c".into());
        metadata.insert("resourceVersion".to_owned(), "123456".into());
        metadata.insert("creationTimestamp".to_owned(), "2026-01-01T00:00:00Z".into());
    }
    format!("{}\n", json!({ "type": "ADDED", "object": object }))
}
