//! Storing what aggregation makes of cluster roles. Decisions know it already.

use std::sync::Arc;

use store::Store;
use tokio::sync::mpsc;

use crate::cluster_snapshot::Noticed;
use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

/// Writes roles until nobody notices any more. Several servers may write the same: the first one
/// wins, and the others find nothing to do.
pub(crate) async fn store_aggregated<S: Store>(
    server: Arc<ServerState<S>>,
    mut notices: mpsc::Receiver<Noticed>,
) {
    while let Some(noticed) = notices.recv().await {
        for role in noticed.stale_roles {
            let name = role.name();
            if let Err(why) = store_rules(&server, name).await {
                server.log.warn(
                    "an aggregated role can not be stored",
                    &[("name", &name), ("why", &why)],
                );
            }
        }
    }
}

/// Brings the stored rules in line with those that decisions are made from now.
async fn store_rules<S: Store>(server: &ServerState<S>, name: &str) -> Result<(), String> {
    let role_ref = ObjectRef::built_in((authz_rbac::GROUP, "v1", "clusterroles"), "", name);
    let current = match server.own_get(role_ref).await {
        Ok(current) => current.into_tree(),
        Err(status) if status.code == 404 => return Ok(()),
        Err(status) => return Err(status.message),
    };
    let cluster = server.snapshot_cache.snapshot();
    let Some(role) = cluster.rbac.role("", name) else { return Ok(()) };
    let rules = role.rules.iter().map(manifests::rbac::encode_rule).collect::<Result<Vec<_>, _>>();
    let rules = rules.map_err(|error| error.to_string())?;
    let mut tree = current;
    tree.insert("rules".to_owned(), rules.into());
    match server.own_update(role_ref, tree).await {
        // Somebody was faster; that change is noticed too.
        Err(status) if status.is_from_this_server() && status.code == 409 => Ok(()),
        Err(status) => Err(status.message),
        Ok(_) => Ok(()),
    }
}
