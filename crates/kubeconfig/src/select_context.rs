//! Selects the cluster and the user of a kubeconfig.

use crate::kubeconfig_file::{Cluster, Kubeconfig, User};

use crate::load_error::ConfigProblem;
use crate::referenced_files::ReferencedFiles;
use crate::user_check::ExecPolicy;
use crate::{cluster_check, user_check};

/// Kubernetes' message about a file without a usable cluster.
const NO_CONFIGURATION: &str =
    "no configuration has been provided, try setting KUBERNETES_MASTER environment variable";

/// The cluster and the user that the current context selects.
#[derive(Debug)]
pub(crate) struct SelectedContext<'k> {
    pub(crate) cluster: &'k Cluster,
    /// `None` for anonymous access.
    pub(crate) user: Option<&'k User>,
}

/// Selects cluster and user by the current context and validates them.
///
/// 1. The current context must exist. If the file names none, the cluster and the user with an
///    empty name are selected.
/// 2. A user that does not exist means anonymous access; the cluster must exist.
/// 3. User and cluster must not contradict themselves, and their files must be readable. Entries
///    that are not selected are not validated.
///
/// # Errors
///
/// All problems, in Kubernetes' order.
pub(crate) fn select_context<'k>(
    kubeconfig: &'k Kubeconfig,
    files: &mut ReferencedFiles<'_>,
) -> Result<SelectedContext<'k>, Vec<ConfigProblem>> {
    let mut problems = Vec::new();
    let current = &kubeconfig.current_context;
    let context = kubeconfig.contexts.iter().find(|context| context.name == current.value);
    if context.is_none() && !current.value.is_empty() {
        let message = format!("context was not found for specified context: {}", current.value);
        problems.push(ConfigProblem::new("", "current-context", current.position, message));
    }
    let (cluster_name, user_name, position) = match context {
        Some(context) => (&*context.cluster.value, &*context.user.value, context.cluster.position),
        None => ("", "", kubeconfig.position),
    };
    let user = kubeconfig.users.iter().find(|user| user.name == user_name);
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == cluster_name);
    if let Some(user) = user {
        problems.extend(user_check::find_user_problems(user, files, ExecPolicy::Refuse));
    }
    match cluster {
        Some(cluster) => problems.extend(cluster_check::find_cluster_problems(cluster, files)),
        None if problems.is_empty() => {
            problems.push(ConfigProblem::new(
                "",
                "clusters",
                position,
                NO_CONFIGURATION.to_owned(),
            ));
        }
        None => {
            let message = "cluster has no server defined".to_owned();
            problems.push(ConfigProblem::new("", "clusters", position, message));
        }
    }
    match cluster {
        Some(cluster) if problems.is_empty() => Ok(SelectedContext { cluster, user }),
        _ => Err(problems),
    }
}
