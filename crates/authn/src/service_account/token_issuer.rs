//! Signs the service-account tokens that this server issues.

use super::claims::Claims;
use crate::jwt;
use crate::token_keys::{KeyError, SigningKey};

/// Signs the tokens of this server.
#[derive(Debug)]
pub struct TokenIssuer {
    issuer: String,
    key: SigningKey,
}

impl TokenIssuer {
    /// Takes the issuer's name, usually a URL, and its key.
    pub fn new(issuer: &str, key: SigningKey) -> Self {
        Self { issuer: issuer.to_owned(), key }
    }

    /// The value of the `iss` claim.
    pub fn name(&self) -> &str {
        &self.issuer
    }

    /// Signs a token with these claims.
    ///
    /// # Errors
    /// The system returned no random bytes.
    pub fn issue_token(&self, claims: &Claims) -> Result<String, KeyError> {
        jwt::sign_token(&self.key, &claims.to_payload(&self.issuer))
    }
}
