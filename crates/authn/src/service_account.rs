//! Tokens of service accounts: their claims, issuing and verification.

mod claims;
mod issuer_discovery;
mod legacy_token;
mod object_lookup;
mod token_issuer;
mod verify_token;

pub use claims::{BoundObject, Claims, ObjectReference};
pub use issuer_discovery::{
    IssuerDiscovery, IssuerDiscoveryError, JWKS_PATH, OPENID_CONFIGURATION_PATH,
};
pub use object_lookup::{ObjectLookup, ObjectLookupError, ReferencedKind};
pub use token_issuer::TokenIssuer;
pub use verify_token::{ServiceAccountOptions, TokenError};

pub(crate) use verify_token::{
    AudienceCheck, ServiceAccountTokenVerifier, VerifiedClaims, VerifiedTokenUser, credential_id,
};

#[cfg(test)]
pub(crate) use object_lookup::tests::Objects;
