//! JSON Web Tokens in compact form.

use api_object::Tree;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::token_keys::{KeyError, SigningKey, VerifyingKey};

/// Upper bound on the size of a token. Service-account tokens have one or two thousand bytes.
pub const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// A parsed token. No claim may be trusted before [`verify`](Self::verify) succeeds.
pub(crate) struct UnverifiedToken<'t> {
    signed_text: &'t str,
    signature: Vec<u8>,
    token_header: Tree,
    claims: Tree,
}

/// Why the signature of a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// No key has the id that the token names.
    #[error("invalid signature, no keys found")]
    NoKey,
    /// The token has a `crit` header, and no critical extension is supported.
    #[error("the token has critical headers, which are not supported")]
    Critical,
    /// None of the keys made the signature with the algorithm that the token names.
    #[error("invalid signature")]
    Invalid,
}

/// Parses a token; `None` if it is not a JWT.
pub(crate) fn parse_token(token: &str) -> Option<UnverifiedToken<'_>> {
    if token.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let (signed_text, signature) = token.rsplit_once('.')?;
    let (header, claims) = signed_text.split_once('.')?;
    Some(UnverifiedToken {
        signed_text,
        signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
        token_header: decode_json_object(header)?,
        claims: decode_json_object(claims)?,
    })
}

/// Signs claims and returns the token.
pub(crate) fn sign_token(key: &SigningKey, claims: &Tree) -> Result<String, KeyError> {
    let public = key.verifying_key();
    let header = json!({"alg": public.signature_algorithm().name(), "kid": public.id()});
    let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
    let claims = Value::Object(claims.clone());
    let signed_text = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
    let signature = URL_SAFE_NO_PAD.encode(key.sign_message(signed_text.as_bytes())?);
    Ok(format!("{signed_text}.{signature}"))
}

impl UnverifiedToken<'_> {
    /// The issuer that the token claims. It only selects the keys to verify with.
    pub(crate) fn claimed_issuer(&self) -> &str {
        api_object::string_member(&self.claims, "iss")
    }

    /// The claims, if one of the keys signed them. A token that names a key is verified with that
    /// key only.
    ///
    /// INVARIANT: the algorithm is that of the key. The algorithm in the token must agree and
    /// selects nothing.
    pub(crate) fn verify_signature(self, keys: &[VerifyingKey]) -> Result<Tree, SignatureError> {
        if self.token_header.contains_key("crit") {
            return Err(SignatureError::Critical);
        }
        let (key_id, algorithm) = (
            api_object::string_member(&self.token_header, "kid"),
            api_object::string_member(&self.token_header, "alg"),
        );
        let mut candidates =
            keys.iter().filter(|key| key_id.is_empty() || key.id() == key_id).peekable();
        if candidates.peek().is_none() {
            return Err(SignatureError::NoKey);
        }
        let is_signed = candidates
            .filter(|key| key.signature_algorithm().name() == algorithm)
            .any(|key| key.is_signature_valid(self.signed_text.as_bytes(), &self.signature));
        if is_signed { Ok(self.claims) } else { Err(SignatureError::Invalid) }
    }
}

fn decode_json_object(encoded: &str) -> Option<Tree> {
    let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> SigningKey {
        SigningKey::from_pem(&SigningKey::generate_private_key_pem().unwrap()).unwrap()
    }

    fn claims() -> Tree {
        json!({"iss": "me", "n": 1}).as_object().cloned().unwrap()
    }

    /// A token with this header, signed whatever it says.
    fn with_header(key: &SigningKey, header: Value) -> String {
        let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
        let payload = Value::Object(claims()).to_string();
        let signed_text = format!("{}.{}", encode(header.to_string()), encode(payload));
        let signature = URL_SAFE_NO_PAD.encode(key.sign_message(signed_text.as_bytes()).unwrap());
        format!("{signed_text}.{signature}")
    }

    fn check(token: &str, keys: &[&SigningKey]) -> Result<Tree, SignatureError> {
        let keys: Vec<VerifyingKey> = keys.iter().map(|key| key.verifying_key().clone()).collect();
        parse_token(token).unwrap().verify_signature(&keys)
    }

    #[test]
    fn what_is_signed_is_verified() {
        let (own, other) = (key(), key());
        let token = sign_token(&own, &claims()).unwrap();
        assert_eq!(parse_token(&token).unwrap().claimed_issuer(), "me");
        assert_eq!(check(&token, &[&other, &own]), Ok(claims()));
        assert_eq!(check(&token, &[&other]), Err(SignatureError::NoKey));
        assert_eq!(check(&token, &[]), Err(SignatureError::NoKey));
    }

    #[test]
    fn a_token_without_key_id_is_checked_with_all() {
        let (own, other) = (key(), key());
        let token = with_header(&own, json!({"alg": "ES256"}));
        assert_eq!(check(&token, &[&other, &own]), Ok(claims()));
        assert_eq!(check(&token, &[&other]), Err(SignatureError::Invalid));
    }

    #[test]
    fn the_header_can_not_choose_how_it_is_checked() {
        let own = key();
        for alg in ["none", "HS256", "RS256", "ES384", "ES512", "es256", ""] {
            let token = with_header(&own, json!({"alg": alg}));
            assert_eq!(check(&token, &[&own]), Err(SignatureError::Invalid), "{alg}");
        }
        let critical = with_header(&own, json!({"alg": "ES256", "crit": ["b64"], "b64": false}));
        assert_eq!(check(&critical, &[&own]), Err(SignatureError::Critical));
    }

    #[test]
    fn no_part_can_be_exchanged() {
        let own = key();
        let token = sign_token(&own, &claims()).unwrap();
        let (signed_text, signature) = token.rsplit_once('.').unwrap();
        let (header, _) = signed_text.split_once('.').unwrap();
        let forged = URL_SAFE_NO_PAD.encode(json!({"iss": "me", "n": 2}).to_string());
        let forged = format!("{header}.{forged}.{signature}");
        assert_eq!(check(&forged, &[&own]), Err(SignatureError::Invalid));
        assert_eq!(check(&format!("{signed_text}."), &[&own]), Err(SignatureError::Invalid));
    }

    #[test]
    fn what_is_not_a_token_is_not_taken_apart() {
        let token = sign_token(&key(), &claims()).unwrap();
        assert!(parse_token(&token).is_some());
        for text in
            ["", "a", "a.b", "..", "e30.e30", "{}", "e30.W10.", "e30.e30.=", "e30.e30.e30.e30"]
        {
            assert!(parse_token(text).is_none(), "{text}");
        }
        let padded = |n_bytes: usize| format!("e30.e30.{}", "A".repeat(n_bytes - 8));
        assert!(parse_token(&padded(TOKEN_BYTES_MAX)).is_some());
        assert!(parse_token(&padded(TOKEN_BYTES_MAX + 4)).is_none());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            text in ".{0,60}|[A-Za-z0-9_-]{0,20}\\.[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,20}",
            header in ".{0,20}",
            claims in ".{0,20}",
        ) {
            let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
            let made = format!("{}.{}.AAAA", encode(&header), encode(&claims));
            for text in [&text, &made] {
                if let Some(token) = parse_token(text) {
                    prop_assert!(token.verify_signature(&[]).is_err());
                }
            }
        }
    }
}
