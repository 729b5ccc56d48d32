//! Authentication: determines the user of a request from its headers, certificates and tokens.
//!
//! An [`Authenticator`] is built from [`Options`]. When a connection begins it
//! [identifies](Authenticator::identify_certificates) the certificates of the peer, and for each
//! request it [returns](Authenticator::authenticate) the user. An [`Impersonator`] then decides
//! whether that user may act as another one. A request with wrong credentials is refused: it never
//! becomes anonymous.
//!
//! Owns: the sources of identity and their order, tokens of service accounts, `TokenReview` and
//! `TokenRequest`, issuer discovery, impersonation and the permissions that it needs.
//! Must not know: sockets, TLS handshakes, clocks, stores, any one authorizer, HTTP status codes.

#![deny(clippy::indexing_slicing)]

mod authenticated_user;
mod authenticator;
mod authenticator_options;
mod bearer_token;
mod certificate_identity;
mod client_certificate;
mod csv;
mod front_proxy;
mod impersonation;
mod jwt;
mod last_token_cache;
mod random_secrets;
mod service_account;
#[cfg(test)]
mod testing;
mod token_file;
mod token_keys;
mod token_request;
mod token_review;
mod token_table;
mod trust_fingerprints;
mod trusted_authorities;
mod well_known_identities;

pub use authenticated_user::{AuthenticatedUser, CredentialError, Method, Unauthenticated};
pub use authenticator::{AuthenticationRequest, Authenticator};
pub use authenticator_options::{
    AnonymousAccess, AnonymousConfigError, AuthenticatorOptionsError, FrontProxyOptions,
    LoopbackCredential, Options,
};
pub use bearer_token::SubprotocolError;
pub use certificate_identity::CertificateIdentity;
pub use client_certificate::{AuthorityError, CertificateError, PRESENTED_CERTIFICATES_MAX};
pub use csv::{CsvError, CsvFault};
pub use front_proxy::{FrontProxyHeaders, HeaderNameError, HeaderValueError};
pub use impersonation::{
    ImpersonatedUser, ImpersonationError, ImpersonationMode, Impersonator, MissingPermission,
    has_impersonation_headers, strip_impersonation_headers,
};
pub use jwt::{SignatureError, TOKEN_BYTES_MAX};
pub use random_secrets::{RandomnessError, random_token_id};
pub use service_account::{
    BoundObject, Claims, IssuerDiscovery, IssuerDiscoveryError, JWKS_PATH,
    OPENID_CONFIGURATION_PATH, ObjectLookup, ObjectLookupError, ObjectReference, ReferencedKind,
    ServiceAccountOptions, TokenError, TokenIssuer,
};
pub use token_file::{TOKEN_FILE_BYTES_MAX, TokenFile, TokenFileError, TokenFileWarning};
pub use token_keys::{KeyError, SignatureAlgorithm, SigningKey, VerifyingKey};
pub use token_request::{
    IssuedToken, TokenRequest, TokenRequestError, TokenRequestSettings, empty_token_status,
    set_token_request_defaults,
};
pub use token_review::{TokenReviewError, user_info_json};
pub use trust_fingerprints::TrustFingerprints;
pub use trusted_authorities::AuthorityKind;
pub use well_known_identities::{
    ANONYMOUS_USER, AUTHENTICATED_GROUP, CREDENTIAL_ID_KEY, LOOPBACK_USER, MASTERS_GROUP,
    NODE_NAME_KEY, NODE_UID_KEY, NODES_GROUP, POD_NAME_KEY, POD_UID_KEY, SERVICE_ACCOUNTS_GROUP,
    UNAUTHENTICATED_GROUP, service_account_groups, service_account_user_name,
    split_service_account_user_name,
};
