//! Which cluster and which user of a kubeconfig count.

use crate::kubeconfig_file::{Cluster, Kubeconfig, User};

use crate::error::Problem;
use crate::files::Files;
use crate::{cluster, user};

/// What is said about a file without a cluster to use.
const NO_CONFIGURATION: &str =
    "no configuration has been provided, try setting KUBERNETES_MASTER environment variable";

/// A cluster and whom to be there.
#[derive(Debug)]
pub(crate) struct Selected<'k> {
    pub(crate) cluster: &'k Cluster,
    /// Nobody in particular if there is none.
    pub(crate) user: Option<&'k User>,
}

/// Selects by the current context, and looks at what was selected.
///
/// 1. The current context must exist, unless there is none: then the cluster and the user without a
///    name count.
/// 2. A user that does not exist is nobody; a cluster must exist.
/// 3. User and cluster are free of contradictions, and their files can be read. What was not
///    selected may be as wrong as it likes.
///
/// # Errors
///
/// All problems, in Kubernetes' order.
pub(crate) fn select<'k>(
    kubeconfig: &'k Kubeconfig,
    files: &mut Files<'_>,
) -> Result<Selected<'k>, Vec<Problem>> {
    let mut problems = Vec::new();
    let current = &kubeconfig.current_context;
    let context = kubeconfig.contexts.iter().find(|context| context.name == current.value);
    if context.is_none() && !current.value.is_empty() {
        let message = format!("context was not found for specified context: {}", current.value);
        problems.push(Problem::new("", "current-context", current.place, message));
    }
    let (cluster_name, user_name, place) = match context {
        Some(context) => (&*context.cluster.value, &*context.user.value, context.cluster.place),
        None => ("", "", kubeconfig.place),
    };
    let user = kubeconfig.users.iter().find(|user| user.name == user_name);
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == cluster_name);
    if let Some(user) = user {
        problems.extend(user::problems(user, files));
    }
    match cluster {
        Some(cluster) => problems.extend(cluster::problems(cluster, files)),
        None if problems.is_empty() => {
            problems.push(Problem::new("", "clusters", place, NO_CONFIGURATION.to_owned()));
        }
        None => {
            let message = "cluster has no server defined".to_owned();
            problems.push(Problem::new("", "clusters", place, message));
        }
    }
    match cluster {
        Some(cluster) if problems.is_empty() => Ok(Selected { cluster, user }),
        _ => Err(problems),
    }
}
