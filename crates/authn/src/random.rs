//! Secrets and names that nobody can guess.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

/// The system has no randomness to give. Nothing that protects can be made without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no random bytes")]
pub struct RandomnessError;

/// So many random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], RandomnessError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| RandomnessError)?;
    Ok(bytes)
}

/// A name for one token, as its `jti` says it.
///
/// # Errors
/// The system has no randomness.
pub fn random_token_id() -> Result<String, RandomnessError> {
    Ok(api_object::uuid4(bytes()?))
}

/// A bearer token that is only a secret, with 256 random bits.
pub(crate) fn secret() -> Result<String, RandomnessError> {
    Ok(URL_SAFE_NO_PAD.encode(bytes::<32>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same() {
        assert_ne!(secret(), secret());
        assert_eq!(secret().unwrap().len(), 43);
        let id = random_token_id().unwrap();
        assert_ne!(Ok(&id), random_token_id().as_ref());
        assert_eq!((id.len(), id.as_bytes()[14]), (36, b'4'));
    }
}
