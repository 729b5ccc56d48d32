//! What an authenticator is made of.

use std::fmt;

use authz::User;
use rustls_pki_types::CertificateDer;

use crate::certificate::AuthorityError;
use crate::front_proxy::FrontProxyHeaders;
use crate::identity::{AUTHENTICATED_GROUP, LOOPBACK_USER, MASTERS_GROUP};
use crate::random::{self, RandomnessError};
use crate::service_account::ServiceAccountOptions;
use crate::token_file::TokenFile;

/// The sources of identity that a server accepts. By default it accepts none.
#[derive(Debug, Default)]
pub struct Options {
    /// What the server calls itself with.
    pub loopback: Option<LoopbackCredential>,
    /// Who may name users in headers.
    pub front_proxy: Option<FrontProxyOptions>,
    /// The authorities of client certificates; without any, certificates are not looked at.
    pub client_authorities: Vec<CertificateDer<'static>>,
    /// The static token file.
    pub token_file: Option<TokenFile>,
    /// Whose tokens of service accounts are accepted.
    pub service_accounts: Option<ServiceAccountOptions>,
    /// What the server calls itself in tokens. Empty means the issuers of service accounts.
    pub api_audiences: Vec<String>,
    /// What becomes of requests without credentials.
    pub anonymous: Anonymous,
}

/// A proxy that names users in headers.
#[derive(Debug, Clone)]
pub struct FrontProxyOptions {
    /// The authorities of proxies.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The common names that a proxy may have; empty means any.
    pub allowed_names: Vec<String>,
    /// The headers.
    pub headers: FrontProxyHeaders,
}

/// Whether requests without credentials have a user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Anonymous {
    /// They have none, and are refused.
    #[default]
    Off,
    /// They are those of the anonymous user.
    On,
    /// So are those for exactly these paths; others are refused.
    OnlyFor(Vec<String>),
}

/// Paths for anonymous requests, where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("anonymous: Invalid value: conditions should not be set when anonymous auth is disabled")]
pub struct AnonymousError;

impl Anonymous {
    /// From the members of a configuration file.
    ///
    /// # Errors
    /// There are conditions, but nothing to which they could apply.
    pub fn from_configuration(enabled: bool, paths: Vec<String>) -> Result<Self, AnonymousError> {
        match (enabled, paths.is_empty()) {
            (false, true) => Ok(Self::Off),
            (false, false) => Err(AnonymousError),
            (true, true) => Ok(Self::On),
            (true, false) => Ok(Self::OnlyFor(paths)),
        }
    }

    /// Reports whether a request for this path may be anonymous.
    pub(crate) fn allows(&self, path: &str) -> bool {
        match self {
            Self::Off => false,
            Self::On => true,
            Self::OnlyFor(paths) => paths.iter().any(|allowed| allowed == path),
        }
    }
}

/// The token with which the server calls itself, made anew at each start.
pub struct LoopbackCredential {
    token: String,
    uid: String,
}

impl LoopbackCredential {
    /// A new one.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate() -> Result<Self, RandomnessError> {
        Ok(Self { token: random::secret()?, uid: random::random_token_id()? })
    }

    /// The bearer token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Whom it stands for.
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

/// Why no authenticator can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// An authority of clients can not be used.
    #[error("client authorities: {0}")]
    ClientAuthority(AuthorityError),
    /// An authority of proxies can not be used.
    #[error("front proxy authorities: {0}")]
    FrontProxyAuthority(AuthorityError),
    /// Authorities of clients were given, and there are none any more.
    #[error("client authorities: no authority is configured")]
    NoClientAuthority,
    /// Proxies are trusted, but nobody vouches for them.
    #[error("front proxy: no authority is configured")]
    NoFrontProxyAuthority,
    /// There is nothing to protect tokens with.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_conditions_need_anonymous_requests() {
        let paths = || vec!["/healthz".to_owned()];
        assert_eq!(Anonymous::from_configuration(false, vec![]), Ok(Anonymous::Off));
        assert_eq!(Anonymous::from_configuration(true, vec![]), Ok(Anonymous::On));
        assert_eq!(Anonymous::from_configuration(true, paths()), Ok(Anonymous::OnlyFor(paths())));
        assert_eq!(Anonymous::from_configuration(false, paths()), Err(AnonymousError));
    }

    #[test]
    fn the_loopback_token_is_not_shown() {
        let credential = LoopbackCredential::generate().unwrap();
        assert!(!format!("{credential:?}").contains(credential.token()));
    }
}
