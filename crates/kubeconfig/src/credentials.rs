//! The credentials and the client certificate of a user.

use std::path::PathBuf;

use crate::kubeconfig_file::User;
use https_client::{ClientCertificate, Credentials, PemLocation, Secret};

use crate::error::{CertificateError, ConfigProblem};
use crate::referenced_files::{FileError, ReferencedFiles};
use crate::user_check::{has_certificate, has_login};

/// A token file takes precedence over a token, which is the fallback until the file can be read.
/// Without a token the file must be readable now.
pub(crate) fn user_credentials(
    user: &User,
    files: &mut ReferencedFiles<'_>,
) -> Result<Credentials, ConfigProblem> {
    let (token, file) = (&user.token.value, &user.token_file);
    let has_token = !token.is_empty() || !file.value.is_empty();
    if has_token && has_login(user) {
        let message = "username/password or bearer token may be set, but not both".to_owned();
        return Err(ConfigProblem::new(&user.field, "username", user.username.position, message));
    }
    let fallback = (!token.is_empty()).then(|| Secret::new(token.as_str()));
    if !file.value.is_empty() {
        let path = files.resolve(&file.value);
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
            files.note_use_of(&path);
        }
        return Ok(Credentials::TokenFile { path, fallback });
    }
    Ok(match fallback {
        Some(token) => Credentials::Token(token),
        None if has_login(user) => Credentials::Basic {
            username: user.username.value.clone(),
            password: Secret::new(user.password.value.as_str()),
        },
        None => Credentials::None,
    })
}

/// The client certificate, if there is one.
pub(crate) fn client_identity(
    user: &User,
    files: &mut ReferencedFiles<'_>,
) -> Result<Option<ClientCertificate>, ConfigProblem> {
    if !has_certificate(user) {
        return Ok(None);
    }
    let part = |data: &[u8], file: &str, files: &ReferencedFiles<'_>| match data {
        [] => PemSource::File(files.resolve(file)),
        data => PemSource::Data(data.to_vec()),
    };
    let certificate =
        part(&user.client_certificate_data.value, &user.client_certificate.value, files);
    let key = part(&user.client_key_data.value, &user.client_key.value, files);
    check_client_identity(certificate, key, files).map(Some).map_err(|error| {
        ConfigProblem::new(&user.field, "client-certificate", user.position, error)
    })
}

/// A certificate or a key: here, or in a file.
pub(crate) enum PemSource {
    Data(Vec<u8>),
    File(PathBuf),
}

impl PemSource {
    fn read(&self, files: &mut ReferencedFiles<'_>) -> Result<PemLocation, FileError> {
        let bytes = match self {
            Self::Data(data) => data.clone(),
            Self::File(path) => files.read(path)?,
        };
        Ok(PemLocation::Inline(Secret::new(bytes)))
    }

    fn into_material(self) -> PemLocation {
        match self {
            Self::Data(data) => PemLocation::Inline(Secret::new(data)),
            Self::File(path) => PemLocation::File(path),
        }
    }
}

/// A client certificate whose parts can be read and belong together. Files stay files, so that a
/// renewed certificate is used by new connections.
pub(crate) fn check_client_identity(
    certificate: PemSource,
    key: PemSource,
    files: &mut ReferencedFiles<'_>,
) -> Result<ClientCertificate, CertificateError> {
    let now = ClientCertificate { certificate: certificate.read(files)?, key: key.read(files)? };
    now.check()?;
    Ok(ClientCertificate { certificate: certificate.into_material(), key: key.into_material() })
}
