//! Stores the rules of aggregated cluster roles. The snapshot already decides by them.

use std::sync::Arc;

use api_object::Status;
use authz::Namespace;
use authz_rbac::Role;
use tokio::sync::mpsc;

use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

/// The rules of an aggregated role could not be stored.
#[derive(Debug, thiserror::Error)]
enum StoreRoleRulesError {
    #[error("{}", .0.message)]
    Request(Status),
    #[error("a rule cannot be encoded: {0}")]
    Encode(serde_json::Error),
}

/// Writes roles until the sender is dropped. Several servers may write the same rules: the first one wins,
/// and the others find nothing to do.
pub(crate) async fn store_aggregated_roles(
    server: Arc<ServerState>,
    mut stale_aggregated_roles: mpsc::Receiver<Vec<Arc<Role>>>,
) {
    while let Some(roles) = stale_aggregated_roles.recv().await {
        for role in roles {
            let name = role.name();
            if let Err(error) = store_role_rules(&server, name).await {
                server.log.warn(
                    "an aggregated role cannot be stored",
                    &[("name", &name), ("why", &error)],
                );
            }
        }
    }
}

/// Replaces the stored rules by those of the snapshot.
async fn store_role_rules(server: &ServerState, name: &str) -> Result<(), StoreRoleRulesError> {
    let role_ref = ObjectRef::new((authz_rbac::GROUP, "v1", "clusterroles"), "", name);
    let mut tree = match server.loopback_get(role_ref).await {
        Ok(current) => current.into_tree_with_resource_version(),
        Err(status) if status.code == 404 => return Ok(()),
        Err(status) => return Err(StoreRoleRulesError::Request(status)),
    };
    let cluster = server.snapshot_cache.snapshot();
    let Some(role) = cluster.rbac_snapshot.role(Namespace::CLUSTER_SCOPE, name) else {
        return Ok(());
    };
    let rules =
        role.rules.iter().map(manifests::rbac::encode_rbac_rule).collect::<Result<Vec<_>, _>>();
    tree.insert("rules".to_owned(), rules.map_err(StoreRoleRulesError::Encode)?.into());
    match server.loopback_update(role_ref, tree).await {
        // Another writer was faster, and its change makes the snapshot report the role again.
        Err(status) if status.is_status_from_this_server() && status.code == 409 => Ok(()),
        Err(status) => Err(StoreRoleRulesError::Request(status)),
        Ok(_) => Ok(()),
    }
}
