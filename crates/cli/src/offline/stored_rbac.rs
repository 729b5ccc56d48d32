//! The roles and bindings of a cluster as they are stored.

use serde_json::Value;

use super::cluster_flags::{ClusterConnectionFlags, ProcessEnvironment};
use super::cluster_state::{ClusterState, NodeObjectsNeed};
use super::load_failure::LoadFailure;
use super::offline_authorizer::shared_runtime;

/// The roles and bindings of a cluster, as its API shows them.
#[derive(Debug, Default)]
pub(crate) struct StoredRbac {
    pub(crate) objects: Vec<Value>,
    /// Notes and warnings, for standard error.
    pub(crate) remarks: Vec<String>,
    /// Whether some roles or bindings could not be read.
    pub(crate) is_rbac_partial: bool,
}

impl StoredRbac {
    /// Reads the cluster that the flags name; `None` if the command works with files alone.
    ///
    /// # Errors
    /// A kubeconfig cannot be used, or the cluster cannot be read.
    pub(crate) fn read(
        flags: &ClusterConnectionFlags,
        has_files: bool,
        namespace: Option<&str>,
    ) -> Result<Option<Self>, LoadFailure> {
        let Some(connection) =
            flags.find_cluster_connection(has_files, &ProcessEnvironment::of_current_process())?
        else {
            return Ok(None);
        };
        let runtime = shared_runtime().map_err(LoadFailure::from_message)?;
        let keep = |object: &Value| Some(object.clone());
        let state = ClusterState::read(connection, namespace, NodeObjectsNeed::Skip, &keep);
        let ClusterState { objects, cluster_remarks, is_policy_partial, .. } =
            runtime.block_on(state)?;
        Ok(Some(Self { objects, remarks: cluster_remarks, is_rbac_partial: is_policy_partial }))
    }
}
