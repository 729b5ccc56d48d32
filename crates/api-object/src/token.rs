//! The token with which a list goes on where its last page ended.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinueToken {
    /// The state of the first page; `None` goes on in the newest state, whatever that is.
    pub revision: Option<u64>,
    /// The last key that was shown, below the prefix of the list. The next page begins after it.
    pub after: String,
}

/// Why a text is no such token. The words go to the client behind `invalid continue token: `.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not base64, or not the JSON that is expected inside.
    #[error("the token is not one that this server gave")]
    Malformed,
    /// Made by another version.
    #[error("server does not recognize this encoded version")]
    Version,
    /// The revision is 0 or below -1.
    #[error("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")]
    Revision,
    /// There is no key to go on after.
    #[error("encoded start key empty (version meta.k8s.io/v1)")]
    NoKey,
    /// The key leaves the prefix of the list.
    #[error("encoded start key must not contain '..' (version meta.k8s.io/v1)")]
    OutsideKey,
}

const VERSION: &str = "meta.k8s.io/v1";
/// Stands for the newest state.
const NEWEST: i64 = -1;
/// The longest token; a key has a limit too.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    v: std::borrow::Cow<'a, str>,
    rv: i64,
    start: std::borrow::Cow<'a, str>,
}

impl ContinueToken {
    /// The text that clients get and send back.
    #[must_use]
    pub fn encode(&self) -> String {
        let rv = self.revision.map_or(NEWEST, |own| i64::try_from(own).unwrap_or(i64::MAX));
        let wire = Wire { v: VERSION.into(), rv, start: format!("{}\0", self.after).into() };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).unwrap_or_default())
    }

    /// Reads what a client sent.
    ///
    /// # Errors
    /// The text is none that [`encode`](Self::encode) makes.
    pub fn decode(text: &str) -> Result<Self, TokenError> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::Malformed);
        }
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Malformed)?;
        let wire: Wire<'_> = serde_json::from_slice(&json).map_err(|_| TokenError::Malformed)?;
        if wire.v != VERSION {
            return Err(TokenError::Version);
        }
        let revision = match wire.rv {
            NEWEST => None,
            own => {
                Some(u64::try_from(own).ok().filter(|own| *own > 0).ok_or(TokenError::Revision)?)
            }
        };
        if wire.start.is_empty() {
            return Err(TokenError::NoKey);
        }
        let after = wire.start.strip_suffix('\0').unwrap_or(&wire.start);
        if after.contains('\0') || after.split('/').any(|part| part == "..") {
            return Err(TokenError::OutsideKey);
        }
        Ok(Self { revision, after: after.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_given_out_is_read_back(revision in prop::option::of(1..i64::MAX as u64), after in "[a-z./-]{1,40}") {
            prop_assume!(!after.split('/').any(|part| part == ".."));
            let token = ContinueToken { revision, after };
            prop_assert_eq!(ContinueToken::decode(&token.encode()), Ok(token));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,80}") {
            let _ = ContinueToken::decode(&text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let encode = |json: &str| URL_SAFE_NO_PAD.encode(json);
        for (text, want) in [
            ("zzzz".to_owned(), TokenError::Malformed),
            ("!".to_owned(), TokenError::Malformed),
            (encode(r#"{"v":"x","rv":1,"start":"a"}"#), TokenError::Version),
            (encode(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#), TokenError::Revision),
            (encode(r#"{"v":"meta.k8s.io/v1","rv":-2,"start":"a"}"#), TokenError::Revision),
            (encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#), TokenError::NoKey),
            (encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a/../b"}"#), TokenError::OutsideKey),
        ] {
            assert_eq!(ContinueToken::decode(&text), Err(want), "{text}");
        }
    }
}
