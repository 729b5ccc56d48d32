//! A cache of the last valid token that a connection presented.

use std::fmt;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use crate::authenticated_user::AuthenticatedUser;
use crate::service_account::VerifiedClaims;

/// Caches one token, so that a token is looked up or its signature verified once for a connection and not for each
/// request.
///
/// INVARIANT: a cache belongs to one connection and is never shared, so no user's traffic changes how the token of
/// another user is verified.
#[derive(Default)]
pub(crate) struct LastTokenCache(Mutex<Option<(Box<str>, CachedToken)>>);

/// The facts about a token that cannot change while the server runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CachedToken {
    /// The user of a token of the token file. The file is read once.
    FileUser(AuthenticatedUser),
    /// The claims of a service-account token whose signature is valid; the keys of an authenticator never change. Times,
    /// audiences and the objects that the token refers to are checked for each request.
    Claims(Arc<VerifiedClaims>),
}

impl LastTokenCache {
    /// Returns the cached result for the token; `None` if another token is cached. The time of the comparison does
    /// not depend on where two tokens of the same length differ.
    pub(crate) fn find_cached_token(&self, token: &str) -> Option<CachedToken> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, known) = last
            .as_ref()
            .filter(|(last, _)| are_equal_in_constant_time(last.as_bytes(), token.as_bytes()))?;
        Some(known.clone())
    }

    /// Caches a token in place of the previous one.
    pub(crate) fn cache_token(&self, token: &str, known: CachedToken) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((token.into(), known));
    }
}

/// Compares secrets of the same length in constant time.
fn are_equal_in_constant_time(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let difference = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    black_box(difference) == 0
}

impl fmt::Debug for LastTokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastTokenCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use api_object::Tree;

    use super::*;

    #[test]
    fn only_the_last_token_is_recalled() {
        let memory = LastTokenCache::default();
        assert_eq!(memory.find_cached_token(""), None);
        let claims = CachedToken::Claims(Arc::new(Tree::new().into()));
        memory.cache_token("one", claims.clone());
        assert_eq!(memory.find_cached_token("one"), Some(claims.clone()));
        for other in ["", "on", "onf", "one ", "two"] {
            assert_eq!(memory.find_cached_token(other), None, "{other}");
        }
        memory.cache_token("two", claims.clone());
        assert_eq!(
            (memory.find_cached_token("one"), memory.find_cached_token("two")),
            (None, Some(claims))
        );
    }

    #[test]
    fn nothing_that_is_shown_holds_a_token() {
        let memory = LastTokenCache::default();
        memory.cache_token("swordfish", CachedToken::Claims(Arc::new(Tree::new().into())));
        assert!(!format!("{memory:?}").contains("swordfish"));
    }
}
