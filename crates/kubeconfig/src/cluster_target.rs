//! Builds the target of a client from a cluster and a user.

use crate::kubeconfig_file::{Cluster, User};
use document::{SourcePosition, Warning, WarningCode};
use https_client::{
    CaBundle, Credentials, Destination, Impersonation, Proxy, ProxyUrl, Scheme, ServerTrust, Target,
};

use crate::credentials::{load_client_certificate, load_user_credentials};
use crate::load_error::{CertificateError, ConfigProblem};
use crate::referenced_files::ReferencedFiles;
use crate::select_context::SelectedContext;
use crate::server_url::ServerUrl;
use crate::user_check::{has_basic_auth, has_client_certificate};

/// Builds the target of a client from the selected cluster and user.
///
/// As in Kubernetes, a target without TLS gets neither credentials nor CA certificates. The function accepts such
/// a target and adds a warning.
///
/// # Errors
///
/// The first problem, in Kubernetes' order and words.
pub(crate) fn build_target(
    selected: &SelectedContext<'_>,
    files: &mut ReferencedFiles<'_>,
    file: &str,
    warnings: &mut Vec<Warning>,
) -> Result<Target, ConfigProblem> {
    let SelectedContext { cluster, user } = *selected;
    let server = &cluster.server_url;
    let url = ServerUrl::parse(&server.value)
        .map_err(|error| ConfigProblem::new(&cluster.field, "server", server.position, error))?;
    let is_plain = url.scheme == Scheme::Http;
    let ServerUrl { scheme, host, port, path, userinfo } = url;
    let has_url_userinfo = userinfo.is_some();
    let mut target = Target::new(Destination::Url { scheme, host, port }, &path);
    target.proxy = parse_cluster_proxy(cluster)?;
    target.impersonation = user.map(build_impersonation).unwrap_or_default();
    target.accepts_gzip = !cluster.disable_compression;
    if is_plain {
        let has_secrets =
            has_url_userinfo || user.is_some_and(has_credentials) || has_trust_settings(cluster);
        warn_of_plain_http(cluster, has_secrets, file, warnings);
        return Ok(target);
    }
    target.credentials = match user {
        Some(user) => load_user_credentials(user, files)?,
        None => Credentials::None,
    };
    if let (Credentials::None, Some((username, password))) = (&target.credentials, userinfo) {
        target.credentials = Credentials::Basic { username, password };
    }
    target.server_trust = load_cluster_trust(cluster, files)?;
    if target.server_trust == ServerTrust::DangerousAcceptAny {
        let message = "the certificate of the server is not verified".to_owned();
        let hint = "set `certificate-authority` to the CA that signs it";
        warnings.push(Warning {
            code: WarningCode::UnverifiedServer,
            field: format!("{}.insecure-skip-tls-verify", cluster.field),
            message,
            file_name: file.to_owned(),
            position: cluster.insecure_skip_tls_verify.position,
            hint: Some(hint.to_owned()),
        });
    }
    let server_name = &cluster.tls_server_name.value;
    target.server_name = (!server_name.is_empty()).then(|| server_name.clone());
    target.client_certificate = match user {
        Some(user) => load_client_certificate(user, files)?,
        None => None,
    };
    Ok(target)
}

fn warn_of_plain_http(
    cluster: &Cluster,
    has_secrets: bool,
    file: &str,
    warnings: &mut Vec<Warning>,
) {
    let mut warn = |code, message: &str, hint: Option<&str>| {
        warnings.push(Warning {
            code,
            field: format!("{}.server", cluster.field),
            message: message.to_owned(),
            file_name: file.to_owned(),
            position: cluster.server_url.position,
            hint: hint.map(str::to_owned),
        });
    };
    let message = "the server is called without TLS: others on the network can read requests and forge \
                   responses";
    warn(WarningCode::PlainHttp, message, Some("write the URL with `https://`"));
    if has_secrets {
        let message = "credentials and CA certificates are not used without TLS";
        warn(WarningCode::UnusedCredentials, message, None);
    }
}

fn has_trust_settings(cluster: &Cluster) -> bool {
    !cluster.certificate_authority.value.is_empty()
        || !cluster.certificate_authority_data.value.is_empty()
        || cluster.insecure_skip_tls_verify.value
}

fn has_credentials(user: &User) -> bool {
    has_client_certificate(user)
        || has_basic_auth(user)
        || !user.token.value.is_empty()
        || !user.token_file.value.is_empty()
        || user.exec_settings.is_some()
}

fn parse_cluster_proxy(cluster: &Cluster) -> Result<Proxy, ConfigProblem> {
    let url = &cluster.proxy_url;
    if url.value.is_empty() {
        return Ok(Proxy::Environment);
    }
    // `find_cluster_problems` has parsed this URL already.
    ProxyUrl::parse(&url.value).map(Proxy::Url).map_err(|error| {
        ConfigProblem::new(&cluster.field, "proxy-url", url.position, error.to_string())
    })
}

fn build_impersonation(user: &User) -> Impersonation {
    Impersonation {
        user: user.impersonate_user.value.clone(),
        uid: user.impersonate_uid.value.clone(),
        groups: user.impersonate_groups.value.clone(),
        extra: user.impersonate_extra.value.clone(),
    }
}

fn load_cluster_trust(
    cluster: &Cluster,
    files: &mut ReferencedFiles<'_>,
) -> Result<ServerTrust, ConfigProblem> {
    let (data, file) = (&cluster.certificate_authority_data, &cluster.certificate_authority);
    let has_roots = !data.value.is_empty() || !file.value.is_empty();
    let insecure = &cluster.insecure_skip_tls_verify;
    let problem = |field: &str, position: SourcePosition, message: &dyn std::fmt::Display| {
        ConfigProblem::new(&cluster.field, field, position, message)
    };
    match (has_roots, insecure.value) {
        (true, true) => {
            let message =
                "specifying a root certificates file with the insecure flag is not allowed";
            Err(problem("insecure-skip-tls-verify", insecure.position, &message))
        }
        (false, true) => Ok(ServerTrust::DangerousAcceptAny),
        (false, false) => Ok(ServerTrust::System),
        (true, false) if !data.value.is_empty() => parse_ca_bundle(&data.value)
            .map_err(|error| problem("certificate-authority-data", data.position, &error)),
        (true, false) => {
            let path = files.resolve_path(&file.value);
            let trust = files.read(&path).map_err(CertificateError::from);
            trust
                .and_then(|pem| parse_ca_bundle(&pem))
                .map_err(|error| problem("certificate-authority", file.position, &error))
        }
    }
}

/// Parses the CA certificates of a PEM text.
pub(crate) fn parse_ca_bundle(pem: &[u8]) -> Result<ServerTrust, CertificateError> {
    CaBundle::from_pem(pem).map(ServerTrust::CaBundle).map_err(CertificateError::CaBundle)
}
