//! The result of authentication: a user, or the reasons why each credential was refused.

use std::sync::Arc;

use authz::User;

use crate::bearer_token::SubprotocolError;
use crate::client_certificate::CertificateError;
use crate::front_proxy::HeaderValueError;
use crate::service_account::TokenError;
use crate::well_known_identities::{ANONYMOUS_USER, UNAUTHENTICATED_GROUP};

/// A user, and the kind of credential that proved it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthenticatedUser {
    /// The user, with the group `system:authenticated` where it belongs.
    pub user: Arc<User>,
    /// The kind of credential.
    pub method: Method,
    /// The audiences for which the credential is valid; empty if the credential names none.
    pub audiences: Arc<[String]>,
    /// Texts for `Warning` headers of the response.
    pub response_warnings: Vec<&'static str>,
}

/// The kind of credential that proved a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// The token with which the server calls itself.
    Loopback,
    /// Headers that a trusted proxy set.
    FrontProxy,
    /// A client certificate that a trusted authority signed.
    ClientCertificate,
    /// A token of the static token file.
    TokenFile,
    /// A token of a service account.
    ServiceAccount,
    /// None: the request carries no credential.
    Anonymous,
}

/// The request has no authenticated user. The response is 401, whatever the errors are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unauthenticated {
    /// Why each credential was refused; empty if there was none. For logs, not for the client. It
    /// contains no credential.
    pub credential_errors: Vec<CredentialError>,
    /// Texts for `Warning` headers of the response.
    pub response_warnings: Vec<&'static str>,
}

/// Why a credential was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// No source of tokens knows the token.
    #[error("invalid bearer token")]
    UnknownToken,
    /// The client certificate is not trusted or names no valid user.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A header that a proxy set is malformed.
    #[error(transparent)]
    FrontProxy(#[from] HeaderValueError),
    /// The WebSocket subprotocols carry a malformed token.
    #[error(transparent)]
    Protocol(#[from] SubprotocolError),
    /// The token of a service account is not valid.
    #[error(transparent)]
    ServiceAccount(#[from] TokenError),
}

/// The result of one credential source: a user, no credential, or the errors of a wrong credential.
pub(crate) type AuthenticationResult = Result<Option<AuthenticatedUser>, Vec<CredentialError>>;

impl AuthenticatedUser {
    /// A user whose credential names no audience.
    pub(crate) fn new(user: impl Into<Arc<User>>, method: Method) -> Self {
        Self { user: user.into(), method, audiences: Arc::default(), response_warnings: Vec::new() }
    }

    /// The user of a request without credentials.
    pub(crate) fn anonymous_user() -> Self {
        let user = User {
            name: ANONYMOUS_USER.to_owned(),
            groups: vec![UNAUTHENTICATED_GROUP.to_owned()],
            ..User::default()
        };
        Self::new(user, Method::Anonymous)
    }

    /// Reports whether the user is anonymous or unauthenticated. The server closes the connections
    /// of such clients after one request where keeping them is costly.
    pub fn is_anonymous(&self) -> bool {
        self.user.name == ANONYMOUS_USER || self.user.is_in_group(UNAUTHENTICATED_GROUP)
    }
}

impl Unauthenticated {
    /// Returns the user of a source, or adds the errors of the source to this value.
    pub(crate) fn take_user_or_errors(
        &mut self,
        found_user: AuthenticationResult,
    ) -> Option<AuthenticatedUser> {
        match found_user {
            Ok(authenticated) => authenticated,
            Err(errors) => {
                self.credential_errors.extend(errors);
                None
            }
        }
    }
}

/// The aggregate of the errors; empty if there was no credential.
impl std::fmt::Display for Unauthenticated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let messages: Vec<String> =
            self.credential_errors.iter().map(ToString::to_string).collect();
        f.write_str(&field_errors::aggregate_messages(&messages))
    }
}

impl std::error::Error for Unauthenticated {}
