//! What a server makes sure of when it starts: the default policy, the namespaces that always exist,
//! and the service under which it is found.

use authz_rbac::{Change, Extras};
use object::{Status, Tree};
use serde_json::{Value, json};
use store::Store;
use tokio::task::JoinSet;

use std::sync::Arc;

use crate::host::Host;

/// Namespaces that exist from the beginning.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Why a server can not begin.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The default policy that is part of the program can not be read.
    #[error("the default policy can not be read: {0}")]
    Policy(#[from] api::rbac::DecodeError),
    /// An object can not be written.
    #[error("{path}: {message}")]
    Write {
        /// Where.
        path: String,
        /// What the server said to itself.
        message: String,
    },
}

/// Brings the store in line. Writes that do not depend on each other are made together, so that they
/// are made durable together.
pub(crate) async fn bootstrap<S: Store>(host: &Arc<Host<S>>) -> Result<(), BootstrapError> {
    let mut writes: JoinSet<Result<(), BootstrapError>> = JoinSet::new();
    for name in NAMESPACES {
        let host = Arc::clone(host);
        writes.spawn(async move {
            let tree = tree(json!({"metadata": {"name": name}}));
            let path = "/api/v1/namespaces";
            ignore_existing(path, host.own_create(path, tree).await.map(drop))
        });
    }
    finish(&mut writes).await?;
    let changes = policy_changes(host)?;
    for change in changes {
        let host = Arc::clone(host);
        writes.spawn(async move { apply(&host, change).await });
    }
    finish(&mut writes).await?;
    let path = "/api/v1/namespaces/default/services";
    let service = tree(json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {"ports": [{"name": "https", "port": 443, "protocol": "TCP",
            "targetPort": port(&host.options.advertised)}]},
    }));
    ignore_existing(path, host.own_create(path, service).await.map(drop))
}

/// What the default policy lacks here.
fn policy_changes<S: Store>(host: &Host<S>) -> Result<Vec<Change>, BootstrapError> {
    let policy = api::rbac::bootstrap_policy()?;
    let mut snapshot = host.follower.view().rbac.as_ref().clone();
    let changes = authz_rbac::bootstrap(&mut snapshot, &policy, Extras::Keep);
    // A role may be in the list twice, the second time with the rules of others. Writes are made
    // together, so only the last one of each name counts.
    let mut last: Vec<Change> = Vec::new();
    for change in changes {
        last.retain(|own| path(own) != path(&change));
        last.push(change);
    }
    Ok(last)
}

async fn apply<S: Store>(host: &Host<S>, change: Change) -> Result<(), BootstrapError> {
    let path = path(&change);
    let failed = |message: String| BootstrapError::Write { path: path.clone(), message };
    let object = match &change {
        Change::PutRole(role) => api::rbac::Object::Role(role.clone()),
        Change::PutBinding(own) | Change::RecreateBinding(own) => {
            api::rbac::Object::Binding(own.clone())
        }
    };
    let encoded = api::rbac::encode(&object).map_err(|error| failed(error.to_string()))?;
    if matches!(change, Change::RecreateBinding(_))
        && let Err(status) = host.own_delete(&path, &object::DeleteOptions::default()).await
        && status.code != 404
    {
        return Err(failed(status.message));
    }
    let written = host.own_update(&path, tree(encoded)).await;
    written.map(drop).map_err(|status| failed(status.message))
}

fn path(change: &Change) -> String {
    let (metadata, singular) = match change {
        Change::PutRole(role) => (&role.metadata, "role"),
        Change::PutBinding(own) | Change::RecreateBinding(own) => (&own.metadata, "rolebinding"),
    };
    let (group, name) = (authz_rbac::GROUP, &metadata.name);
    match metadata.namespace.as_str() {
        "" => format!("/apis/{group}/v1/cluster{singular}s/{name}"),
        namespace => format!("/apis/{group}/v1/namespaces/{namespace}/{singular}s/{name}"),
    }
}

async fn finish(writes: &mut JoinSet<Result<(), BootstrapError>>) -> Result<(), BootstrapError> {
    while let Some(result) = writes.join_next().await {
        result.unwrap_or_else(|error| {
            let path = "bootstrap".to_owned();
            Err(BootstrapError::Write { path, message: error.to_string() })
        })?;
    }
    Ok(())
}

fn ignore_existing(path: &str, result: Result<(), Status>) -> Result<(), BootstrapError> {
    match result {
        Err(status) if status.reason != "AlreadyExists" => {
            Err(BootstrapError::Write { path: path.to_owned(), message: status.message })
        }
        _ => Ok(()),
    }
}

fn tree(value: Value) -> Tree {
    match value {
        Value::Object(tree) => tree,
        _ => Tree::new(),
    }
}

fn port(address: &str) -> u16 {
    address.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(443)
}
