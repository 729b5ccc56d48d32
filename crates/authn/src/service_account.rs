//! Tokens of service accounts: what they claim, and whether it is still true.

mod claims;
mod issuer;
mod legacy;
mod lookup;
mod verify;

pub use claims::{Binding, Claims, ObjectReference};
pub use issuer::TokenIssuer;
pub use lookup::{Lookup, LookupError, ReferencedKind};
pub use verify::{ServiceAccountOptions, TokenError};

pub(crate) use verify::{Audiences, ServiceAccounts, credential_id};

#[cfg(test)]
pub(crate) use lookup::tests::Objects;
