//! Flags that choose the cluster whose objects decide.

use std::path::PathBuf;

use document::SourcePosition;
use kubeconfig::{ClusterConnection, ContextOverrides, LoadError};

use super::load_failure::LoadFailure;

/// The variable that names kubeconfigs, as for kubectl.
const KUBECONFIG_VARIABLE: &str = "KUBECONFIG";

/// The flags that choose the cluster whose objects a command reads.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterConnectionFlags {
    /// Read the objects from the cluster of this kubeconfig
    ///
    /// Without files and without this flag, the command uses the files of $KUBECONFIG, else
    /// ~/.kube/config, else the service account of its pod. With -f as well, the command answers as
    /// if the files had been applied to the cluster.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use instead of the current one; the command then reads a
    /// cluster
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Cluster of the kubeconfig to use instead of that of the context; the command then reads it
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,

    /// User of the kubeconfig to use instead of that of the context; the command then reads a
    /// cluster
    #[arg(long = "user", value_name = "NAME")]
    pub(crate) kubeconfig_user: Option<String>,
}

/// The cluster whose objects decide, and the questions about it.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterFlags {
    #[command(flatten)]
    pub(crate) connection: ClusterConnectionFlags,

    /// Ask about all namespaces instead of the namespace of the context
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Compare each answer with a SubjectAccessReview of the cluster, and report every difference
    #[arg(long)]
    pub(crate) verify: bool,
}

/// The environment of the process, which tests replace.
pub(crate) struct ProcessEnvironment<'e> {
    pub(crate) read_variable: &'e dyn Fn(&str) -> Option<String>,
    /// Whether the program runs as a plugin of kubectl, which always asks the cluster.
    pub(crate) is_kubectl_plugin: bool,
}

impl ProcessEnvironment<'_> {
    /// The environment of this process.
    pub(crate) fn of_current_process() -> Self {
        Self { read_variable: &read_process_variable, is_kubectl_plugin: is_kubectl_plugin() }
    }
}

/// Reads a variable of this process.
fn read_process_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Reports whether the program was started under the name of a kubectl plugin.
fn is_kubectl_plugin() -> bool {
    let program = std::env::args_os().next().map(PathBuf::from);
    let name = program.as_deref().and_then(|path| path.file_stem()).and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("kubectl-"))
}

/// Describes the faults of a kubeconfig by their positions. An excerpt of the file could show a token.
fn kubeconfig_load_failure(error: &LoadError) -> LoadFailure {
    let positions = error.diagnostics().iter().map(|own| {
        let SourcePosition { line, column, .. } = own.position;
        format!("{}:{line}:{column}", own.file_name)
    });
    let positions: Vec<String> = positions.collect();
    match positions.as_slice() {
        [] => LoadFailure::from_message(error),
        positions => LoadFailure::from_message(format_args!("{}: {error}", positions.join(", "))),
    }
}

impl ClusterFlags {
    /// Finds the connection as [`ClusterConnectionFlags::find_cluster_connection`] does; --verify asks for a cluster as well.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn find_cluster_connection(
        &self,
        has_files: bool,
        environment: &ProcessEnvironment<'_>,
    ) -> Result<Option<ClusterConnection>, LoadFailure> {
        let is_requested = self.verify || self.connection.is_cluster_requested();
        self.connection.find_explicit_or_default_connection(is_requested, has_files, environment)
    }
}

impl ClusterConnectionFlags {
    /// Reports whether a flag asks for a cluster.
    fn is_cluster_requested(&self) -> bool {
        let Self { kubeconfig, context, cluster, kubeconfig_user } = self;
        kubeconfig.is_some() || context.is_some() || cluster.is_some() || kubeconfig_user.is_some()
    }

    /// Finds the connection to the cluster; `None` if the command works with files alone.
    ///
    /// 1. A flag, or the name of a kubectl plugin, asks for a cluster, which must then be found.
    /// 2. A command with files and no such flag works with the files.
    /// 3. A command without files uses a cluster if a kubeconfig exists or if it runs in a pod.
    ///
    /// # Errors
    /// A kubeconfig cannot be used, or there is none where a flag asks for a cluster.
    pub(crate) fn find_cluster_connection(
        &self,
        has_files: bool,
        environment: &ProcessEnvironment<'_>,
    ) -> Result<Option<ClusterConnection>, LoadFailure> {
        self.find_explicit_or_default_connection(
            self.is_cluster_requested(),
            has_files,
            environment,
        )
    }

    fn find_explicit_or_default_connection(
        &self,
        is_requested: bool,
        has_files: bool,
        environment: &ProcessEnvironment<'_>,
    ) -> Result<Option<ClusterConnection>, LoadFailure> {
        let is_requested = is_requested || environment.is_kubectl_plugin;
        if has_files && !is_requested {
            return Ok(None);
        }
        let choice = ContextOverrides {
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.kubeconfig_user.clone(),
        };
        let paths = self.kubeconfig_paths(environment);
        if !paths.is_empty() {
            let loaded =
                kubeconfig::load_cluster_connection(&paths, &choice, &kubeconfig::read_file);
            return loaded.map(Some).map_err(|error| kubeconfig_load_failure(&error));
        }
        match kubeconfig::in_cluster_connection(environment.read_variable, &kubeconfig::read_file) {
            Ok(connection) => Ok(Some(connection)),
            Err(_) if !is_requested => Ok(None),
            Err(error) => Err(LoadFailure::from_message(format_args!(
                "there is no cluster to ask: ~/.kube/config does not exist, {KUBECONFIG_VARIABLE} is not set, and this is \
                 no pod ({error}); name a kubeconfig with --kubeconfig"
            ))),
        }
    }

    /// Lists the kubeconfigs: that of the flag, those of the variable, or that of the home folder if it exists.
    fn kubeconfig_paths(&self, environment: &ProcessEnvironment<'_>) -> Vec<PathBuf> {
        if let Some(path) = &self.kubeconfig {
            return vec![path.clone()];
        }
        let listed = (environment.read_variable)(KUBECONFIG_VARIABLE).unwrap_or_default();
        let listed: Vec<PathBuf> =
            listed.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
        if !listed.is_empty() {
            return listed;
        }
        let home = (environment.read_variable)("HOME")
            .map(|home| PathBuf::from(home).join(".kube/config"));
        home.into_iter().filter(|path| path.exists()).collect()
    }
}
