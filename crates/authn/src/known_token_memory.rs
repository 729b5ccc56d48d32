//! The last service-account token that a connection presented and whose signature was verified.

use std::fmt;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use api_object::Tree;

/// Remembers one token with its claims, so that the signature of a token is verified once for a connection and not
/// for each request.
///
/// Only the signature is remembered, which can not change: the keys of an authenticator never do. Times, audiences
/// and the objects that the token refers to are checked for each request.
///
/// INVARIANT: a memory belongs to one connection. Nothing of it is shared, so no user's traffic changes how the token
/// of another user is verified.
#[derive(Default)]
pub(crate) struct VerifiedTokenMemory(Mutex<Option<VerifiedToken>>);

struct VerifiedToken {
    token: Box<str>,
    claims: Arc<Tree>,
}

impl VerifiedTokenMemory {
    /// The claims of the token, if it is the one that was verified last. The time of the comparison does not depend
    /// on where two tokens of the same length differ.
    pub(crate) fn recall(&self, token: &str) -> Option<Arc<Tree>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last =
            last.as_ref().filter(|last| are_equal(last.token.as_bytes(), token.as_bytes()))?;
        Some(Arc::clone(&last.claims))
    }

    /// Remembers a token whose signature was verified, instead of the one before.
    pub(crate) fn remember(&self, token: &str, claims: Arc<Tree>) {
        let verified = VerifiedToken { token: token.into(), claims };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(verified);
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

impl fmt::Debug for VerifiedTokenMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedTokenMemory").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_token_is_recalled() {
        let memory = VerifiedTokenMemory::default();
        assert_eq!(memory.recall(""), None);
        let claims = Arc::new(Tree::new());
        memory.remember("one", Arc::clone(&claims));
        assert_eq!(memory.recall("one"), Some(Arc::clone(&claims)));
        for other in ["", "on", "onf", "one ", "two"] {
            assert_eq!(memory.recall(other), None, "{other}");
        }
        memory.remember("two", Arc::clone(&claims));
        assert_eq!((memory.recall("one"), memory.recall("two")), (None, Some(claims)));
    }

    #[test]
    fn nothing_that_is_shown_holds_a_token() {
        let memory = VerifiedTokenMemory::default();
        memory.remember("swordfish", Arc::new(Tree::new()));
        assert!(!format!("{memory:?}").contains("swordfish"));
    }
}
