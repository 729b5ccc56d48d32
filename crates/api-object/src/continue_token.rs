//! The continue token of paginated lists.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// The position at which a list continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinueToken {
    /// The revision of the first page; `None` continues at the newest revision.
    pub revision: Option<u64>,
    /// The last key that was returned, below the prefix of the list. The next page begins after it.
    pub last_returned_key: String,
}

/// A continue token is invalid. The client sees the text after `invalid continue token: `.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContinueTokenError {
    /// The token is not base64, or not the expected JSON.
    #[error("the token is not one that this server gave")]
    Malformed,
    /// The token has an unknown format version.
    #[error("server does not recognize this encoded version")]
    Version,
    /// The revision is 0 or below -1.
    #[error("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")]
    Revision,
    /// The token has no start key.
    #[error("encoded start key empty (version meta.k8s.io/v1)")]
    NoKey,
    /// The key leaves the prefix of the list.
    #[error("encoded start key must not contain '..' (version meta.k8s.io/v1)")]
    OutsideKey,
}

const VERSION: &str = "meta.k8s.io/v1";
/// The encoding of the newest revision.
const NEWEST: i64 = -1;
/// Upper bound on the size of a token.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

#[derive(Serialize, Deserialize)]
struct ContinueTokenJson<'a> {
    v: std::borrow::Cow<'a, str>,
    rv: i64,
    start: std::borrow::Cow<'a, str>,
}

impl ContinueToken {
    /// The text that clients receive and send back.
    #[must_use]
    pub fn encode_token(&self) -> String {
        let rv = self.revision.map_or(NEWEST, |own| i64::try_from(own).unwrap_or(i64::MAX));
        let wire = ContinueTokenJson {
            v: VERSION.into(),
            rv,
            start: format!("{}\0", self.last_returned_key).into(),
        };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).unwrap_or_default())
    }

    /// Parses a token from a client.
    ///
    /// # Errors
    /// The text is not a token that [`encode_token`](Self::encode_token) returns.
    pub fn decode_token(text: &str) -> Result<Self, ContinueTokenError> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(ContinueTokenError::Malformed);
        }
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| ContinueTokenError::Malformed)?;
        let wire: ContinueTokenJson<'_> =
            serde_json::from_slice(&json).map_err(|_| ContinueTokenError::Malformed)?;
        if wire.v != VERSION {
            return Err(ContinueTokenError::Version);
        }
        let revision = match wire.rv {
            NEWEST => None,
            own => Some(
                u64::try_from(own)
                    .ok()
                    .filter(|own| *own > 0)
                    .ok_or(ContinueTokenError::Revision)?,
            ),
        };
        if wire.start.is_empty() {
            return Err(ContinueTokenError::NoKey);
        }
        let last_returned_key = wire.start.strip_suffix('\0').unwrap_or(&wire.start);
        if last_returned_key.contains('\0') || last_returned_key.split('/').any(|part| part == "..")
        {
            return Err(ContinueTokenError::OutsideKey);
        }
        Ok(Self { revision, last_returned_key: last_returned_key.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_given_out_is_read_back(revision in prop::option::of(1..i64::MAX as u64), last_returned_key in "[a-z./-]{1,40}") {
            prop_assume!(!last_returned_key.split('/').any(|part| part == ".."));
            let token = ContinueToken { revision, last_returned_key };
            prop_assert_eq!(ContinueToken::decode_token(&token.encode_token()), Ok(token));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,80}") {
            let _ = ContinueToken::decode_token(&text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let encode = |json: &str| URL_SAFE_NO_PAD.encode(json);
        for (text, want) in [
            ("zzzz".to_owned(), ContinueTokenError::Malformed),
            ("!".to_owned(), ContinueTokenError::Malformed),
            (encode(r#"{"v":"x","rv":1,"start":"a"}"#), ContinueTokenError::Version),
            (encode(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#), ContinueTokenError::Revision),
            (encode(r#"{"v":"meta.k8s.io/v1","rv":-2,"start":"a"}"#), ContinueTokenError::Revision),
            (encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#), ContinueTokenError::NoKey),
            (
                encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a/../b"}"#),
                ContinueTokenError::OutsideKey,
            ),
        ] {
            assert_eq!(ContinueToken::decode_token(&text), Err(want), "{text}");
        }
    }
}
