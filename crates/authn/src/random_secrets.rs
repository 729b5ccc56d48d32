//! Random tokens and token ids.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

/// The system returned no random bytes. No secret can be generated without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no random bytes")]
pub struct RandomnessError;

/// Returns `N` random bytes.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], RandomnessError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| RandomnessError)?;
    Ok(bytes)
}

/// A random id for the `jti` claim of a token.
///
/// # Errors
/// The system has no randomness.
pub fn random_token_id() -> Result<String, RandomnessError> {
    Ok(api_object::format_uuid4(random_bytes()?))
}

/// A bearer token of 256 random bits.
pub(crate) fn random_bearer_token() -> Result<String, RandomnessError> {
    Ok(URL_SAFE_NO_PAD.encode(random_bytes::<32>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same() {
        assert_ne!(random_bearer_token(), random_bearer_token());
        assert_eq!(random_bearer_token().unwrap().len(), 43);
        let id = random_token_id().unwrap();
        assert_ne!(Ok(&id), random_token_id().as_ref());
        assert_eq!((id.len(), id.as_bytes()[14]), (36, b'4'));
    }
}
