//! Flags that choose the cluster whose objects decide.

use std::path::PathBuf;

use document::SourcePosition;
use kubeconfig::{ClusterConnection, ContextChoice, LoadError};

use super::load_failure::LoadFailure;

/// The variable that names kubeconfigs, as for kubectl.
const KUBECONFIG_VARIABLE: &str = "KUBECONFIG";

/// The cluster whose objects decide.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterFlags {
    /// Read the objects from the cluster of this kubeconfig
    ///
    /// Without files and without this flag, the command uses the files of $KUBECONFIG, else
    /// ~/.kube/config, else the service account of its pod. With -f as well, the answer is about
    /// the cluster with these objects applied.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use instead of the current one; reads the cluster
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Cluster of the kubeconfig to use instead of that of the context; reads the cluster
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,

    /// User of the kubeconfig to use instead of that of the context; reads the cluster
    #[arg(long = "user", value_name = "NAME")]
    pub(crate) kubeconfig_user: Option<String>,

    /// The question is about all namespaces, not about that of the context
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Ask the cluster's own SubjectAccessReview for each answer, and report every disagreement
    #[arg(long)]
    pub(crate) verify: bool,
}

/// The environment of the process, which tests replace.
pub(crate) struct Environment<'e> {
    pub(crate) variable: &'e dyn Fn(&str) -> Option<String>,
    /// Whether the program runs as a plugin of kubectl, which always asks the cluster.
    pub(crate) is_kubectl_plugin: bool,
}

/// Reads a variable of this process.
pub(crate) fn process_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Reports whether the program was started under the name of a kubectl plugin.
pub(crate) fn is_kubectl_plugin() -> bool {
    let program = std::env::args_os().next().map(PathBuf::from);
    let name = program.as_deref().and_then(|path| path.file_stem()).and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("kubectl-"))
}

/// Describes the faults of a kubeconfig by their positions. An excerpt of the file could show a token.
fn kubeconfig_failure(error: &LoadError) -> LoadFailure {
    let positions = error.diagnostics().iter().map(|own| {
        let SourcePosition { line, column, .. } = own.position;
        format!("{}:{line}:{column}", own.file)
    });
    let positions: Vec<String> = positions.collect();
    match positions.as_slice() {
        [] => LoadFailure::from_message(error),
        positions => LoadFailure::from_message(format_args!("{}: {error}", positions.join(", "))),
    }
}

impl ClusterFlags {
    /// Reports whether a flag asks for a cluster.
    fn is_requested(&self) -> bool {
        let Self { kubeconfig, context, cluster, kubeconfig_user, verify, all_namespaces: _ } =
            self;
        kubeconfig.is_some()
            || context.is_some()
            || cluster.is_some()
            || kubeconfig_user.is_some()
            || *verify
    }

    /// Finds the connection to the cluster; `None` if the command works with files alone.
    ///
    /// 1. A flag, or the name of a kubectl plugin, asks for a cluster, which must then be found.
    /// 2. A command with files and no such flag works with the files.
    /// 3. A command without files uses a cluster if a kubeconfig exists or if it runs in a pod.
    ///
    /// # Errors
    /// A kubeconfig can not be used, or there is none where a flag asks for a cluster.
    pub(crate) fn find_connection(
        &self,
        has_files: bool,
        environment: &Environment<'_>,
    ) -> Result<Option<ClusterConnection>, LoadFailure> {
        let is_requested = self.is_requested() || environment.is_kubectl_plugin;
        if has_files && !is_requested {
            return Ok(None);
        }
        let choice = ContextChoice {
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.kubeconfig_user.clone(),
        };
        let paths = self.kubeconfig_paths(environment);
        if !paths.is_empty() {
            let loaded =
                kubeconfig::load_cluster_connection(&paths, &choice, &kubeconfig::read_file);
            return loaded.map(Some).map_err(|error| kubeconfig_failure(&error));
        }
        match kubeconfig::in_cluster_connection(environment.variable, &kubeconfig::read_file) {
            Ok(connection) => Ok(Some(connection)),
            Err(_) if !is_requested => Ok(None),
            Err(error) => Err(LoadFailure::from_message(format_args!(
                "there is no cluster to ask: ~/.kube/config does not exist, {KUBECONFIG_VARIABLE} is not set, and this is \
                 no pod ({error}); name a kubeconfig with --kubeconfig"
            ))),
        }
    }

    /// Lists the kubeconfigs: that of the flag, those of the variable, or that of the home folder if it exists.
    fn kubeconfig_paths(&self, environment: &Environment<'_>) -> Vec<PathBuf> {
        if let Some(path) = &self.kubeconfig {
            return vec![path.clone()];
        }
        let listed = (environment.variable)(KUBECONFIG_VARIABLE).unwrap_or_default();
        let listed: Vec<PathBuf> =
            listed.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
        if !listed.is_empty() {
            return listed;
        }
        let home =
            (environment.variable)("HOME").map(|home| PathBuf::from(home).join(".kube/config"));
        home.into_iter().filter(|path| path.exists()).collect()
    }
}
