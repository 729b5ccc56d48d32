//! Merges several kubeconfigs, as kubectl merges the files of `KUBECONFIG`.

use std::path::Path;

use document::Source;

use crate::kubeconfig_file::{self, Cluster, Context, DecodedKubeconfig, Kubeconfig, User};
use crate::load_connections::to_load_error;
use crate::load_error::LoadError;
use crate::referenced_files::ReferencedFiles;

/// One entry of the merged configuration, with the file that it comes from.
#[derive(Debug, Clone)]
pub(crate) struct MergedEntry<T> {
    pub(crate) entry: T,
    /// The name of the file, for messages.
    pub(crate) file_name: String,
}

/// The entries of several kubeconfigs. Paths in them are absolute.
///
/// 1. The first file that names a current context sets it.
/// 2. If several contexts, clusters or users have the same name, the whole entry of the first file applies.
/// 3. A relative path is relative to the folder of the file that contains it.
#[derive(Debug, Default)]
pub(crate) struct MergedKubeconfig {
    pub(crate) current_context: Option<MergedEntry<String>>,
    pub(crate) contexts: Vec<MergedEntry<Context>>,
    pub(crate) clusters: Vec<MergedEntry<Cluster>>,
    pub(crate) users: Vec<MergedEntry<User>>,
}

impl MergedKubeconfig {
    /// Adds the entries of a file that earlier files do not have. Returns the warnings of the file.
    ///
    /// # Errors
    ///
    /// The file cannot be decoded.
    pub(crate) fn add_file(
        &mut self,
        path: &Path,
        bytes: &[u8],
        files: &ReferencedFiles<'_>,
    ) -> Result<Vec<document::Warning>, LoadError> {
        let name = path.display().to_string();
        let source = Source { name: &name, file_bytes: bytes };
        let DecodedKubeconfig { kubeconfig, warnings } =
            kubeconfig_file::decode_kubeconfig(&source)
                .map_err(|error| to_load_error(&source, error))?;
        let Kubeconfig { current_context, contexts, clusters, users, .. } = kubeconfig;
        if self.current_context.is_none() && !current_context.value.is_empty() {
            let (entry, file) = (current_context.value, name.clone());
            self.current_context = Some(MergedEntry { entry, file_name: file });
        }
        add_missing_entries(&mut self.contexts, contexts, &name, |context| &context.name);
        let clusters = clusters.into_iter().map(|mut cluster| {
            make_absolute(&mut cluster.certificate_authority.value, files);
            cluster
        });
        add_missing_entries(&mut self.clusters, clusters, &name, |cluster| &cluster.name);
        let users = users.into_iter().map(|mut user| {
            for path in [&mut user.client_certificate, &mut user.client_key, &mut user.token_file] {
                make_absolute(&mut path.value, files);
            }
            if let Some(exec) = &mut user.exec_settings
                && exec.command.value.contains('/')
            {
                make_absolute(&mut exec.command.value, files);
            }
            user
        });
        add_missing_entries(&mut self.users, users, &name, |user| &user.name);
        Ok(warnings)
    }
}

fn add_missing_entries<T>(
    merged: &mut Vec<MergedEntry<T>>,
    entries: impl IntoIterator<Item = T>,
    file: &str,
    name_of: fn(&T) -> &String,
) {
    for entry in entries {
        if !merged.iter().any(|own| name_of(&own.entry) == name_of(&entry)) {
            merged.push(MergedEntry { entry, file_name: file.to_owned() });
        }
    }
}

/// Resolves a path that is not empty against the folder of its file.
fn make_absolute(path: &mut String, files: &ReferencedFiles<'_>) {
    if !path.is_empty()
        && let Some(absolute) = files.resolve_path(&*path).to_str()
    {
        *path = absolute.to_owned();
    }
}
