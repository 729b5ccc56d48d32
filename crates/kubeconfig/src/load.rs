//! From a file to what it describes.

use std::path::Path;

use crate::kubeconfig_file;
use config::authorization_hooks as hook_file;
use document::{DecodeError, ReadError, Source};

use crate::connection::{Connection, Loaded};
use crate::error::LoadError;
use crate::files::{Files, Read};
use crate::select::select;
use crate::{hooks, target};

/// Loads the file at a path, and through the same function what it refers to.
///
/// # Errors
///
/// The file can not be read or used.
pub fn load(path: &Path, read: Read<'_>) -> Result<Loaded, LoadError> {
    let bytes = read(path)
        .map_err(|error| LoadError::Read { message: ReadError::new(path, &error).to_string() })?;
    parse(&Source { name: &path.display().to_string(), bytes: &bytes }, path, read)
}

/// Loads a file whose bytes are known. Relative paths in it are those from the folder of `path`.
///
/// 1. A file whose API group is that of hooks is one of hooks and nothing else.
/// 2. Any other is a kubeconfig. Nothing stands in for one that says nothing: not even the service
///    account of a pod, which Kubernetes would use.
///
/// # Errors
///
/// The file can not be used.
pub fn parse(source: &Source<'_>, path: &Path, read: Read<'_>) -> Result<Loaded, LoadError> {
    if hook_file::is_hook_configuration(source) {
        return hooks::connections(source, path, read).map(Loaded::Hooks);
    }
    connection(source, path, read).map(|connection| Loaded::Kubeconfig(Box::new(connection)))
}

fn connection(source: &Source<'_>, path: &Path, read: Read<'_>) -> Result<Connection, LoadError> {
    let decoded = kubeconfig_file::decode(source).map_err(|error| undecodable(source, error))?;
    let mut warnings = decoded.warnings;
    let mut files = Files::new(path, read);
    let selected = select(&decoded.kubeconfig, &mut files)
        .map_err(|problems| crate::error::invalid_configuration(source.name, problems))?;
    let target = target::build(&selected, &mut files, source.name, &mut warnings)
        .map_err(|problem| crate::error::unusable(source.name, problem))?;
    Ok(Connection { target, files: files.into_used(), warnings })
}

pub(crate) fn undecodable(source: &Source<'_>, error: DecodeError) -> LoadError {
    LoadError::Unusable {
        message: format!("error loading config file \"{}\": {}", source.name, error.cause),
        diagnostics: error.diagnostics,
    }
}
