//! The credentials and the client certificate of a user.

use std::path::PathBuf;

use crate::kubeconfig_file::User;
use https_client::{ClientCertificate, Credentials, PemLocation, Secret};

use crate::load_error::{CertificateError, ConfigProblem};
use crate::referenced_files::{FileError, ReferencedFiles};
use crate::user_check::{has_basic_auth, has_client_certificate};

/// Loads the credentials that a user sends in request headers.
///
/// A token file takes precedence over a token, which is the fallback until the file can be read.
/// Without a token the file must be readable now.
pub(crate) fn load_user_credentials(
    user: &User,
    files: &mut ReferencedFiles<'_>,
) -> Result<Credentials, ConfigProblem> {
    let (token, file) = (&user.token.value, &user.token_file);
    let has_token = !token.is_empty() || !file.value.is_empty();
    if has_token && has_basic_auth(user) {
        let message = "username/password or bearer token may be set, but not both".to_owned();
        return Err(ConfigProblem::new(&user.field, "username", user.username.position, message));
    }
    let fallback = (!token.is_empty()).then(|| Secret::new(token.as_str()));
    if !file.value.is_empty() {
        let path = files.resolve_path(&file.value);
        if fallback.is_none() {
            let problem = |message: String| {
                ConfigProblem::new(&user.field, "tokenFile", file.position, message)
            };
            let bytes = files.read(&path).map_err(|error| problem(error.to_string()))?;
            if bytes.trim_ascii().is_empty() {
                let shown = go_compat::quote(&path.display().to_string());
                return Err(problem(format!("read empty token from file {shown}")));
            }
        } else {
            files.record_used_path(&path);
        }
        return Ok(Credentials::TokenFile { path, fallback });
    }
    Ok(match fallback {
        Some(token) => Credentials::Token(token),
        None if has_basic_auth(user) => Credentials::Basic {
            username: user.username.value.clone(),
            password: Secret::new(user.password.value.as_str()),
        },
        None => Credentials::None,
    })
}

/// Loads the client certificate of a user; `None` if the user has none.
pub(crate) fn load_client_certificate(
    user: &User,
    files: &mut ReferencedFiles<'_>,
) -> Result<Option<ClientCertificate>, ConfigProblem> {
    if !has_client_certificate(user) {
        return Ok(None);
    }
    let part = |data: &[u8], file: &str, files: &ReferencedFiles<'_>| match data {
        [] => PemSource::File(files.resolve_path(file)),
        data => PemSource::Data(data.to_vec()),
    };
    let certificate =
        part(&user.client_certificate_data.value, &user.client_certificate.value, files);
    let key = part(&user.client_key_data.value, &user.client_key.value, files);
    check_client_certificate(certificate, key, files).map(Some).map_err(|error| {
        ConfigProblem::new(&user.field, "client-certificate", user.position, error)
    })
}

/// The source of a certificate or a key: its content, or a file.
pub(crate) enum PemSource {
    Data(Vec<u8>),
    File(PathBuf),
}

impl PemSource {
    fn read_pem_inline(&self, files: &mut ReferencedFiles<'_>) -> Result<PemLocation, FileError> {
        let bytes = match self {
            Self::Data(data) => data.clone(),
            Self::File(path) => files.read(path)?,
        };
        Ok(PemLocation::Inline(Secret::new(bytes)))
    }

    fn into_pem_location(self) -> PemLocation {
        match self {
            Self::Data(data) => PemLocation::Inline(Secret::new(data)),
            Self::File(path) => PemLocation::File(path),
        }
    }
}

/// Checks that certificate and key can be read and belong together. The result refers to files
/// instead of their content, so that new connections use a renewed certificate.
pub(crate) fn check_client_certificate(
    certificate: PemSource,
    key: PemSource,
    files: &mut ReferencedFiles<'_>,
) -> Result<ClientCertificate, CertificateError> {
    let now = ClientCertificate {
        certificate_location: certificate.read_pem_inline(files)?,
        key: key.read_pem_inline(files)?,
    };
    now.check_certificate_usable()?;
    Ok(ClientCertificate {
        certificate_location: certificate.into_pem_location(),
        key: key.into_pem_location(),
    })
}
