//! Loads the connection of a person to a cluster, as kubectl does.

use std::fmt;
use std::io;
use std::path::PathBuf;

use document::ReadError;
use field_errors::nearest_word;
use https_client::{Destination, Scheme, Target};

use crate::cluster_target;
use crate::connection::ServerConnection;
use crate::kubeconfig_file::{Cluster, ExecSettings};
use crate::load_error::{LoadError, invalid_configuration_error, single_problem_error};
use crate::merged_kubeconfig::{MergedEntry, MergedKubeconfig};
use crate::referenced_files::{ReadFileFn, ReferencedFiles};
use crate::select_context::SelectedContext;
use crate::user_check::ExecPolicy;
use crate::{cluster_check, user_check};

/// Names that replace those of the kubeconfig.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextOverrides {
    /// The context to use instead of the current one.
    pub context: Option<String>,
    /// The cluster to use instead of that of the context.
    pub cluster: Option<String>,
    /// The user to use instead of that of the context.
    pub user: Option<String>,
}

/// The connection to a cluster.
#[derive(Debug, Clone)]
pub struct ClusterConnection {
    /// The connection, with all credentials but those of `exec`.
    pub server_connection: ServerConnection,
    /// The namespace of the context; empty if it names none.
    pub namespace: String,
    /// The program that provides the credentials.
    pub exec_settings: Option<ExecSettings>,
    /// The description of the cluster for that program.
    pub exec_cluster_info: ExecClusterInfo,
}

/// The description of a cluster that a credential program with `provideClusterInfo` gets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ExecClusterInfo {
    /// The URL of the server.
    pub server_url: String,
    /// The name that the certificate of the server must have; empty for the host.
    pub tls_server_name: String,
    /// Whether the certificate of the server is not verified.
    pub insecure_skip_tls_verify: bool,
    /// The CA certificates, in PEM; empty for those of the system.
    pub certificate_authority_data: Vec<u8>,
    /// The URL of the proxy; empty for none.
    pub proxy_url: String,
}

/// Shows no field: the URLs may contain passwords.
impl fmt::Debug for ExecClusterInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecClusterInfo").finish_non_exhaustive()
    }
}

/// Loads the files of a kubeconfig path list, merges them and selects a context.
///
/// 1. With one path, the file must exist. Of several paths, those that do not exist are skipped, as in kubectl.
/// 2. The files are merged: the first one that has an entry counts.
/// 3. The context is that of `choice`, else the current one. A name that does not exist is an error.
/// 4. Cluster and user are those of `choice`, else those of the context.
/// 5. User and cluster must not contradict themselves, and their files must be readable.
///
/// # Errors
///
/// A file cannot be read or decoded, or the selected entries cannot be used.
pub fn load_cluster_connection(
    paths: &[PathBuf],
    choice: &ContextOverrides,
    read: ReadFileFn<'_>,
) -> Result<ClusterConnection, LoadError> {
    let mut merged = MergedKubeconfig::default();
    let (mut warnings, mut used_paths) = (Vec::new(), Vec::new());
    for path in paths {
        let bytes = match read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound && paths.len() > 1 => continue,
            Err(error) => {
                let message = ReadError::new(path, &error).to_string();
                return Err(LoadError::Read { message });
            }
        };
        let files = ReferencedFiles::new(path, read);
        warnings.extend(merged.add_file(path, &bytes, &files)?);
        used_paths.extend(files.into_used_paths());
    }
    let selected = select_entries(&merged, choice)?;
    let (cluster, user) = (selected.cluster, selected.user);
    // Paths in merged entries are absolute, so it does not matter which file they are relative to.
    let first = paths.first().cloned().unwrap_or_default();
    let mut files = ReferencedFiles::new(&first, read);
    let user_problems = user
        .map(|user| user_check::find_user_problems(&user.entry, &mut files, ExecPolicy::Allow))
        .unwrap_or_default();
    if let (Some(user), false) = (user, user_problems.is_empty()) {
        return Err(invalid_configuration_error(&user.file_name, user_problems));
    }
    let cluster_problems = cluster_check::find_cluster_problems(&cluster.entry, &mut files);
    if !cluster_problems.is_empty() {
        return Err(invalid_configuration_error(&cluster.file_name, cluster_problems));
    }
    let context = SelectedContext { cluster: &cluster.entry, user: user.map(|user| &user.entry) };
    let target: Target =
        cluster_target::build_target(&context, &mut files, &cluster.file_name, &mut warnings)
            .map_err(|problem| single_problem_error(&cluster.file_name, problem))?;
    let is_tls = matches!(target.destination, Destination::Url { scheme: Scheme::Https, .. });
    let exec_cluster = exec_cluster_info(&cluster.entry, &mut files);
    used_paths.extend(files.into_used_paths().into_iter().skip(1));
    Ok(ClusterConnection {
        server_connection: ServerConnection {
            client_target: target,
            source_files: used_paths,
            warnings,
        },
        namespace: selected.namespace,
        // Without TLS the credentials would not be sent, so nothing runs.
        exec_settings: user.filter(|_| is_tls).and_then(|user| user.entry.exec_settings.clone()),
        exec_cluster_info: exec_cluster,
    })
}

/// The selected entries of a merged kubeconfig.
struct SelectedEntries<'m> {
    cluster: &'m MergedEntry<Cluster>,
    user: Option<&'m MergedEntry<crate::kubeconfig_file::User>>,
    namespace: String,
}

fn select_entries<'m>(
    merged: &'m MergedKubeconfig,
    choice: &ContextOverrides,
) -> Result<SelectedEntries<'m>, LoadError> {
    let not_found = |what: &str, name: &str, known: Vec<&str>| {
        let nearest = match nearest_word(name, known.iter().copied()) {
            Some(nearest) => format!(", did you mean \"{nearest}\"?"),
            None if known.is_empty() => format!("; the kubeconfig has no {what}"),
            None => format!("; the kubeconfig has {}", known.join(", ")),
        };
        LoadError::NoEntry {
            message: format!("no {what} exists with the name: \"{name}\"{nearest}"),
        }
    };
    let current = merged.current_context.as_ref().map(|current| current.entry.as_str());
    let context = match choice.context.as_deref().or(current) {
        None => None,
        Some(name) => {
            let found = merged.contexts.iter().find(|context| context.entry.name == name);
            let known = || merged.contexts.iter().map(|own| own.entry.name.as_str()).collect();
            Some(&found.ok_or_else(|| not_found("context", name, known()))?.entry)
        }
    };
    let cluster_name = choice.cluster.as_deref().or(context.map(|own| own.cluster.value.as_str()));
    let cluster = match cluster_name {
        Some(name) => {
            let found = merged.clusters.iter().find(|cluster| cluster.entry.name == name);
            let known = || merged.clusters.iter().map(|own| own.entry.name.as_str()).collect();
            found.ok_or_else(|| not_found("cluster", name, known()))?
        }
        None => {
            let message =
                "no context is chosen: the kubeconfig has no current-context, and --context names \
                           none"
                    .to_owned();
            return Err(LoadError::NoEntry { message });
        }
    };
    let user_name = choice.user.as_deref().or(context.map(|own| own.user.value.as_str()));
    let user = match user_name {
        None | Some("") => None,
        Some(name) => {
            let found = merged.users.iter().find(|user| user.entry.name == name);
            let known = || merged.users.iter().map(|own| own.entry.name.as_str()).collect();
            Some(found.ok_or_else(|| not_found("user", name, known()))?)
        }
    };
    let namespace = context.map(|context| context.namespace.value.clone()).unwrap_or_default();
    Ok(SelectedEntries { cluster, user, namespace })
}

fn exec_cluster_info(cluster: &Cluster, files: &mut ReferencedFiles<'_>) -> ExecClusterInfo {
    let data = match cluster.certificate_authority_data.value.as_slice() {
        [] if cluster.certificate_authority.value.is_empty() => Vec::new(),
        // The file was read before, when the target was built.
        [] => {
            let path = files.resolve_path(&cluster.certificate_authority.value);
            files.read(&path).unwrap_or_default()
        }
        data => data.to_vec(),
    };
    ExecClusterInfo {
        server_url: cluster.server_url.value.clone(),
        tls_server_name: cluster.tls_server_name.value.clone(),
        insecure_skip_tls_verify: cluster.insecure_skip_tls_verify.value,
        certificate_authority_data: data,
        proxy_url: cluster.proxy_url.value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use https_client::Credentials;

    use super::*;

    const FIRST: &str = "\
current-context: dev
contexts:
- {name: dev, context: {cluster: dev, user: ana, namespace: team}}
clusters:
- {name: dev, cluster: {server: 'https://dev.example:6443', tls-server-name: inner}}
users:
- name: ana
  user: {tokenFile: tokens/ana}
";
    const SECOND: &str = "\
current-context: prod
contexts:
- {name: dev, context: {cluster: prod, user: bob}}
- {name: prod, context: {cluster: prod, user: bob}}
clusters:
- {name: prod, cluster: {server: 'https://prod.example'}}
users:
- name: ana
  user: {token: other}
- name: bob
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, args: [a], env: [{name: K, value: v}], interactiveMode: Never}
";

    fn read(path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str().unwrap() {
            "/one/config" => Ok(FIRST.into()),
            "/two/config" => Ok(SECOND.into()),
            "/one/tokens/ana" => Ok(b"token\n".to_vec()),
            _ => Err(io::Error::from_raw_os_error(2)),
        }
    }

    fn load(paths: &[&str], choice: &ContextOverrides) -> Result<ClusterConnection, LoadError> {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        load_cluster_connection(&paths, choice, &read)
    }

    #[test]
    fn the_first_file_that_has_an_entry_counts() {
        let both = ["/one/config", "/missing", "/two/config"];
        let loaded = load(&both, &ContextOverrides::default()).unwrap();
        let target = loaded.server_connection.client_target;
        let host = Destination::Url {
            scheme: Scheme::Https,
            host: "dev.example".to_owned(),
            port: Some(6443),
        };
        assert_eq!((target.destination, loaded.namespace.as_str()), (host, "team"));
        assert_eq!(target.server_name.as_deref(), Some("inner"));
        // A relative path belongs to its own file.
        assert!(
            matches!(target.credentials, Credentials::TokenFile { path, .. } if path == Path::new("/one/tokens/ana"))
        );
    }

    #[test]
    fn names_of_the_choice_replace_those_of_the_files() {
        let both = ["/one/config", "/two/config"];
        let choice =
            ContextOverrides { context: Some("prod".to_owned()), ..ContextOverrides::default() };
        let loaded = load(&both, &choice).unwrap();
        let exec = loaded.exec_settings.unwrap();
        assert_eq!((exec.command.value.as_str(), exec.args.len()), ("/two/login", 1));
        assert_eq!(exec.env, [("K".to_owned(), "v".to_owned())]);
        let choice =
            ContextOverrides { user: Some("bob".to_owned()), ..ContextOverrides::default() };
        let loaded = load(&both, &choice).unwrap();
        assert!(
            loaded.exec_settings.is_some()
                && loaded.exec_cluster_info.server_url == "https://dev.example:6443"
        );
    }

    #[test]
    fn names_that_do_not_exist_are_errors_with_the_near_miss() {
        let choice = |context: &str| ContextOverrides {
            context: Some(context.to_owned()),
            ..ContextOverrides::default()
        };
        let message = |paths: &[&str], choice: &ContextOverrides| {
            load(paths, choice).unwrap_err().to_string()
        };
        assert_eq!(
            message(&["/one/config"], &choice("dve")),
            "no context exists with the name: \"dve\", did you mean \"dev\"?"
        );
        assert_eq!(
            message(&["/missing"], &ContextOverrides::default()),
            "open /missing: no such file or directory"
        );
        let user =
            ContextOverrides { user: Some("zoe-x".to_owned()), ..ContextOverrides::default() };
        assert_eq!(
            message(&["/one/config"], &user),
            "no user exists with the name: \"zoe-x\"; the kubeconfig has ana"
        );
        let nothing = message(&["/missing", "/absent"], &ContextOverrides::default());
        assert!(nothing.starts_with("no context is chosen"), "{nothing}");
    }
}
