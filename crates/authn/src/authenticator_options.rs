//! The configuration of an authenticator.

use std::fmt;

use authz::User;
use rustls_pki_types::CertificateDer;

use crate::client_certificate::AuthorityError;
use crate::front_proxy::FrontProxyHeaders;
use crate::random_secrets::{self, RandomnessError};
use crate::service_account::ServiceAccountOptions;
use crate::token_file::TokenFile;
use crate::well_known_identities::{AUTHENTICATED_GROUP, LOOPBACK_USER, MASTERS_GROUP};

/// The credential sources that a server accepts. The default accepts none.
#[derive(Debug, Default)]
pub struct Options {
    /// The token with which the server calls itself.
    pub loopback_credential: Option<LoopbackCredential>,
    /// The proxies that may name users in headers.
    pub front_proxy: Option<FrontProxyOptions>,
    /// The authorities that sign client certificates; without any, certificates are ignored.
    pub client_authorities: Vec<CertificateDer<'static>>,
    /// The parsed static token file.
    pub token_file: Option<TokenFile>,
    /// The issuers and keys of service-account tokens.
    pub service_account_options: Option<ServiceAccountOptions>,
    /// The audiences that identify this server. Empty means the issuers of service accounts.
    pub api_audiences: Vec<String>,
    /// How requests without credentials are handled.
    pub anonymous_access: AnonymousAccess,
}

/// The configuration of front proxies.
#[derive(Debug, Clone)]
pub struct FrontProxyOptions {
    /// The authorities that sign the certificates of proxies.
    pub proxy_authorities: Vec<CertificateDer<'static>>,
    /// The common names that a proxy may have; empty means any.
    pub allowed_proxy_names: Vec<String>,
    /// The names of the headers that a proxy sets.
    pub headers: FrontProxyHeaders,
}

/// How requests without credentials are handled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AnonymousAccess {
    /// They are refused with 401.
    #[default]
    Off,
    /// They are authenticated as the anonymous user.
    On,
    /// Only requests for exactly these paths are authenticated as the anonymous user.
    OnlyFor(Vec<String>),
}

/// The configuration lists paths for anonymous requests but disables anonymous requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("anonymous: Invalid value: conditions should not be set when anonymous auth is disabled")]
pub struct AnonymousConfigError;

impl AnonymousAccess {
    /// Takes the values of a configuration file.
    ///
    /// # Errors
    /// There are paths although anonymous requests are disabled.
    pub fn from_anonymous_configuration(
        enabled: bool,
        paths: Vec<String>,
    ) -> Result<Self, AnonymousConfigError> {
        match (enabled, paths.is_empty()) {
            (false, true) => Ok(Self::Off),
            (false, false) => Err(AnonymousConfigError),
            (true, true) => Ok(Self::On),
            (true, false) => Ok(Self::OnlyFor(paths)),
        }
    }

    /// Reports whether a request for this path may be anonymous.
    pub(crate) fn allows_anonymous_path(&self, path: &str) -> bool {
        match self {
            Self::Off => false,
            Self::On => true,
            Self::OnlyFor(paths) => paths.iter().any(|allowed| allowed == path),
        }
    }
}

/// The token with which the server calls itself, generated at each start.
pub struct LoopbackCredential {
    loopback_token: String,
    uid: String,
}

impl LoopbackCredential {
    /// Generates a random token.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate_loopback_credential() -> Result<Self, RandomnessError> {
        Ok(Self {
            loopback_token: random_secrets::random_bearer_token()?,
            uid: random_secrets::random_token_id()?,
        })
    }

    /// The token to send as `Authorization: Bearer`.
    pub fn loopback_token(&self) -> &str {
        &self.loopback_token
    }

    /// The user that the token authenticates.
    pub(crate) fn user(&self) -> User {
        User {
            name: LOOPBACK_USER.to_owned(),
            uid: self.uid.clone(),
            groups: vec![AUTHENTICATED_GROUP.to_owned(), MASTERS_GROUP.to_owned()],
            ..User::default()
        }
    }
}

impl fmt::Debug for LoopbackCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopbackCredential").field("uid", &self.uid).finish_non_exhaustive()
    }
}

/// Why an authenticator cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthenticatorOptionsError {
    /// A client authority cannot be used.
    #[error("client authorities: {0}")]
    ClientAuthority(AuthorityError),
    /// A front proxy authority cannot be used.
    #[error("front proxy authorities: {0}")]
    FrontProxyAuthority(AuthorityError),
    /// Client authorities were configured at start, and the new file holds none.
    #[error("client authorities: no authority is configured")]
    NoClientAuthority,
    /// Front proxies are configured without an authority.
    #[error("front proxy: no authority is configured")]
    NoFrontProxyAuthority,
    /// The key of the token table cannot be generated.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_conditions_need_anonymous_requests() {
        let paths = || vec!["/healthz".to_owned()];
        assert_eq!(
            AnonymousAccess::from_anonymous_configuration(false, vec![]),
            Ok(AnonymousAccess::Off)
        );
        assert_eq!(
            AnonymousAccess::from_anonymous_configuration(true, vec![]),
            Ok(AnonymousAccess::On)
        );
        assert_eq!(
            AnonymousAccess::from_anonymous_configuration(true, paths()),
            Ok(AnonymousAccess::OnlyFor(paths()))
        );
        assert_eq!(
            AnonymousAccess::from_anonymous_configuration(false, paths()),
            Err(AnonymousConfigError)
        );
    }

    #[test]
    fn the_loopback_token_is_not_shown() {
        let credential = LoopbackCredential::generate_loopback_credential().unwrap();
        assert!(!format!("{credential:?}").contains(credential.loopback_token()));
    }
}
