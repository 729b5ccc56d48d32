//! What a server makes sure of when it starts: the default policy, the namespaces that always exist,
//! and the service under which it is found.

use api_object::{Status, Tree};
use authz_rbac::{Change, Extras};
use serde_json::{Value, json};
use store::Store;
use tokio::task::JoinSet;

use std::sync::Arc;
use std::time::Duration;

use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

/// Namespaces that exist from the beginning.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Why a server can not begin.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The default policy that is part of the program can not be read.
    #[error("the default policy can not be read: {0}")]
    Policy(#[from] manifests::rbac::DecodeError),
    /// An object can not be written.
    #[error("`{name}` can not be written: {message}")]
    Write {
        /// The name of the object.
        name: String,
        /// The server's own answer.
        message: String,
    },
    /// The store has no space for an object.
    #[error("there is no space for `{name}`: {message}")]
    NoSpace {
        /// The name of the object.
        name: String,
        /// The server's own answer.
        message: String,
    },
}

/// How long to wait before objects are written again for which the store had no space.
const RETRY: Duration = Duration::from_secs(60);

/// Writes the missing default objects again and again until the store has space for all of them.
pub(crate) async fn complete_bootstrap<S: Store>(server: Arc<ServerState<S>>) {
    loop {
        tokio::time::sleep(RETRY).await;
        match bootstrap(&server).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => server.log.error("the default objects are missing", &[("why", &error)]),
        }
    }
}

/// Brings the store in line, and reports whether everything is there. Writes that do not depend on each
/// other are made together, so that they are made durable together.
///
/// A store without space does not keep the server from starting: what is missing grants nothing, and
/// somebody has to be able to delete.
pub(crate) async fn bootstrap<S: Store>(
    server: &Arc<ServerState<S>>,
) -> Result<bool, BootstrapError> {
    let mut writes: JoinSet<Result<(), BootstrapError>> = JoinSet::new();
    for name in NAMESPACES {
        let server = Arc::clone(server);
        writes.spawn(async move {
            // A store without space refuses even a create that would find the object there.
            let existing = ObjectRef::built_in(("", "v1", "namespaces"), "", name);
            if server.own_get(existing).await.is_ok() {
                return Ok(());
            }
            let tree = tree(json!({"metadata": {"name": name}}));
            let of = ObjectRef::built_in(("", "v1", "namespaces"), "", "");
            ignore_existing(name, server.own_create(of, tree).await.map(drop))
        });
    }
    let mut is_complete = finish(server, &mut writes).await?;
    let changes = policy_changes(server)?;
    for change in changes {
        let server = Arc::clone(server);
        writes.spawn(async move { apply(&server, change).await });
    }
    is_complete &= finish(server, &mut writes).await?;
    crate::loops::repair(server).await;
    // A service that exists holds its address, which a second one could not get.
    let existing = ObjectRef::built_in(("", "v1", "services"), "default", "kubernetes");
    if server.own_get(existing).await.is_ok() {
        return Ok(is_complete);
    }
    let of = ObjectRef::built_in(("", "v1", "services"), "default", "");
    let service = tree(json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {"ports": [{"name": "https", "port": 443, "protocol": "TCP",
            "targetPort": port(&server.options.advertised)}]},
    }));
    // The server can be used without the service, whose address somebody else may have got.
    if let Err(error) =
        ignore_existing("kubernetes", server.own_create(of, service).await.map(drop))
    {
        server.log.error("the service of the server is missing", &[("why", &error)]);
    }
    Ok(is_complete)
}

/// What the default policy lacks here.
fn policy_changes<S: Store>(server: &ServerState<S>) -> Result<Vec<Change>, BootstrapError> {
    let policy = manifests::rbac::bootstrap_policy()?;
    let mut snapshot = server.snapshot_cache.snapshot().rbac.as_ref().clone();
    let changes = authz_rbac::bootstrap(&mut snapshot, &policy, Extras::Keep);
    // A role may be in the list twice, the second time with the rules of others. Writes are made
    // together, so only the last one of each name counts.
    let mut last: Vec<Change> = Vec::new();
    for change in changes {
        last.retain(|own| policy_object(own) != policy_object(&change));
        last.push(change);
    }
    Ok(last)
}

async fn apply<S: Store>(server: &ServerState<S>, change: Change) -> Result<(), BootstrapError> {
    let (resource, namespace, name) = policy_object(&change);
    let of = ObjectRef::built_in((authz_rbac::GROUP, "v1", resource), namespace, name);
    let failed = |message: String| BootstrapError::Write { name: name.to_owned(), message };
    let refused = |status: Status| write_error(name, status);
    let object = match &change {
        Change::PutRole(role) => manifests::rbac::Object::Role(role.clone()),
        Change::PutBinding(own) | Change::RecreateBinding(own) => {
            manifests::rbac::Object::Binding(own.clone())
        }
    };
    let encoded = manifests::rbac::encode(&object).map_err(|error| failed(error.to_string()))?;
    if matches!(change, Change::RecreateBinding(_))
        && let Err(status) = server.own_delete(of, &api_object::DeleteOptions::default()).await
        && status.code != 404
    {
        return Err(refused(status));
    }
    let written = server.own_update(of, tree(encoded)).await;
    match written {
        // Another server that starts at the same time writes the same policy.
        Err(status) if status.is_from_this_server() && status.code == 409 => Ok(()),
        written => written.map(drop).map_err(refused),
    }
}

/// The resource, the namespace and the name of what a change writes.
fn policy_object(change: &Change) -> (&'static str, &str, &str) {
    let (metadata, in_cluster, in_namespace) = match change {
        Change::PutRole(role) => (&role.metadata, "clusterroles", "roles"),
        Change::PutBinding(own) | Change::RecreateBinding(own) => {
            (&own.metadata, "clusterrolebindings", "rolebindings")
        }
    };
    let resource = if metadata.namespace.is_empty() { in_cluster } else { in_namespace };
    (resource, &metadata.namespace, &metadata.name)
}

/// Waits for writes, and reports whether the store had space for all of them.
async fn finish<S>(
    server: &ServerState<S>,
    writes: &mut JoinSet<Result<(), BootstrapError>>,
) -> Result<bool, BootstrapError> {
    let mut is_complete = true;
    while let Some(result) = writes.join_next().await {
        let result = result.unwrap_or_else(|error| {
            let name = "bootstrap".to_owned();
            Err(BootstrapError::Write { name, message: error.to_string() })
        });
        match result {
            Err(error @ BootstrapError::NoSpace { .. }) => {
                server.log.error("a default object is missing", &[("why", &error)]);
                is_complete = false;
            }
            result => result?,
        }
    }
    Ok(is_complete)
}

fn write_error(name: &str, status: Status) -> BootstrapError {
    let (name, message) = (name.to_owned(), status.message);
    match status.code {
        429 | 507 => BootstrapError::NoSpace { name, message },
        _ => BootstrapError::Write { name, message },
    }
}

fn ignore_existing(name: &str, result: Result<(), Status>) -> Result<(), BootstrapError> {
    match result {
        Err(status) if status.reason != "AlreadyExists" => Err(write_error(name, status)),
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
