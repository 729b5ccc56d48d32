//! Writes the default objects when a server starts: the default RBAC policy, the namespaces that always
//! exist, the default flow schemas and priority levels, and the service `default/kubernetes`.

mod default_flow_control_objects;

use api_object::{Status, Tree};
use authz_rbac::{BootstrapPolicyWrite, ReconcileExtrasPolicy};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::default_flow_control_objects::{
    default_flow_control_changes, flow_control_object_ref,
};
use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

const DEFAULT_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The default objects cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The default policy that is part of the program cannot be read.
    #[error("the default policy cannot be read: {0}")]
    Policy(manifests::rbac::RbacDecodeError),
    /// A default flow schema or priority level cannot be encoded.
    #[error("a default object of flow control cannot be encoded: {0}")]
    FlowControl(serde_json::Error),
    /// An object cannot be written.
    #[error("`{name}` cannot be written: {message}")]
    Write {
        /// The name of the object.
        name: String,
        /// The message of the status.
        message: String,
    },
    /// The store has no space for an object.
    #[error("there is no space for `{name}`: {message}")]
    NoSpace {
        /// The name of the object.
        name: String,
        /// The message of the status.
        message: String,
    },
}

/// The delay before objects that the store had no space for are written again.
const RETRY: Duration = Duration::from_secs(60);

/// Retries to write the missing default objects until the store has space for all of them.
pub(crate) async fn retry_bootstrap(server: Arc<ServerState>) {
    loop {
        tokio::time::sleep(RETRY).await;
        match bootstrap(&server).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => server.log.error("the default objects are missing", &[("why", &error)]),
        }
    }
}

/// Writes the default objects, and returns whether all of them exist. Independent writes run concurrently,
/// so that the store makes them durable together.
///
/// A store without space does not keep the server from starting: a missing object grants nothing, and
/// clients must be able to delete objects.
pub(crate) async fn bootstrap(server: &Arc<ServerState>) -> Result<bool, BootstrapError> {
    let mut writes: JoinSet<Result<(), BootstrapError>> = JoinSet::new();
    for name in DEFAULT_NAMESPACES {
        let server = Arc::clone(server);
        writes.spawn(async move {
            // A store without space refuses a create even if the object exists.
            let existing = ObjectRef::new(("", "v1", "namespaces"), "", name);
            if server.loopback_get(existing).await.is_ok() {
                return Ok(());
            }
            let tree = into_tree(json!({"metadata": {"name": name}}));
            let collection = ObjectRef::new(("", "v1", "namespaces"), "", "");
            ignore_already_exists(name, server.loopback_create(collection, tree).await.map(drop))
        });
    }
    let mut is_complete = wait_for_bootstrap_writes(server, &mut writes).await?;
    let changes = bootstrap_policy_changes(server)?;
    for change in changes {
        let server = Arc::clone(server);
        writes.spawn(async move { apply_bootstrap_policy_change(&server, change).await });
    }
    let stored = Arc::clone(&server.snapshot_cache.snapshot().flow_control_objects);
    for change in default_flow_control_changes(&stored).map_err(BootstrapError::FlowControl)? {
        let server = Arc::clone(server);
        writes.spawn(async move {
            let name = change.name().to_owned();
            let written = change.write_default_flow_control_change(&server).await;
            written.map_err(|status| bootstrap_write_error(&name, status))
        });
    }
    is_complete &= wait_for_bootstrap_writes(server, &mut writes).await?;
    let stored = Arc::clone(&server.snapshot_cache.snapshot().flow_control_objects);
    crate::background_loops::write_dangling_conditions(server, &stored).await;
    crate::background_loops::repair_cluster_ips_and_log(server).await;
    // A create would fail before it finds the existing service, because that owns the address.
    let existing = ObjectRef::new(("", "v1", "services"), "default", "kubernetes");
    if server.loopback_get(existing).await.is_ok() {
        return Ok(is_complete);
    }
    let collection = ObjectRef::new(("", "v1", "services"), "default", "");
    let service = into_tree(json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {"ports": [{"name": "https", "port": 443, "protocol": "TCP",
            "targetPort": parse_port(&server.api_settings.advertised_address)}]},
    }));
    // The server works without the service, whose address another service may have.
    if let Err(error) = ignore_already_exists(
        "kubernetes",
        server.loopback_create(collection, service).await.map(drop),
    ) {
        server.log.error("the service of the server is missing", &[("why", &error)]);
    }
    Ok(is_complete)
}

/// The changes that make the stored roles and bindings contain the default policy.
fn bootstrap_policy_changes(
    server: &ServerState,
) -> Result<Vec<BootstrapPolicyWrite>, BootstrapError> {
    let policy = manifests::rbac::bootstrap_policy().map_err(BootstrapError::Policy)?;
    let mut snapshot = server.snapshot_cache.snapshot().rbac_snapshot.as_ref().clone();
    let changes =
        authz_rbac::reconcile_bootstrap_policy(&mut snapshot, &policy, ReconcileExtrasPolicy::Keep);
    // A role may be in the list twice, the second time with aggregated rules. Writes run concurrently, so
    // only the last change of each object is kept.
    let mut last: Vec<BootstrapPolicyWrite> = Vec::new();
    for change in changes {
        last.retain(|other| target_of_policy_change(other) != target_of_policy_change(&change));
        last.push(change);
    }
    Ok(last)
}

async fn apply_bootstrap_policy_change(
    server: &ServerState,
    change: BootstrapPolicyWrite,
) -> Result<(), BootstrapError> {
    let (resource, namespace, name) = target_of_policy_change(&change);
    let object_ref = ObjectRef::new((authz_rbac::GROUP, "v1", resource), namespace, name);
    let failed = |message: String| BootstrapError::Write { name: name.to_owned(), message };
    let refused = |status: Status| bootstrap_write_error(name, status);
    let object = match &change {
        BootstrapPolicyWrite::PutRole(role) => manifests::rbac::RbacObject::Role(role.clone()),
        BootstrapPolicyWrite::PutBinding(binding)
        | BootstrapPolicyWrite::RecreateBinding(binding) => {
            manifests::rbac::RbacObject::Binding(binding.clone())
        }
    };
    let encoded =
        manifests::rbac::encode_rbac_object(&object).map_err(|error| failed(error.to_string()))?;
    if matches!(change, BootstrapPolicyWrite::RecreateBinding(_))
        && let Err(status) =
            server.loopback_delete(object_ref, &api_object::DeleteOptions::default()).await
        && status.code != 404
    {
        return Err(refused(status));
    }
    let written = server.loopback_update(object_ref, into_tree(encoded)).await;
    match written {
        // Another server that starts at the same time writes the same policy.
        Err(status) if status.is_status_from_this_server() && status.code == 409 => Ok(()),
        written => written.map(drop).map_err(refused),
    }
}

/// The resource, the namespace and the name of the object that a change writes.
fn target_of_policy_change(change: &BootstrapPolicyWrite) -> (&'static str, &str, &str) {
    let (metadata, in_cluster, in_namespace) = match change {
        BootstrapPolicyWrite::PutRole(role) => (&role.metadata, "clusterroles", "roles"),
        BootstrapPolicyWrite::PutBinding(binding)
        | BootstrapPolicyWrite::RecreateBinding(binding) => {
            (&binding.metadata, "clusterrolebindings", "rolebindings")
        }
    };
    let resource = if metadata.namespace.is_empty() { in_cluster } else { in_namespace };
    (resource, &metadata.namespace, &metadata.name)
}

/// Waits for writes, and returns whether the store had space for all of them.
async fn wait_for_bootstrap_writes(
    server: &ServerState,
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

fn bootstrap_write_error(name: &str, status: Status) -> BootstrapError {
    let (name, message) = (name.to_owned(), status.message);
    match status.code {
        429 | 507 => BootstrapError::NoSpace { name, message },
        _ => BootstrapError::Write { name, message },
    }
}

fn ignore_already_exists(name: &str, result: Result<(), Status>) -> Result<(), BootstrapError> {
    match result {
        Err(status) if status.reason != "AlreadyExists" => Err(bootstrap_write_error(name, status)),
        _ => Ok(()),
    }
}

fn into_tree(value: Value) -> Tree {
    match value {
        Value::Object(tree) => tree,
        _ => Tree::new(),
    }
}

fn parse_port(address: &str) -> u16 {
    address.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(443)
}
