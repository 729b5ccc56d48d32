//! Private keys that sign certificates and prove identities.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::sign::SigningKey;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{
    AlgorithmIdentifier, PrivateKeyDer, PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer, alg_id,
};

use super::issue_certificate::IssueError;

/// The signature algorithms of certificates, one for each type of key.
const SIGNATURE_ALGORITHMS: [(SignatureScheme, AlgorithmIdentifier); 4] = [
    (SignatureScheme::ECDSA_NISTP256_SHA256, alg_id::ECDSA_SHA256),
    (SignatureScheme::ECDSA_NISTP384_SHA384, alg_id::ECDSA_SHA384),
    (SignatureScheme::ED25519, alg_id::ED25519),
    (SignatureScheme::RSA_PKCS1_SHA256, alg_id::RSA_PKCS1_SHA256),
];

/// The reason why a file holds no usable private key.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadKeyError {
    #[error(transparent)]
    Pem(#[from] pem::Error),
    #[error(transparent)]
    Unsupported(#[from] rustls::Error),
    #[error("the public key of the private key is not known")]
    NoPublicKey,
}

/// A private key with its public key.
pub(super) struct KeyPair {
    signing_key: Arc<dyn SigningKey>,
    public_key: SubjectPublicKeyInfoDer<'static>,
}

/// A signer of certificates and its algorithm.
pub(super) struct CertificateSigner {
    /// The contents of the `AlgorithmIdentifier`.
    pub(super) algorithm: AlgorithmIdentifier,
    pub(super) signer: Box<dyn rustls::sign::Signer>,
}

impl KeyPair {
    /// Generates a private key on P-256 as PKCS #8 PEM.
    pub(super) fn generate_pem() -> Result<String, IssueError> {
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new())
            .map_err(|_| IssueError::Randomness)?;
        Ok(encode_pem("PRIVATE KEY", document.as_ref()))
    }

    /// Reads the first PKCS #8 key of a PEM file: on P-256 or P-384, for Ed25519, or for RSA.
    pub(super) fn from_pem(text: &str) -> Result<Self, ReadKeyError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes())?;
        let signing_key = any_supported_type(&PrivateKeyDer::Pkcs8(der))?;
        let public_key = signing_key.public_key().ok_or(ReadKeyError::NoPublicKey)?.into_owned();
        Ok(Self { signing_key, public_key })
    }

    /// The public key, as a `SubjectPublicKeyInfo`.
    pub(super) fn public_key_der(&self) -> &[u8] {
        &self.public_key
    }

    /// The public key as PEM.
    pub(super) fn public_key_pem(&self) -> String {
        encode_pem("PUBLIC KEY", &self.public_key)
    }

    /// The algorithm with which this key signs certificates, and its signer.
    pub(super) fn certificate_signer(&self) -> Result<CertificateSigner, IssueError> {
        SIGNATURE_ALGORITHMS
            .into_iter()
            .find_map(|(scheme, algorithm)| {
                let signer = self.signing_key.choose_scheme(&[scheme])?;
                Some(CertificateSigner { algorithm, signer })
            })
            .ok_or(IssueError::Signing)
    }
}

/// Encodes DER as PEM with lines of 64 characters.
pub(super) fn encode_pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(64).unwrap_or((rest, ""));
        pem.extend([line, "\n"]);
        rest = after;
    }
    pem.push_str(&format!("-----END {label}-----\n"));
    pem
}
