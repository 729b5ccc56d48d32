//! Users by opaque bearer token.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use authz::User;
use ring::hmac;

use crate::random_secrets::{self, RandomnessError};

/// Users by token.
///
/// The table stores no tokens, only HMAC tags of them under a random key. Neither the time of a
/// lookup nor a dump of the table reveals a token: without the key an attacker cannot choose a
/// token with a given tag, and tags that agree in part say nothing about their tokens.
pub(crate) struct TokenTable {
    key: hmac::Key,
    users: HashMap<[u8; TAG_BYTES], Arc<User>>,
}

const TAG_BYTES: usize = 32;

impl TokenTable {
    /// An empty table with a new random key.
    pub(crate) fn new() -> Result<Self, RandomnessError> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &random_secrets::random_bytes::<32>()?);
        Ok(Self { key, users: HashMap::new() })
    }

    /// Adds a token and returns the user that it authenticated before.
    pub(crate) fn insert(&mut self, token: &str, user: User) -> Option<Arc<User>> {
        self.users.insert(self.compute_hmac_tag(token), Arc::new(user))
    }

    /// The user that the token authenticates.
    pub(crate) fn user(&self, token: &str) -> Option<&Arc<User>> {
        if self.users.is_empty() {
            return None;
        }
        self.users.get(&self.compute_hmac_tag(token))
    }

    /// The number of tokens in the table.
    pub(crate) fn len(&self) -> usize {
        self.users.len()
    }

    fn compute_hmac_tag(&self, token: &str) -> [u8; TAG_BYTES] {
        let tag = hmac::sign(&self.key, token.as_bytes());
        let mut bytes = [0; TAG_BYTES];
        for (to, from) in bytes.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        bytes
    }
}

impl fmt::Debug for TokenTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenTable").field("n_tokens", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_finds_its_user_and_nothing_near_it_does() {
        let user = |name: &str| User { name: name.to_owned(), ..User::default() };
        let mut table = TokenTable::new().unwrap();
        assert_eq!(table.insert("secret", user("ana")), None);
        assert_eq!(table.insert("other", user("bob")), None);
        let named = |name: &str| Some(Arc::new(user(name)));
        assert_eq!(table.user("secret").cloned(), named("ana"));
        for near in ["", "secre", "secret ", "Secret", "secrets"] {
            assert_eq!(table.user(near), None, "{near}");
        }
        assert_eq!(table.insert("secret", user("eve")), named("ana"));
        assert_eq!((table.user("secret").cloned(), table.len()), (named("eve"), 2));
    }

    #[test]
    fn debug_output_holds_no_token() {
        let mut table = TokenTable::new().unwrap();
        table.insert("swordfish", User::default());
        assert_eq!(format!("{table:?}"), "TokenTable { n_tokens: 1, .. }");
    }
}
