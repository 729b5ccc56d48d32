//! From a cluster and a user to a service that can be called.

use crate::kubeconfig_file::{Cluster, User};
use document::{Place as FilePlace, Warning, WarningCode};
use https_client::{
    CaBundle, Credentials, Impersonate, Place, Proxy, ProxyUrl, Scheme, Target, Trust,
};

use crate::access::{credentials, identity};
use crate::error::Problem;
use crate::files::Files;
use crate::select::Selected;
use crate::server_url::ServerUrl;
use crate::user::{has_certificate, has_login};

/// Builds the target.
///
/// A service that is not called over TLS gets neither credentials nor authorities, as in
/// Kubernetes; that is accepted with a warning.
///
/// # Errors
///
/// The first problem, in Kubernetes' order and words.
pub(crate) fn build(
    selected: &Selected<'_>,
    files: &mut Files<'_>,
    file: &str,
    warnings: &mut Vec<Warning>,
) -> Result<Target, Problem> {
    let Selected { cluster, user } = *selected;
    let server = &cluster.server;
    let url = ServerUrl::parse(&server.value)
        .map_err(|message| Problem::new(&cluster.field, "server", server.place, message))?;
    let is_plain = url.scheme == Scheme::Http;
    let ServerUrl { scheme, host, port, path, login } = url;
    let has_url_login = login.is_some();
    let mut target = Target::new(Place::Url { scheme, host, port }, &path);
    target.proxy = proxy(cluster)?;
    target.impersonate = user.map(impersonate).unwrap_or_default();
    target.can_compress = !cluster.disable_compression;
    if is_plain {
        let has_secrets = has_url_login || user.is_some_and(has_credentials) || has_trust(cluster);
        warn_of_plain_http(cluster, has_secrets, file, warnings);
        return Ok(target);
    }
    target.credentials = match user {
        Some(user) => credentials(user, files)?,
        None => Credentials::None,
    };
    if let (Credentials::None, Some((username, password))) = (&target.credentials, login) {
        target.credentials = Credentials::Basic { username, password };
    }
    target.trust = trust(cluster, files)?;
    if target.trust == Trust::DangerousAcceptAny {
        let message = "the certificate of the server is not verified".to_owned();
        let hint = "give the authority that signs it as `certificate-authority`";
        warnings.push(Warning {
            code: WarningCode::UnverifiedServer,
            field: format!("{}.insecure-skip-tls-verify", cluster.field),
            message,
            file: file.to_owned(),
            place: cluster.insecure_skip_tls_verify.place,
            hint: Some(hint.to_owned()),
        });
    }
    let server_name = &cluster.tls_server_name.value;
    target.server_name = (!server_name.is_empty()).then(|| server_name.clone());
    target.identity = match user {
        Some(user) => identity(user, files)?,
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
            file: file.to_owned(),
            place: cluster.server.place,
            hint: hint.map(str::to_owned),
        });
    };
    let message = "the server is called without TLS: anybody on the way can read and answer";
    warn(WarningCode::PlainHttp, message, Some("write the URL with `https://`"));
    if has_secrets {
        let message = "credentials and authorities are not used without TLS";
        warn(WarningCode::UnusedCredentials, message, None);
    }
}

fn has_trust(cluster: &Cluster) -> bool {
    !cluster.certificate_authority.value.is_empty()
        || !cluster.certificate_authority_data.value.is_empty()
        || cluster.insecure_skip_tls_verify.value
}

fn has_credentials(user: &User) -> bool {
    has_certificate(user)
        || has_login(user)
        || !user.token.value.is_empty()
        || !user.token_file.value.is_empty()
}

fn proxy(cluster: &Cluster) -> Result<Proxy, Problem> {
    let url = &cluster.proxy_url;
    if url.value.is_empty() {
        return Ok(Proxy::Environment);
    }
    // The selection saw that it can be read.
    ProxyUrl::parse(&url.value)
        .map(Proxy::Url)
        .map_err(|error| Problem::new(&cluster.field, "proxy-url", url.place, error.to_string()))
}

fn impersonate(user: &User) -> Impersonate {
    Impersonate {
        user: user.act_as.value.clone(),
        uid: user.act_as_uid.value.clone(),
        groups: user.act_as_groups.value.clone(),
        extra: user.act_as_user_extra.value.clone(),
    }
}

fn trust(cluster: &Cluster, files: &mut Files<'_>) -> Result<Trust, Problem> {
    let (data, file) = (&cluster.certificate_authority_data, &cluster.certificate_authority);
    let has_roots = !data.value.is_empty() || !file.value.is_empty();
    let insecure = &cluster.insecure_skip_tls_verify;
    let problem = |field: &str, place: FilePlace, message: String| {
        Problem::new(&cluster.field, field, place, message)
    };
    match (has_roots, insecure.value) {
        (true, true) => {
            let message =
                "specifying a root certificates file with the insecure flag is not allowed";
            Err(problem("insecure-skip-tls-verify", insecure.place, message.to_owned()))
        }
        (false, true) => Ok(Trust::DangerousAcceptAny),
        (false, false) => Ok(Trust::System),
        (true, false) if !data.value.is_empty() => roots(&data.value)
            .map_err(|message| problem("certificate-authority-data", data.place, message)),
        (true, false) => {
            let path = files.resolve(&file.value);
            let pem = files.read(&path);
            pem.and_then(|pem| roots(&pem))
                .map_err(|message| problem("certificate-authority", file.place, message))
        }
    }
}

/// The authorities of a PEM text, or why there are none.
pub(crate) fn roots(pem: &[u8]) -> Result<Trust, String> {
    CaBundle::from_pem(pem)
        .map(Trust::CaBundle)
        .map_err(|error| format!("unable to load root certificates: {error}"))
}
