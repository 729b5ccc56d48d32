//! The last token that a connection presented and that the server knows.

use std::fmt;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use crate::authenticated_user::AuthenticatedUser;
use crate::service_account::VerifiedClaims;

/// Remembers one token, so that a token is looked up or its signature verified once for a connection and not for each
/// request.
///
/// INVARIANT: a memory belongs to one connection. Nothing of it is shared, so no user's traffic changes how the token
/// of another user is verified.
#[derive(Default)]
pub(crate) struct KnownTokenMemory(Mutex<Option<(Box<str>, KnownToken)>>);

/// The facts about a token that can not change while the server runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum KnownToken {
    /// The user of a token of the token file. The file is read once.
    FileUser(AuthenticatedUser),
    /// The claims of a service-account token whose signature is valid; the keys of an authenticator never change. Times,
    /// audiences and the objects that the token refers to are checked for each request.
    Claims(Arc<VerifiedClaims>),
}

impl KnownTokenMemory {
    /// Returns the remembered result for the token, if it is the token that was remembered last. The time of the
    /// comparison does not depend on where two tokens of the same length differ.
    pub(crate) fn recall(&self, token: &str) -> Option<KnownToken> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, known) =
            last.as_ref().filter(|(last, _)| are_equal(last.as_bytes(), token.as_bytes()))?;
        Some(known.clone())
    }

    /// Remembers a token instead of the one before.
    pub(crate) fn remember(&self, token: &str, known: KnownToken) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((token.into(), known));
    }
}

/// Compares secrets of the same length in constant time.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let difference = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    black_box(difference) == 0
}

impl fmt::Debug for KnownTokenMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownTokenMemory").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use api_object::Tree;

    use super::*;

    #[test]
    fn only_the_last_token_is_recalled() {
        let memory = KnownTokenMemory::default();
        assert_eq!(memory.recall(""), None);
        let claims = KnownToken::Claims(Arc::new(Tree::new().into()));
        memory.remember("one", claims.clone());
        assert_eq!(memory.recall("one"), Some(claims.clone()));
        for other in ["", "on", "onf", "one ", "two"] {
            assert_eq!(memory.recall(other), None, "{other}");
        }
        memory.remember("two", claims.clone());
        assert_eq!((memory.recall("one"), memory.recall("two")), (None, Some(claims)));
    }

    #[test]
    fn nothing_that_is_shown_holds_a_token() {
        let memory = KnownTokenMemory::default();
        memory.remember("swordfish", KnownToken::Claims(Arc::new(Tree::new().into())));
        assert!(!format!("{memory:?}").contains("swordfish"));
    }
}
