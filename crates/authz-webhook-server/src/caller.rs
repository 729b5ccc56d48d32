//! The caller of a request: the user that its client certificate names.

use std::sync::Arc;

use api_object::Status;
use authn::{Authenticator, CertificateError};
use authz::User;
use https_server::Connection;
use jiff::Timestamp;

/// Accepts client certificates, and nothing else: no token, no header, no anonymous caller.
pub(crate) struct CallerAuthenticator {
    pub(crate) authenticator: Authenticator,
    /// The common names that a caller may have; empty means any.
    pub(crate) allowed_names: Vec<String>,
}

/// The reason why a caller is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallerError {
    /// The connection has no certificate, or the certificate names no user.
    #[error("the client certificate names no user")]
    NoUser,
    /// The certificate is not valid.
    #[error("{0}")]
    Certificate(CertificateError),
    /// The name of the certificate is not in the list.
    #[error("the common name `{0}` is not in the list of allowed client names")]
    NameNotAllowed(String),
    /// The user has too many connections with requests in progress.
    #[error("too many connections with requests in progress")]
    TooManyConnections,
}

impl CallerAuthenticator {
    /// Returns the caller of a request of this connection, and counts the connection for it. The certificate is verified once
    /// for each connection, and again after the authorities have changed.
    ///
    /// # Errors
    /// The certificate proves no allowed caller.
    pub(crate) fn authenticate(
        &self,
        connection: &Connection,
        now: Timestamp,
    ) -> Result<Arc<User>, CallerError> {
        let identity = connection.get_or_compute_identity(
            |known| self.authenticator.uses_current_authorities(known),
            |presented| self.authenticator.identify_certificates(presented, now),
        );
        let user = identity.client_user(now).map_err(CallerError::Certificate)?;
        let user = user.ok_or(CallerError::NoUser)?;
        if !self.allowed_names.is_empty() && !self.allowed_names.contains(&user.name) {
            return Err(CallerError::NameNotAllowed(user.name.clone()));
        }
        connection
            .record_authenticated_user(authz::user_limit_key(&user.name), false)
            .map_err(|_| CallerError::TooManyConnections)?;
        Ok(Arc::clone(user))
    }
}

impl CallerError {
    /// The response to the caller. It does not tell why a certificate is not accepted; the log does.
    pub(crate) fn to_status(&self) -> Status {
        match self {
            Self::NoUser | Self::Certificate(_) => Status::unauthorized(),
            Self::NameNotAllowed(_) => {
                Status::forbidden_path("the client certificate is not one of the allowed callers")
            }
            Self::TooManyConnections => Status::too_many_requests(&self.to_string(), 1),
        }
    }
}
