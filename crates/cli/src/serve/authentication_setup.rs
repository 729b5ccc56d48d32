//! Builds the authenticators and the token issuer from flags and files.

use std::path::Path;

use anyhow::Context;
use authn::{
    AnonymousAccess, FrontProxyHeaders, FrontProxyOptions, Options, ServiceAccountOptions,
    SigningKey, TokenFile, TokenIssuer, VerifyingKey,
};
use component_base::Log;
use https_server::PkiFiles;

use super::serve_flags::AuthenticationFlags;
use crate::server_setup::{load_certificates, read_text_file};

/// Builds the options of the authenticator.
///
/// # Errors
/// A file is missing or invalid; the error names it.
pub(super) fn build_authentication_options(
    flags: &AuthenticationFlags,
    is_anonymous_disabled: bool,
    pki: &PkiFiles,
    log: &Log,
) -> anyhow::Result<Options> {
    let token_file = match &flags.token_auth_file {
        None => None,
        Some(path) => {
            let parsed = TokenFile::parse(&path.display().to_string(), &read_text_file(path)?)?;
            for warning in parsed.token_file_warnings() {
                log.warn("token file warning", &[("why", warning)]);
            }
            Some(parsed)
        }
    };
    let front_proxy = match &flags.requestheader_client_ca_file {
        None => None,
        Some(path) => Some(FrontProxyOptions {
            proxy_authorities: load_certificates(path)?,
            allowed_proxy_names: flags.requestheader_allowed_names.clone(),
            headers: FrontProxyHeaders::new(
                &flags.requestheader_username_headers,
                &flags.requestheader_uid_headers,
                &flags.requestheader_group_headers,
                &flags.requestheader_extra_headers_prefix,
            )?,
        }),
    };
    let service_accounts = ServiceAccountOptions {
        issuers: flags.service_account_issuer.clone(),
        keys: load_verifying_keys(flags, pki)?,
        jwks_uri: flags.service_account_jwks_uri.clone(),
    };
    let anonymous = match (flags.anonymous_auth, is_anonymous_disabled) {
        (true, false) => AnonymousAccess::On,
        (false, _) => AnonymousAccess::Off,
        (true, true) => {
            log.warn(authz_reload::ANONYMOUS_AUTH_DISABLED, &[]);
            AnonymousAccess::Off
        }
    };
    Ok(Options {
        loopback_credential: None,
        front_proxy,
        client_authorities: load_certificates(&pki.client_ca_file)?,
        token_file,
        service_account_options: Some(service_accounts),
        api_audiences: flags.api_audiences.clone(),
        anonymous_access: anonymous,
    })
}

/// Builds the issuer that signs service account tokens.
///
/// # Errors
/// The key cannot be used.
pub(super) fn build_token_issuer(
    flags: &AuthenticationFlags,
    pki: &PkiFiles,
) -> anyhow::Result<TokenIssuer> {
    let issuer = flags.service_account_issuer.first().map(String::as_str).unwrap_or_default();
    Ok(TokenIssuer::new(issuer, load_signing_key(&pki.service_account_key_file)?))
}

fn load_signing_key(path: &Path) -> anyhow::Result<SigningKey> {
    let failure = || format!("`{}` holds no key that can sign tokens", path.display());
    SigningKey::from_pem(&read_text_file(path)?).with_context(failure)
}

fn load_verifying_keys(
    flags: &AuthenticationFlags,
    pki: &PkiFiles,
) -> anyhow::Result<Vec<VerifyingKey>> {
    if flags.service_account_key_file.is_empty() {
        return Ok(vec![load_signing_key(&pki.service_account_key_file)?.verifying_key().clone()]);
    }
    let mut keys = Vec::new();
    for path in &flags.service_account_key_file {
        let failure = || format!("`{}` holds no key that can verify tokens", path.display());
        keys.extend(VerifyingKey::all_from_pem(&read_text_file(path)?).with_context(failure)?);
    }
    Ok(keys)
}
