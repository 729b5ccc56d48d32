//! Making tokens.

use super::claims::Claims;
use crate::jwt;
use crate::key::{KeyError, SigningKey};

/// Who makes the tokens of this server.
#[derive(Debug)]
pub struct TokenIssuer {
    issuer: String,
    key: SigningKey,
}

impl TokenIssuer {
    /// An issuer of this name, usually a URL.
    pub fn new(issuer: &str, key: SigningKey) -> Self {
        Self { issuer: issuer.to_owned(), key }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.issuer
    }

    /// Signs a token.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn issue(&self, claims: &Claims) -> Result<String, KeyError> {
        jwt::sign(&self.key, &claims.to_tree(&self.issuer))
    }
}
