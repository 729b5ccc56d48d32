//! Loads a kubeconfig whose users are named after the services that they authenticate to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::kubeconfig_file::{Kubeconfig, User, decode_kubeconfig};
use document::{ReadError, Source, Warning};
use https_client::{ClientCertificate, Credentials};

use crate::credentials::{load_client_certificate, load_user_credentials};
use crate::load_connections::to_load_error;
use crate::load_error::{ConfigProblem, LoadError, invalid_configuration_error};
use crate::referenced_files::{ReadFileFn, ReferencedFiles};
use crate::user_check::{self, ExecPolicy};

/// The credentials that a client presents to a service.
#[derive(Debug, Clone, PartialEq)]
pub struct UserCredentials {
    /// The credentials in request headers.
    pub credentials: Credentials,
    /// The client certificate of TLS connections.
    pub client_certificate: Option<ClientCertificate>,
}

/// The users of a kubeconfig, which are named after services. The addresses of the services come from
/// elsewhere.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsersByServerName {
    /// All users by name. The name is that of a service, such as `h.example.com:8443`,
    /// `*.example.com` or `*`.
    pub users_by_server_name: HashMap<String, UserCredentials>,
    /// The user of the current context, if the file has one.
    pub current_user: Option<UserCredentials>,
    /// Every file that the users depend on; the kubeconfig comes first.
    pub source_files: Vec<PathBuf>,
    /// Warnings about accepted settings.
    pub warnings: Vec<Warning>,
}

/// Loads the users of the file at a path, and the files that it refers to, through `read`.
///
/// # Errors
///
/// The file cannot be read or used.
pub fn load_users_by_server_name(
    path: &Path,
    read: ReadFileFn<'_>,
) -> Result<UsersByServerName, LoadError> {
    let bytes = read(path)
        .map_err(|error| LoadError::Read { message: ReadError::new(path, &error).to_string() })?;
    parse_users_by_server_name(
        &Source { name: &path.display().to_string(), file_bytes: &bytes },
        path,
        read,
    )
}

/// Loads the users of a file from its bytes. Relative paths in it are relative to the folder of
/// `path`.
///
/// 1. Every user must be usable at load time, because each of them may be the one for some service.
///    Kubernetes reports the fault when the service is called.
/// 2. A current context must exist, and so must its user; otherwise the client would call
///    anonymously by mistake.
/// 3. Clusters are not read.
///
/// # Errors
///
/// The file cannot be used; the error lists all faults.
pub fn parse_users_by_server_name(
    source: &Source<'_>,
    path: &Path,
    read: ReadFileFn<'_>,
) -> Result<UsersByServerName, LoadError> {
    let decoded = decode_kubeconfig(source).map_err(|error| to_load_error(source, error))?;
    let mut files = ReferencedFiles::new(path, read);
    let mut problems = Vec::new();
    let mut by_name = HashMap::new();
    for user in &decoded.kubeconfig.users {
        match load_user(user, &mut files) {
            Ok(access) => _ = by_name.insert(user.name.clone(), access),
            Err(found) => problems.extend(found),
        }
    }
    let current_user = match find_current_user(&decoded.kubeconfig) {
        Ok(name) => name.and_then(|name| by_name.get(name).cloned()),
        Err(problem) => {
            problems.push(problem);
            None
        }
    };
    if !problems.is_empty() {
        return Err(invalid_configuration_error(source.name, problems));
    }
    Ok(UsersByServerName {
        users_by_server_name: by_name,
        current_user,
        source_files: files.into_used_paths(),
        warnings: decoded.warnings,
    })
}

fn load_user(
    user: &User,
    files: &mut ReferencedFiles<'_>,
) -> Result<UserCredentials, Vec<ConfigProblem>> {
    let mut problems = user_check::find_user_problems(user, files, ExecPolicy::Refuse);
    if !user.impersonate_user.value.is_empty() {
        let message = format!("impersonation is not supported here, found it for {}", user.name);
        problems.push(ConfigProblem::new(
            &user.field,
            "as",
            user.impersonate_user.position,
            message,
        ));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    match (load_user_credentials(user, files), load_client_certificate(user, files)) {
        (Ok(credentials), Ok(client_certificate)) => {
            Ok(UserCredentials { credentials, client_certificate })
        }
        (credentials, client_certificate) => {
            Err(credentials.err().into_iter().chain(client_certificate.err()).collect())
        }
    }
}

/// Finds the name of the user of the current context; `None` if the file has no current context.
fn find_current_user(kubeconfig: &Kubeconfig) -> Result<Option<&str>, ConfigProblem> {
    let current = &kubeconfig.current_context;
    if current.value.is_empty() {
        return Ok(None);
    }
    let context = kubeconfig.contexts.iter().find(|context| context.name == current.value);
    let context = context.ok_or_else(|| {
        let message = format!("context was not found for specified context: {}", current.value);
        ConfigProblem::new("", "current-context", current.position, message)
    })?;
    let name = &context.user;
    if name.value.is_empty() {
        return Ok(None);
    }
    if kubeconfig.users.iter().any(|user| user.name == name.value) {
        return Ok(Some(&name.value));
    }
    let (user, context) = (go_compat::quote(&name.value), go_compat::quote(&context.name));
    let message = format!("user {user} was not found for context {context}");
    Err(ConfigProblem::new("", "contexts", name.position, message))
}
