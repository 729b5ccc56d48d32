//! What a user shows to a service.

use std::path::PathBuf;

use crate::kubeconfig_file::User;
use https_client::{Credentials, Identity, Material, Secret};

use crate::error::Problem;
use crate::files::Files;
use crate::user::{has_certificate, has_login};

/// A token file wins over a token, which stands in until the file can be read. Without a token the
/// file must be there now.
pub(crate) fn credentials(user: &User, files: &mut Files<'_>) -> Result<Credentials, Problem> {
    let (token, file) = (&user.token.value, &user.token_file);
    let has_token = !token.is_empty() || !file.value.is_empty();
    if has_token && has_login(user) {
        let message = "username/password or bearer token may be set, but not both".to_owned();
        return Err(Problem::new(&user.field, "username", user.username.place, message));
    }
    let fallback = (!token.is_empty()).then(|| Secret::new(token.as_str()));
    if !file.value.is_empty() {
        let path = files.resolve(&file.value);
        if fallback.is_none() {
            let problem = |message| Problem::new(&user.field, "tokenFile", file.place, message);
            let bytes = files.read(&path).map_err(problem)?;
            if bytes.trim_ascii().is_empty() {
                let shown = go_compat::quote(&path.display().to_string());
                return Err(problem(format!("read empty token from file {shown}")));
            }
        } else {
            files.refer_to(&path);
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
pub(crate) fn identity(user: &User, files: &mut Files<'_>) -> Result<Option<Identity>, Problem> {
    if !has_certificate(user) {
        return Ok(None);
    }
    let part = |data: &[u8], file: &str, files: &Files<'_>| match data {
        [] => Part::File(files.resolve(file)),
        data => Part::Data(data.to_vec()),
    };
    let certificate =
        part(&user.client_certificate_data.value, &user.client_certificate.value, files);
    let key = part(&user.client_key_data.value, &user.client_key.value, files);
    check_identity(certificate, key, files)
        .map(Some)
        .map_err(|message| Problem::new(&user.field, "client-certificate", user.place, message))
}

/// A certificate or a key: here, or in a file.
pub(crate) enum Part {
    Data(Vec<u8>),
    File(PathBuf),
}

impl Part {
    fn read(&self, files: &mut Files<'_>) -> Result<Material, String> {
        let bytes = match self {
            Self::Data(data) => data.clone(),
            Self::File(path) => files.read(path)?,
        };
        Ok(Material::Inline(Secret::new(bytes)))
    }

    fn into_material(self) -> Material {
        match self {
            Self::Data(data) => Material::Inline(Secret::new(data)),
            Self::File(path) => Material::File(path),
        }
    }
}

/// A client certificate whose parts can be read and belong together. Files stay files, so that a
/// renewed certificate is used by new connections.
pub(crate) fn check_identity(
    certificate: Part,
    key: Part,
    files: &mut Files<'_>,
) -> Result<Identity, String> {
    let now = Identity { certificate: certificate.read(files)?, key: key.read(files)? };
    now.check().map_err(|error| error.to_string())?;
    Ok(Identity { certificate: certificate.into_material(), key: key.into_material() })
}
