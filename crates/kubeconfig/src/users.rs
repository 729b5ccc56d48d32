//! Who we are to whom: a kubeconfig whose users are named after services (admission §4.6).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::kubeconfig_file::{Kubeconfig, User, decode};
use document::{ReadError, Source, Warning};
use https_client::{Credentials, Identity};

use crate::access::{credentials, identity};
use crate::error::{LoadError, Problem, invalid_configuration};
use crate::files::{Files, Read};
use crate::load::undecodable;
use crate::user;

/// What a user shows to a service.
#[derive(Debug, Clone, PartialEq)]
pub struct UserAccess {
    /// What requests carry.
    pub credentials: Credentials,
    /// The client certificate.
    pub identity: Option<Identity>,
}

/// The users of a file. Where services are, the file does not say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Users {
    /// All of them by name, which here is that of a service, such as `h.example.com:8443`,
    /// `*.example.com` or `*`.
    pub by_name: HashMap<String, UserAccess>,
    /// That of the current context, if the file has one.
    pub current: Option<UserAccess>,
    /// Every file that this depends on, the one that was loaded first.
    pub files: Vec<PathBuf>,
    /// What is accepted but should be changed.
    pub warnings: Vec<Warning>,
}

/// Loads the users of the file at a path, and through the same function what it refers to.
///
/// # Errors
///
/// The file can not be read or used.
pub fn load_users(path: &Path, read: Read<'_>) -> Result<Users, LoadError> {
    let bytes = read(path)
        .map_err(|error| LoadError::Read { message: ReadError::new(path, &error).to_string() })?;
    parse_users(&Source { name: &path.display().to_string(), bytes: &bytes }, path, read)
}

/// Loads the users of a file whose bytes are known. Relative paths in it are those from the folder of
/// `path`.
///
/// 1. Any user may be the one for some service, so that all of them must be usable, now. Kubernetes
///    finds out when a service is called.
/// 2. A current context must exist, and so must its user: who calls as nobody by mistake would learn
///    it from the service only.
/// 3. Clusters are not looked at.
///
/// # Errors
///
/// The file can not be used; all faults are told.
pub fn parse_users(source: &Source<'_>, path: &Path, read: Read<'_>) -> Result<Users, LoadError> {
    let decoded = decode(source).map_err(|error| undecodable(source, error))?;
    let mut files = Files::new(path, read);
    let mut problems = Vec::new();
    let mut by_name = HashMap::new();
    for user in &decoded.kubeconfig.users {
        match access(user, &mut files) {
            Ok(access) => _ = by_name.insert(user.name.clone(), access),
            Err(found) => problems.extend(found),
        }
    }
    let current = match current_user(&decoded.kubeconfig) {
        Ok(name) => name.and_then(|name| by_name.get(name).cloned()),
        Err(problem) => {
            problems.push(problem);
            None
        }
    };
    if !problems.is_empty() {
        return Err(invalid_configuration(source.name, problems));
    }
    Ok(Users { by_name, current, files: files.into_used(), warnings: decoded.warnings })
}

fn access(user: &User, files: &mut Files<'_>) -> Result<UserAccess, Vec<Problem>> {
    let mut problems = user::problems(user, files);
    if !user.act_as.value.is_empty() {
        let message = format!("impersonation is not supported here, found it for {}", user.name);
        problems.push(Problem::new(&user.field, "as", user.act_as.place, message));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    match (credentials(user, files), identity(user, files)) {
        (Ok(credentials), Ok(identity)) => Ok(UserAccess { credentials, identity }),
        (credentials, identity) => {
            Err(credentials.err().into_iter().chain(identity.err()).collect())
        }
    }
}

/// The name of the user of the current context, if there is one.
fn current_user(kubeconfig: &Kubeconfig) -> Result<Option<&str>, Problem> {
    let current = &kubeconfig.current_context;
    if current.value.is_empty() {
        return Ok(None);
    }
    let context = kubeconfig.contexts.iter().find(|context| context.name == current.value);
    let context = context.ok_or_else(|| {
        let message = format!("context was not found for specified context: {}", current.value);
        Problem::new("", "current-context", current.place, message)
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
    Err(Problem::new("", "contexts", name.place, message))
}
