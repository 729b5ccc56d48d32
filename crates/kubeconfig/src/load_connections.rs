//! Loads a kubeconfig or a hook file and builds its connections.

use std::path::Path;

use crate::kubeconfig_file;
use config::authorization_hooks as hook_file;
use document::{DecodeError, ReadError, Source};

use crate::connection::{LoadedConnections, ServerConnection};
use crate::load_error::LoadError;
use crate::referenced_files::{ReadFileFn, ReferencedFiles};
use crate::select_context::select_context;
use crate::{authorization_hook_connections, cluster_target};

/// Loads the file at a path, and the files that it refers to, through `read`.
///
/// # Errors
///
/// The file cannot be read or used.
pub fn load_connections(path: &Path, read: ReadFileFn<'_>) -> Result<LoadedConnections, LoadError> {
    let bytes = read(path)
        .map_err(|error| LoadError::Read { message: ReadError::new(path, &error).to_string() })?;
    parse_connections(&Source { name: &path.display().to_string(), file_bytes: &bytes }, path, read)
}

/// Loads a file from its bytes. Relative paths in it are relative to the folder of `path`.
///
/// 1. A file with the API group of hooks is a hook file.
/// 2. Any other file is a kubeconfig. An empty one is an error: unlike Kubernetes, this crate does
///    not fall back to the service account of the pod.
///
/// # Errors
///
/// The file cannot be used.
pub fn parse_connections(
    source: &Source<'_>,
    path: &Path,
    read: ReadFileFn<'_>,
) -> Result<LoadedConnections, LoadError> {
    if hook_file::is_authorization_hook_configuration(source) {
        return authorization_hook_connections::load_authorization_hook_connections(
            source, path, read,
        )
        .map(LoadedConnections::Hooks);
    }
    load_kubeconfig_connection(source, path, read)
        .map(|connection| LoadedConnections::Kubeconfig(Box::new(connection)))
}

fn load_kubeconfig_connection(
    source: &Source<'_>,
    path: &Path,
    read: ReadFileFn<'_>,
) -> Result<ServerConnection, LoadError> {
    let decoded =
        kubeconfig_file::decode_kubeconfig(source).map_err(|error| to_load_error(source, error))?;
    let mut warnings = decoded.warnings;
    let mut files = ReferencedFiles::new(path, read);
    let selected = select_context(&decoded.kubeconfig, &mut files).map_err(|problems| {
        crate::load_error::invalid_configuration_error(source.name, problems)
    })?;
    let target = cluster_target::build_target(&selected, &mut files, source.name, &mut warnings)
        .map_err(|problem| crate::load_error::single_problem_error(source.name, problem))?;
    Ok(ServerConnection { client_target: target, source_files: files.into_used_paths(), warnings })
}

pub(crate) fn to_load_error(source: &Source<'_>, error: DecodeError) -> LoadError {
    LoadError::Unusable {
        message: format!(
            "error loading config file \"{}\": {}",
            source.name, error.kubernetes_message
        ),
        diagnostics: error.diagnostics,
    }
}
