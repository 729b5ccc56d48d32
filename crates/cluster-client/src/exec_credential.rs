//! Credentials that a program provides: the `exec` settings of a kubeconfig user.

use std::io::{self, IsTerminal as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use https_client::{ClientCertificate, Credentials, PemLocation, Secret, Target};
use jiff::Timestamp;
use kubeconfig::{ExecClusterInfo, ExecSettings};
use serde_json::{Map, Value, json};

use crate::credential_program::{CredentialProgramError, run_program};

/// The time that a credential program has. One that asks a person to log in takes longer than others.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(60);

/// The variables of this process that a credential program gets besides those that the kubeconfig lists: without them it
/// finds neither other programs nor its own files.
const INHERITED_VARIABLES: [&str; 2] = ["PATH", "HOME"];

/// A program provides no credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The program does not run to its end.
    #[error("the credential program `{command}` provides no credentials: {error}{}", format_install_hint_suffix(.install_hint))]
    Program {
        /// The program of the kubeconfig.
        command: String,
        /// The reason of the failure.
        error: CredentialProgramError,
        /// The text of the kubeconfig that tells how to install it.
        install_hint: String,
    },
    /// The program needs a terminal, and standard input is none.
    #[error("the credential program `{command}` needs a terminal (interactiveMode: Always)")]
    NoTerminal {
        /// The program of the kubeconfig.
        command: String,
    },
    /// The program prints something else than credentials.
    #[error("the credential program `{command}` printed no {expected}")]
    NotACredential {
        /// The program of the kubeconfig.
        command: String,
        /// The form that is missing.
        expected: String,
    },
}

fn format_install_hint_suffix(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("\n{hint}") }
}

/// The credentials of one run of a program.
#[derive(Debug, Clone)]
pub(crate) struct ExecCredential {
    token: Option<Secret>,
    certificate: Option<ClientCertificate>,
    /// The time at which the credentials stop being valid; `None` if they last as long as this process.
    expires_at: Option<Timestamp>,
}

impl ExecCredential {
    /// Reports whether the credentials are no longer valid.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Sets the credentials of a target.
    pub(crate) fn apply_to_target(&self, target: &mut Target) {
        if let Some(token) = &self.token {
            target.credentials = Credentials::Token(token.clone());
        }
        if let Some(certificate) = &self.certificate {
            target.client_certificate = Some(certificate.clone());
        }
    }
}

/// Runs the program and reads its credentials. It runs without a shell, and with no variables of this process but
/// [`INHERITED_VARIABLES`].
///
/// # Errors
///
/// The program fails, takes too long, or prints no credentials.
pub(crate) fn run_credential_program(
    settings: &ExecSettings,
    cluster: &ExecClusterInfo,
) -> Result<ExecCredential, CredentialError> {
    let command_name = &settings.command.value;
    let is_terminal = io::stdin().is_terminal();
    let is_interactive = match settings.interactive_mode.value.as_str() {
        "Never" => false,
        "Always" if !is_terminal => {
            return Err(CredentialError::NoTerminal { command: command_name.clone() });
        }
        _ => is_terminal,
    };
    let mut command = Command::new(command_name);
    command.args(&settings.args).env_clear();
    for name in INHERITED_VARIABLES {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(settings.env.iter().map(|(name, value)| (name, value)));
    command
        .env("KUBERNETES_EXEC_INFO", exec_info_json(settings, cluster, is_interactive).to_string());
    command.stdin(if is_interactive { Stdio::inherit() } else { Stdio::null() });
    let output = run_program(command, PROGRAM_TIMEOUT).map_err(|error| {
        let (command, install_hint) = (command_name.clone(), settings.install_hint.clone());
        CredentialError::Program { command, error, install_hint }
    })?;
    parse_exec_credential(settings, &output)
}

/// The description that the program gets in `KUBERNETES_EXEC_INFO`.
fn exec_info_json(
    settings: &ExecSettings,
    cluster: &ExecClusterInfo,
    is_interactive: bool,
) -> Value {
    let mut spec = Map::new();
    spec.insert("interactive".to_owned(), is_interactive.into());
    if settings.provide_cluster_info {
        let mut described = Map::new();
        let mut set = |name: &str, value: Value| described.insert(name.to_owned(), value);
        set("server", cluster.server_url.as_str().into());
        set("config", Value::Null);
        for (name, value) in
            [("tls-server-name", &cluster.tls_server_name), ("proxy-url", &cluster.proxy_url)]
        {
            if !value.is_empty() {
                set(name, value.as_str().into());
            }
        }
        if cluster.insecure_skip_tls_verify {
            set("insecure-skip-tls-verify", true.into());
        }
        if !cluster.certificate_authority_data.is_empty() {
            let data = STANDARD.encode(&cluster.certificate_authority_data);
            set("certificate-authority-data", data.into());
        }
        spec.insert("cluster".to_owned(), described.into());
    }
    json!({
        "apiVersion": settings.api_version.value, "kind": "ExecCredential", "spec": spec,
    })
}

fn parse_exec_credential(
    settings: &ExecSettings,
    output: &[u8],
) -> Result<ExecCredential, CredentialError> {
    let missing = |expected: &str| CredentialError::NotACredential {
        command: settings.command.value.clone(),
        expected: expected.to_owned(),
    };
    let version = &settings.api_version.value;
    let kind = format!("ExecCredential of {version}");
    let credential: Value = serde_json::from_slice(output).map_err(|_| missing(&kind))?;
    let text = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let is_expected = text(&credential, "kind").as_deref() == Some("ExecCredential")
        && text(&credential, "apiVersion").as_ref() == Some(version);
    let status = credential.get("status").filter(|status| status.is_object() && is_expected);
    let status = status.ok_or_else(|| missing(&kind))?;
    let pem =
        |name| text(status, name).map(|pem| PemLocation::Inline(Secret::new(pem.into_bytes())));
    let certificate = match (pem("clientCertificateData"), pem("clientKeyData")) {
        (Some(certificate), Some(key)) => {
            let certificate = ClientCertificate { certificate_location: certificate, key };
            certificate
                .check_certificate_usable()
                .map_err(|_| missing("certificate with its key"))?;
            Some(certificate)
        }
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => return Err(missing("certificate with its key")),
    };
    let token = text(status, "token").map(|token| Secret::new(token.into_bytes()));
    if token.is_none() && certificate.is_none() {
        return Err(missing("token and no client certificate"));
    }
    let expires_at = match text(status, "expirationTimestamp") {
        None => None,
        Some(at) => {
            let at = at.parse().map_err(|_| missing("valid expirationTimestamp"))?;
            Some(at)
        }
    };
    Ok(ExecCredential { token, certificate, expires_at })
}
