//! Keys and signatures.

use rustls_pki_types::SignatureVerificationAlgorithm;

use crate::der::{Reader, SEQUENCE};

/// A public key as a certificate holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    /// The whole `SubjectPublicKeyInfo`.
    pub(crate) whole: Vec<u8>,
    /// The contents of its `AlgorithmIdentifier`.
    algorithm: Vec<u8>,
    key: Vec<u8>,
}

/// What was signed, how, and the signature.
#[derive(Debug, Clone)]
pub(crate) struct Signed {
    pub(crate) message: Vec<u8>,
    /// The contents of the `AlgorithmIdentifier`.
    pub(crate) algorithm: Vec<u8>,
    pub(crate) signature: Vec<u8>,
}

/// Why a signature does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureFault {
    /// Nobody believes in this algorithm, or this code does not know it.
    Unsupported,
    /// The algorithm is for other keys.
    OtherKey,
    /// Another key made it, or for something else.
    Invalid,
}

impl PublicKey {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let whole = reader.value(SEQUENCE)?;
        let mut inner = Reader::new(whole.contents);
        let algorithm = inner.value(SEQUENCE)?.contents.to_vec();
        let key = inner.whole_bits()?.to_vec();
        inner.end()?;
        Some(Self { whole: whole.whole.to_vec(), algorithm, key })
    }

    /// Whether this key made the signature of a certificate. RSA keys have at least 2048 bits, and
    /// digests are of the family SHA-2.
    pub(crate) fn verify(&self, signed: &Signed) -> Result<(), SignatureFault> {
        let algorithms = webpki::ALL_VERIFICATION_ALGS
            .iter()
            .filter(|algorithm| algorithm.signature_alg_id().as_ref() == signed.algorithm);
        self.verify_with(algorithms.copied(), &signed.message, &signed.signature)
    }

    /// Whether this key made a signature by one of these algorithms: the first that is for such keys.
    pub(crate) fn verify_with<'a>(
        &self,
        algorithms: impl Iterator<Item = &'a dyn SignatureVerificationAlgorithm>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), SignatureFault> {
        let mut fault = SignatureFault::Unsupported;
        for algorithm in algorithms {
            if algorithm.public_key_alg_id().as_ref() != self.algorithm {
                fault = SignatureFault::OtherKey;
                continue;
            }
            let verified = algorithm.verify_signature(&self.key, message, signature);
            return verified.map_err(|_| SignatureFault::Invalid);
        }
        Err(fault)
    }
}
