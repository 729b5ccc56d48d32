//! The validated name of an authorizer.

use std::fmt;
use std::sync::Arc;

/// The name of an authorizer: a DNS-1123 subdomain, because metrics and reasons contain it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuthorizerName(Arc<str>);

/// A text is not a valid name for an authorizer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("authorizer name is invalid: {}", name_faults.join(", "))]
pub struct AuthorizerNameError {
    name_faults: Vec<String>,
}

impl AuthorizerName {
    /// Checks and makes a name.
    ///
    /// # Errors
    /// Fails if the text is not a DNS-1123 subdomain.
    pub fn new(name: &str) -> Result<Self, AuthorizerNameError> {
        let reasons = field_errors::dns1123_subdomain_faults(name);
        if reasons.is_empty() {
            Ok(Self(name.into()))
        } else {
            Err(AuthorizerNameError { name_faults: reasons })
        }
    }

    /// Borrows the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, for values that share it.
    pub fn as_arc_str(&self) -> &Arc<str> {
        &self.0
    }
}

impl fmt::Display for AuthorizerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_subdomains() {
        for name in ["a", "my-hook", "guard.example.com", &"a".repeat(253)] {
            assert_eq!(AuthorizerName::new(name).map(|name| name.to_string()), Ok(name.into()));
        }
        for name in ["", "A", "a_b", "-a", "a.", "ä", &"a".repeat(254)] {
            let error = AuthorizerName::new(name).unwrap_err().to_string();
            assert!(error.starts_with("authorizer name is invalid: "), "{error}");
        }
    }
}
