//! Who is asking: from headers, certificates and tokens to a user.
//!
//! An [`Authenticator`] is made of [`Options`]. When a connection begins it
//! [reads](Authenticator::identify_certificates) what the peer presents, and for each request it
//! [tells](Authenticator::authenticate) the user. An [`Impersonator`] then decides whether that user
//! may act as another. Credentials that are present and wrong are refused: they never make a request
//! anonymous.
//!
//! Owns: the sources of identity and their order, tokens of service accounts, `TokenReview` and
//! `TokenRequest`, impersonation and the permissions that it needs.
//! Must not know: sockets, TLS handshakes, clocks, stores, any one authorizer, the wording of refusals.

#![deny(clippy::indexing_slicing)]

mod authenticator;
mod bearer;
mod certificate;
mod csv;
mod der;
mod front_proxy;
mod identity;
mod impersonation;
mod jwt;
mod key;
mod options;
mod random;
#[cfg(test)]
mod ready;
mod service_account;
mod token_file;
mod token_request;
mod token_review;
mod token_table;
mod trust;

pub use authenticator::{
    Authenticated, Authenticator, CertificateIdentity, CredentialError, Method, Request,
    Unauthenticated,
};
pub use bearer::ProtocolError;
pub use certificate::{AuthorityError, CertificateError, PRESENTED_CERTIFICATES_MAX};
pub use csv::{CsvError, CsvFault};
pub use front_proxy::{FrontProxyHeaders, HeaderNameError, HeaderValueError};
pub use identity::{
    ANONYMOUS_USER, AUTHENTICATED_GROUP, CREDENTIAL_ID_KEY, LOOPBACK_USER, MASTERS_GROUP,
    NODE_NAME_KEY, NODE_UID_KEY, NODES_GROUP, POD_NAME_KEY, POD_UID_KEY, SERVICE_ACCOUNTS_GROUP,
    UNAUTHENTICATED_GROUP, service_account_groups, service_account_user_name,
    split_service_account,
};
pub use impersonation::{
    Forbid, Impersonated, ImpersonationMode, Impersonator, strip_impersonation,
};
pub use jwt::{SignatureError, TOKEN_BYTES_MAX};
pub use key::{Algorithm, KeyError, SigningKey, VerifyingKey};
pub use options::{
    Anonymous, AnonymousError, FrontProxyOptions, LoopbackCredential, Options, OptionsError,
};
pub use random::{RandomnessError, random_token_id};
pub use service_account::{
    Binding, Claims, Lookup, LookupError, ObjectReference, ReferencedKind, ServiceAccountOptions,
    TokenError, TokenIssuer,
};
pub use token_file::{TOKEN_FILE_BYTES_MAX, TokenFile, TokenFileError, TokenFileWarning};
pub use token_request::{IssuedToken, TokenRequest, TokenRequestSettings, default_token_request};
pub use token_review::user_info;
pub use trust::AuthorityKind;
