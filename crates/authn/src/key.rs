//! The keys of service-account tokens.

mod read;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, KeyPair, RsaKeyPair, UnparsedPublicKey};
use ring::{digest, rsa};

use crate::der;

/// The ways to sign a token that are known here. ES512 is not among them: the cryptographic
/// library has no curve P-521, so keys on it are refused when they are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
}

/// Why a key can not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The file is not PEM, or nothing in it is a key.
    #[error("no key found in PEM")]
    NoKey,
    /// A key can not be read.
    #[error("the key is malformed or not supported")]
    Malformed,
    /// The curve is none of P-256 and P-384.
    #[error("unsupported elliptic curve, must be P-256 or P-384")]
    Curve,
    /// The private key does not come with its public half.
    #[error("the private key does not include its public key")]
    WithoutPublicKey,
    /// The library can not sign, or make a key.
    #[error("signing failed")]
    Signing,
}

/// A key that checks signatures.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    id: String,
    algorithm: Algorithm,
    /// For RSA a PKCS#1 public key, otherwise an uncompressed point.
    material: Vec<u8>,
}

/// A key that signs.
pub struct SigningKey {
    pair: Pair,
    public: VerifyingKey,
}

enum Pair {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair),
}

impl Algorithm {
    /// As the header of a token names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
        }
    }

    fn verification(self) -> &'static dyn signature::VerificationAlgorithm {
        match self {
            Self::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Self::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
        }
    }
}

impl VerifyingKey {
    /// All keys of a PEM file: public keys, the public halves of private keys, and the keys of
    /// certificates.
    ///
    /// # Errors
    /// There is none, or one can not be used.
    pub fn all_from_pem(pem: &str) -> Result<Vec<Self>, KeyError> {
        read::verifying_keys(pem)
    }

    /// What a token calls the key: a hash of it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How the key signs.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Reports whether the signature is one of the message by this key.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(self.algorithm.verification(), &self.material)
            .verify(message, signature)
            .is_ok()
    }

    fn new(algorithm: Algorithm, material: &[u8]) -> Self {
        let hash = digest::digest(&digest::SHA256, &subject_public_key_info(algorithm, material));
        Self { id: URL_SAFE_NO_PAD.encode(hash), algorithm, material: material.to_vec() }
    }
}

impl SigningKey {
    /// The first private key of a PEM file.
    ///
    /// # Errors
    /// There is none, or it can not be used.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        read::signing_key(pem)
    }

    /// A new private key on P-256, as PEM.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate_pem() -> Result<String, KeyError> {
        let random = SystemRandom::new();
        let algorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let document =
            EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| KeyError::Signing)?;
        let mut pem = "-----BEGIN PRIVATE KEY-----\n".to_owned();
        let text = STANDARD.encode(document.as_ref());
        let mut rest = text.as_str();
        while let Some((line, after)) = rest.split_at_checked(64) {
            pem.extend([line, "\n"]);
            rest = after;
        }
        pem.extend([rest, if rest.is_empty() { "" } else { "\n" }, "-----END PRIVATE KEY-----\n"]);
        Ok(pem)
    }

    /// The key that checks what this one signs.
    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.public
    }

    /// Signs a message.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ecdsa(pair) => {
                let signature = pair.sign(&random, message).map_err(|_| KeyError::Signing)?;
                Ok(signature.as_ref().to_vec())
            }
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map_err(|_| KeyError::Signing)?;
                Ok(signature)
            }
        }
    }

    fn rsa(pair: RsaKeyPair) -> Self {
        let public: &rsa::PublicKey = pair.public();
        let public = VerifyingKey::new(Algorithm::Rs256, public.as_ref());
        Self { pair: Pair::Rsa(pair), public }
    }

    fn ecdsa(pair: EcdsaKeyPair, algorithm: Algorithm) -> Self {
        let public = VerifyingKey::new(algorithm, pair.public_key().as_ref());
        Self { pair: Pair::Ecdsa(pair), public }
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({} {})", self.algorithm.name(), self.id)
    }
}

/// Shows the public half only.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({} {})", self.public.algorithm.name(), self.public.id)
    }
}

/// The DER form of a public key that its id is the hash of.
fn subject_public_key_info(algorithm: Algorithm, material: &[u8]) -> Vec<u8> {
    let null = der::write(der::NULL, &[]);
    let curve = |oid: &[u8]| der::write(der::OID, &[oid]);
    let (kind, parameters) = match algorithm {
        Algorithm::Rs256 => (read::RSA, null),
        Algorithm::Es256 => (read::EC, curve(read::P256)),
        Algorithm::Es384 => (read::EC, curve(read::P384)),
    };
    let identifier = der::write(der::SEQUENCE, &[&der::write(der::OID, &[kind]), &parameters]);
    let key = der::write(der::BIT_STRING, &[&[0], material]);
    der::write(der::SEQUENCE, &[&identifier, &key])
}

#[cfg(test)]
mod tests;
