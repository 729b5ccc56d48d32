//! Public keys and certificate signatures.

use rustls_pki_types::SignatureVerificationAlgorithm;

use crate::der::{DerReader, DerTag};

/// A public key as a certificate holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    /// The DER encoding of the whole `SubjectPublicKeyInfo`.
    pub(crate) spki_der: Vec<u8>,
    /// The contents of its `AlgorithmIdentifier`.
    algorithm_identifier: Vec<u8>,
    key: Vec<u8>,
}

/// The signed bytes, the algorithm and the signature.
#[derive(Debug, Clone)]
pub(crate) struct SignedData {
    pub(crate) message: Vec<u8>,
    /// The contents of the `AlgorithmIdentifier`.
    pub(crate) algorithm_identifier: Vec<u8>,
    pub(crate) signature: Vec<u8>,
}

/// The reason why a signature is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureFault {
    /// The algorithm is insecure or unknown.
    Unsupported,
    /// The algorithm is for another type of key.
    WrongKeyType,
    /// This key did not sign these bytes.
    Invalid,
}

impl PublicKey {
    pub(crate) fn read(reader: &mut DerReader<'_>) -> Option<Self> {
        let whole = reader.read_value(DerTag::SEQUENCE)?;
        let mut inner = DerReader::new(whole.contents);
        let algorithm = inner.read_value(DerTag::SEQUENCE)?.contents.to_vec();
        let key = inner.read_byte_aligned_bit_string()?.to_vec();
        inner.expect_end()?;
        Some(Self { spki_der: whole.encoding.to_vec(), algorithm_identifier: algorithm, key })
    }

    /// Verifies the signature of a certificate. RSA keys must have at least 2048 bits, and digests
    /// must be of the SHA-2 family.
    pub(crate) fn verify_signature(&self, signed: &SignedData) -> Result<(), SignatureFault> {
        let algorithms = webpki::ALL_VERIFICATION_ALGS.iter().filter(|algorithm| {
            algorithm.signature_alg_id().as_ref() == signed.algorithm_identifier
        });
        self.verify_signature_with_algorithms(
            algorithms.copied(),
            &signed.message,
            &signed.signature,
        )
    }

    /// Verifies a signature with the first of the algorithms that fits this type of key.
    pub(crate) fn verify_signature_with_algorithms<'a>(
        &self,
        algorithms: impl Iterator<Item = &'a dyn SignatureVerificationAlgorithm>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), SignatureFault> {
        let mut fault = SignatureFault::Unsupported;
        for algorithm in algorithms {
            if algorithm.public_key_alg_id().as_ref() != self.algorithm_identifier {
                fault = SignatureFault::WrongKeyType;
                continue;
            }
            let verified = algorithm.verify_signature(&self.key, message, signature);
            return verified.map_err(|_| SignatureFault::Invalid);
        }
        Err(fault)
    }
}
