//! Validates the user of a kubeconfig.

use document::SourcePosition;

use crate::kubeconfig_file::{ExecSettings, User};

use crate::load_error::ConfigProblem;
use crate::referenced_files::ReferencedFiles;

/// The current version of answers of credential programs.
pub(crate) const EXEC_VERSION_V1: &str = "client.authentication.k8s.io/v1";
/// The older version, which some programs still print.
pub(crate) const EXEC_VERSION_V1BETA1: &str = "client.authentication.k8s.io/v1beta1";

/// Whether a connection may run the program that `exec` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecPolicy {
    /// A connection of a server may not: the program would run with the privileges of the server.
    Refuse,
    /// A connection of a person may, as kubectl does.
    Allow,
}

/// Returns the problems of a user, in Kubernetes' order and words. The problems of `exec` and
/// `auth-provider` are Portcullis' own.
pub(crate) fn find_user_problems(
    user: &User,
    files: &mut ReferencedFiles<'_>,
    exec_policy: ExecPolicy,
) -> Vec<ConfigProblem> {
    let mut problems = find_certificate_problems(user, files);
    let mut problem = |field: &str, position, message| {
        problems.push(ConfigProblem::new(&user.field, field, position, message))
    };
    let name = &user.name;
    match (&user.exec_settings, exec_policy) {
        (None, _) => {}
        (Some(exec), ExecPolicy::Refuse) => {
            let message =
                format!("exec authentication plugins are not supported, found one for {name}");
            problem("exec", exec.position, message);
        }
        (Some(exec), ExecPolicy::Allow) => {
            for (field, position, message) in exec_problems(name, exec) {
                problem(field, position, message);
            }
        }
    }
    if let Some(position) = user.auth_provider_position {
        let message = format!("authentication providers are not supported, found one for {name}");
        problem("auth-provider", position, message);
    }
    if !user.token.value.is_empty() && has_basic_auth(user) {
        let message = format!(
            "more than one authentication method found for {name}; found [token basicAuth], only \
             one is allowed"
        );
        problem("token", user.token.position, message);
    }
    let acts = !user.impersonate_uid.value.is_empty()
        || !user.impersonate_groups.value.is_empty()
        || !user.impersonate_extra.value.is_empty();
    if acts && user.impersonate_user.value.is_empty() {
        let message =
            format!("requesting uid, groups or user-extra for {name} without impersonating a user");
        problem("as", user.impersonate_user.position, message);
    }
    problems
}

/// Returns the problems of `exec`, in Kubernetes' words.
fn exec_problems(name: &str, exec: &ExecSettings) -> Vec<(&'static str, SourcePosition, String)> {
    let mut problems = Vec::new();
    if exec.command.value.is_empty() {
        let message =
            format!("command must be specified for {name} to use exec authentication plugin");
        problems.push(("exec.command", exec.command.position, message));
    }
    let version = exec.api_version.value.as_str();
    if version.is_empty() {
        let message =
            format!("apiVersion must be specified for {name} to use exec authentication plugin");
        problems.push(("exec.apiVersion", exec.api_version.position, message));
    } else if !matches!(version, EXEC_VERSION_V1 | EXEC_VERSION_V1BETA1) {
        let message = format!(
            "exec plugin: invalid apiVersion {} for {name}: write {EXEC_VERSION_V1} or {EXEC_VERSION_V1BETA1}",
            go_compat::quote(version)
        );
        problems.push(("exec.apiVersion", exec.api_version.position, message));
    }
    match exec.interactive_mode.value.as_str() {
        "Never" | "IfAvailable" | "Always" => {}
        "" if version != EXEC_VERSION_V1 => {}
        "" => {
            let message = format!(
                "interactiveMode must be specified for {name} to use exec authentication plugin"
            );
            problems.push(("exec.interactiveMode", exec.interactive_mode.position, message));
        }
        other => {
            let message = format!(
                "invalid interactiveMode for {name}: {} is none of Never, IfAvailable and Always",
                go_compat::quote(other)
            );
            problems.push(("exec.interactiveMode", exec.interactive_mode.position, message));
        }
    }
    problems
}

/// Reports whether the user has a user name or a password.
pub(crate) fn has_basic_auth(user: &User) -> bool {
    !user.username.value.is_empty() || !user.password.value.is_empty()
}

/// Reports whether the user has a client certificate. A key alone does not count.
pub(crate) fn has_client_certificate(user: &User) -> bool {
    !user.client_certificate.value.is_empty() || !user.client_certificate_data.value.is_empty()
}

fn find_certificate_problems(user: &User, files: &mut ReferencedFiles<'_>) -> Vec<ConfigProblem> {
    let mut problems = Vec::new();
    if !has_client_certificate(user) {
        return problems;
    }
    let mut problem = |field: &str, position, message| {
        problems.push(ConfigProblem::new(&user.field, field, position, message))
    };
    let name = &user.name;
    let (certificate, certificate_data) = (&user.client_certificate, &user.client_certificate_data);
    let (key, key_data) = (&user.client_key, &user.client_key_data);
    if !certificate.value.is_empty() && !certificate_data.value.is_empty() {
        let message = format!(
            "client-cert-data and client-cert are both specified for {name}. client-cert-data will \
             override."
        );
        problem("client-certificate", certificate.position, message);
    }
    if !key.value.is_empty() && !key_data.value.is_empty() {
        let message = format!(
            "client-key-data and client-key are both specified for {name}; client-key-data will \
             override"
        );
        problem("client-key", key.position, message);
    }
    if key.value.is_empty() && key_data.value.is_empty() {
        let message = format!(
            "client-key-data or client-key must be specified for {name} to use the clientCert \
             authentication method."
        );
        problem("client-key", user.position, message);
    }
    for (field, words, file) in
        [("client-certificate", "client-cert", certificate), ("client-key", "client-key", key)]
    {
        if file.value.is_empty() {
            continue;
        }
        let path = files.resolve_path(&file.value);
        if let Err(error) = files.read(&path) {
            let message =
                format!("unable to read {words} {} for {name} due to {error}", path.display());
            problem(field, file.position, message);
        }
    }
    problems
}
