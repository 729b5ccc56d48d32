//! The keys that sign and verify service-account tokens.

mod pem_keys;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, KeyPair, RsaKeyPair, UnparsedPublicKey};
use ring::{digest, rsa};
use serde_json::{Value, json};
use x509_verify::{DerReader, DerTag, encode_der_value};

/// The supported signature algorithms. ES512 is missing because the cryptographic library has no
/// curve P-521; such keys are refused when they are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    /// RSA with PKCS#1 v1.5 padding and SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
}

/// Why a key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The file is not PEM or holds no key.
    #[error("no key found in PEM")]
    NoKey,
    /// A key is malformed or of an unsupported kind.
    #[error("the key is malformed or not supported")]
    Malformed,
    /// The curve is neither P-256 nor P-384.
    #[error("unsupported elliptic curve, must be P-256 or P-384")]
    Curve,
    /// The private key does not contain its public key.
    #[error("the private key does not include its public key")]
    WithoutPublicKey,
    /// The library cannot sign or generate a key.
    #[error("signing failed")]
    Signing,
}

/// A public key that verifies signatures.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    id: String,
    signature_algorithm: SignatureAlgorithm,
    /// A PKCS#1 public key for RSA, an uncompressed point for ECDSA.
    public_key_bytes: Vec<u8>,
}

/// A private key that signs tokens.
pub struct SigningKey {
    key_pair: PrivateKeyPair,
    verifying_key: VerifyingKey,
}

enum PrivateKeyPair {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair),
}

impl SignatureAlgorithm {
    /// The value of the `alg` header.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
        }
    }

    fn verification_algorithm(self) -> &'static dyn signature::VerificationAlgorithm {
        match self {
            Self::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Self::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
        }
    }
}

impl VerifyingKey {
    /// Parses all keys of a PEM file: public keys, private keys, and the keys of certificates.
    ///
    /// # Errors
    /// There is no key, or one of them cannot be used.
    pub fn all_from_pem(pem: &str) -> Result<Vec<Self>, KeyError> {
        pem_keys::parse_verifying_keys(pem)
    }

    /// The key id in tokens: a hash of the public key.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The signature algorithm of the key.
    pub fn signature_algorithm(&self) -> SignatureAlgorithm {
        self.signature_algorithm
    }

    /// The key as a JSON Web Key, under the id that tokens name.
    pub(crate) fn to_jwk(&self) -> Result<Value, KeyError> {
        let (id, algorithm) = (&self.id, self.signature_algorithm.name());
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let curve = match self.signature_algorithm {
            SignatureAlgorithm::Rs256 => {
                let (modulus, exponent) =
                    rsa_modulus_and_exponent(&self.public_key_bytes).ok_or(KeyError::Malformed)?;
                let (n, e) = (encode(modulus), encode(exponent));
                return Ok(json!({
                    "use": "sig", "kty": "RSA", "kid": id, "alg": algorithm, "n": n, "e": e,
                }));
            }
            SignatureAlgorithm::Es256 => "P-256",
            SignatureAlgorithm::Es384 => "P-384",
        };
        let point = self.public_key_bytes.strip_prefix(&[4]).ok_or(KeyError::Malformed)?;
        let (x, y) = point.split_at_checked(point.len() / 2).ok_or(KeyError::Malformed)?;
        let (x, y) = (encode(x), encode(y));
        Ok(json!({
            "use": "sig", "kty": "EC", "kid": id, "crv": curve, "alg": algorithm, "x": x, "y": y,
        }))
    }

    /// Reports whether this key made the signature of the message.
    pub(crate) fn is_signature_valid(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(
            self.signature_algorithm.verification_algorithm(),
            &self.public_key_bytes,
        )
        .verify(message, signature)
        .is_ok()
    }

    fn new(algorithm: SignatureAlgorithm, public_key_bytes: &[u8]) -> Self {
        let hash =
            digest::digest(&digest::SHA256, &encode_public_key_info(algorithm, public_key_bytes));
        Self {
            id: URL_SAFE_NO_PAD.encode(hash),
            signature_algorithm: algorithm,
            public_key_bytes: public_key_bytes.to_vec(),
        }
    }
}

impl SigningKey {
    /// Parses the first private key of a PEM file.
    ///
    /// # Errors
    /// There is no private key, or it cannot be used.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        pem_keys::parse_signing_key(pem)
    }

    /// Generates a private key on P-256, as PEM.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate_private_key_pem() -> Result<String, KeyError> {
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

    /// The public key that verifies signatures of this key.
    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.verifying_key
    }

    /// Signs a message with this key.
    pub(crate) fn sign_message(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        match &self.key_pair {
            PrivateKeyPair::Ecdsa(pair) => {
                let signature = pair.sign(&random, message).map_err(|_| KeyError::Signing)?;
                Ok(signature.as_ref().to_vec())
            }
            PrivateKeyPair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map_err(|_| KeyError::Signing)?;
                Ok(signature)
            }
        }
    }

    fn from_rsa_key_pair(pair: RsaKeyPair) -> Self {
        let public_key: &rsa::PublicKey = pair.public();
        let verifying_key = VerifyingKey::new(SignatureAlgorithm::Rs256, public_key.as_ref());
        Self { key_pair: PrivateKeyPair::Rsa(pair), verifying_key }
    }

    fn from_ecdsa_key_pair(pair: EcdsaKeyPair, algorithm: SignatureAlgorithm) -> Self {
        let verifying_key = VerifyingKey::new(algorithm, pair.public_key().as_ref());
        Self { key_pair: PrivateKeyPair::Ecdsa(pair), verifying_key }
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({} {})", self.signature_algorithm.name(), self.id)
    }
}

/// Shows the public key only.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SigningKey({} {})",
            self.verifying_key.signature_algorithm.name(),
            self.verifying_key.id
        )
    }
}

/// Modulus and exponent of a PKCS#1 public key, without leading zeros.
fn rsa_modulus_and_exponent(pkcs1: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = DerReader::new(pkcs1).read_nested(DerTag::SEQUENCE)?;
    let mut read = || {
        let contents = fields.read_value(DerTag::INTEGER)?.contents;
        Some(contents.strip_prefix(&[0]).unwrap_or(contents))
    };
    Some((read()?, read()?))
}

/// The `SubjectPublicKeyInfo` in DER, whose hash is the key id.
fn encode_public_key_info(algorithm: SignatureAlgorithm, public_key_bytes: &[u8]) -> Vec<u8> {
    let null = encode_der_value(DerTag::NULL, &[]);
    let curve = |oid: &[u8]| encode_der_value(DerTag::OID, &[oid]);
    let (kind, parameters) = match algorithm {
        SignatureAlgorithm::Rs256 => (pem_keys::RSA, null),
        SignatureAlgorithm::Es256 => (pem_keys::EC, curve(pem_keys::P256)),
        SignatureAlgorithm::Es384 => (pem_keys::EC, curve(pem_keys::P384)),
    };
    let kind = encode_der_value(DerTag::OID, &[kind]);
    let identifier = encode_der_value(DerTag::SEQUENCE, &[&kind, &parameters]);
    let key = encode_der_value(DerTag::BIT_STRING, &[&[0], public_key_bytes]);
    encode_der_value(DerTag::SEQUENCE, &[&identifier, &key])
}

#[cfg(test)]
mod tests;
