//! Creates the objects that a server needs before it is measured.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::server::case::{REVIEWS, request_as};
use crate::server::client::{Client, Connection};

/// The token of the user who sends the load. Two cluster roles grant its permissions, so that RBAC decides
/// every request.
pub(crate) const TOKEN: &str = "load-7c1d9a";
/// The token of the superuser who creates the objects.
pub(crate) const ADMIN_TOKEN: &str = "admin-5b20ce";

/// The namespace of the objects that are read.
pub(crate) const LISTED_NAMESPACE: &str = "listed";
pub(crate) const N_LISTED: u64 = 500;
/// The name of the object that is read with GET.
pub(crate) const READ_OBJECT: &str = "listed-000000250";
/// The namespace of the objects that are written while it is measured.
pub(crate) const WRITTEN_NAMESPACE: &str = "written";

/// The longest time until the server decides by the new bindings.
const BINDINGS_TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const CLUSTER_ROLE_BINDINGS: &str =
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// The number of users who only watch.
pub(crate) const N_WATCHERS: usize = 10;
/// The group of these users.
const WATCHERS: &str = "watchers";

/// The content of the token file.
pub(crate) fn token_file() -> String {
    let watchers = (0..N_WATCHERS)
        .map(|idx| format!("{},watcher-{idx},watcher-{idx},\"{WATCHERS}\"\n", watcher_token(idx)));
    format!("{TOKEN},load,1\n{ADMIN_TOKEN},admin,2,\"system:masters\"\n")
        + &watchers.collect::<String>()
}

/// The token of a user who only watches.
pub(crate) fn watcher_token(idx: usize) -> String {
    format!("watch-{idx}-3e91f0")
}

/// A ConfigMap of about 700 bytes.
pub(crate) fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { "app": "bench", "part": "load" } },
        "data": { "config.yaml": "replicas: 3\nimage: registry.example.com/app:v1\n".repeat(12) },
    })
}

/// The name of a group in the additional bindings.
pub(crate) fn group(number: u64) -> String {
    format!("oidc:team-{number:05}")
}

fn user(number: u64) -> String {
    format!("user-{number:05}@example.com")
}

/// Creates all objects and this number of bindings in addition to the default policy, and waits until the
/// server decides by them.
///
/// # Errors
/// The server refuses an object, or does not decide by the bindings in time.
pub(crate) async fn populate(
    client: &Client,
    n_bindings: u64,
    n_connections: usize,
) -> anyhow::Result<()> {
    populate_load(client).await?;
    let mut connection = client.connect().await?;
    let listed = format!("/api/v1/namespaces/{LISTED_NAMESPACE}/configmaps");
    create_all(ADMIN_TOKEN, client, n_connections, N_LISTED, &listed, |number| {
        config_map(&format!("listed-{number:09}"))
    })
    .await?;
    create_all(ADMIN_TOKEN, client, n_connections, n_bindings, CLUSTER_ROLE_BINDINGS, |number| {
        let (user, group) = (user(number), group(number));
        let subjects = [("User", user.as_str()), ("Group", group.as_str())];
        binding(&format!("bench-{number:05}"), "view", &subjects)
    })
    .await?;
    if let Some(last) = n_bindings.checked_sub(1) {
        wait_until_allowed(&mut connection, &user(last), "pods").await?;
    }
    Ok(())
}

/// Creates the namespace and the permissions that every load needs.
///
/// # Errors
/// The server refuses an object, or does not decide by the bindings in time.
pub(crate) async fn populate_load(client: &Client) -> anyhow::Result<()> {
    let mut connection = client.connect().await?;
    let namespace = |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    for name in [LISTED_NAMESPACE, WRITTEN_NAMESPACE] {
        create(&mut connection, "/api/v1/namespaces", &namespace(name)).await?;
    }
    for role in ["system:auth-delegator", "edit"] {
        let own = binding(&format!("load-{role}"), role, &[("User", "load")]);
        create(&mut connection, CLUSTER_ROLE_BINDINGS, &own).await?;
    }
    let watchers = binding("watchers", "view", &[("Group", WATCHERS)]);
    create(&mut connection, CLUSTER_ROLE_BINDINGS, &watchers).await?;
    wait_until_allowed(&mut connection, "load", "configmaps").await
}

/// Sends one request as the superuser and checks the status code.
///
/// # Errors
/// The server answers with another code.
pub(crate) async fn send_as_admin(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<&Value>,
    code: u16,
) -> anyhow::Result<()> {
    let mut connection = client.connect().await?;
    let answer = connection.exchange(&request_as(ADMIN_TOKEN, method, path, body)).await?;
    let text = || String::from_utf8_lossy(answer.body).into_owned();
    ensure!(answer.code == code, "{method} {path}: {} {}", answer.code, text());
    Ok(())
}

pub(crate) fn binding(name: &str, role: &str, subjects: &[(&str, &str)]) -> Value {
    let subject = |(kind, name): &(&str, &str)| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name });
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role,
        },
        "subjects": subjects.iter().map(subject).collect::<Vec<_>>(),
    })
}

async fn create(connection: &mut Connection, path: &str, object: &Value) -> anyhow::Result<()> {
    create_as(ADMIN_TOKEN, connection, path, object).await
}

/// Creates an object with the permissions of a token.
///
/// # Errors
/// The server refuses the object.
pub(crate) async fn create_as(
    token: &str,
    connection: &mut Connection,
    path: &str,
    object: &Value,
) -> anyhow::Result<()> {
    let answer = connection.exchange(&request_as(token, "POST", path, Some(object))).await?;
    let body = || String::from_utf8_lossy(answer.body).into_owned();
    ensure!(answer.code == 201, "{path}: {} {}", answer.code, body());
    Ok(())
}

/// Creates many objects over several connections.
///
/// # Errors
/// The server refuses an object.
pub(crate) async fn create_all(
    token: &str,
    client: &Client,
    n_connections: usize,
    n_objects: u64,
    path: &str,
    object: impl Fn(u64) -> Value,
) -> anyhow::Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for first in 0..n_connections as u64 {
        let numbers = (first..n_objects).step_by(n_connections);
        let objects: Vec<Value> = numbers.map(&object).collect();
        let (client, path, token) = (client.clone(), path.to_owned(), token.to_owned());
        tasks.spawn(async move {
            let mut connection = client.connect().await?;
            for object in &objects {
                create_as(&token, &mut connection, &path, object).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.context("a task of the benchmark ended early")??;
    }
    Ok(())
}

async fn wait_until_allowed(
    connection: &mut Connection,
    user: &str,
    resource: &str,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": { "user": user, "resourceAttributes": { "verb": "get", "resource": resource } },
    });
    let request = request_as(ADMIN_TOKEN, "POST", REVIEWS, Some(&body));
    while start.elapsed() < BINDINGS_TIMEOUT {
        let answer = connection.exchange(&request).await?;
        if memchr::memmem::find(answer.body, b"\"allowed\":true").is_some() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bail!("{user} is not allowed to get {resource} after {} s", BINDINGS_TIMEOUT.as_secs())
}
