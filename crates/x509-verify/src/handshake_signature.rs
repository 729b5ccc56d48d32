//! Handshake signatures: they prove that the peer holds the key of its certificate.
//!
//! The functions of the TLS library refuse certificates with unknown critical extensions or of old versions before
//! they verify the signature. The verifier decides later whether to trust such a certificate, so the handshake
//! must not fail because of it.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved};
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer};

use crate::certificate::Certificate;
use crate::signature::SignatureFault;

fn parse_peer_certificate(certificate: &CertificateDer<'_>) -> Result<Certificate, Error> {
    Certificate::parse(certificate).map_err(|_| CertificateError::BadEncoding.into())
}

/// Verifies a TLS 1.2 handshake signature with the key of a certificate.
///
/// # Errors
/// The peer does not hold the key, or uses an algorithm that is not accepted.
pub fn verify_tls12_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let certificate = parse_peer_certificate(certificate)?;
    let known = algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
    let (_, algorithms) = known.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
    match certificate.key.verify_signature_with_algorithms(
        algorithms.iter().copied(),
        message,
        signed.signature(),
    ) {
        Ok(()) => Ok(HandshakeSignatureValid::assertion()),
        Err(SignatureFault::Unsupported | SignatureFault::WrongKeyType) => {
            Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
        }
        Err(SignatureFault::Invalid) => Err(CertificateError::BadSignature.into()),
    }
}

/// Verifies a TLS 1.3 handshake signature with the key of a certificate.
///
/// # Errors
/// The peer does not hold the key, or uses an algorithm that is not accepted.
pub fn verify_tls13_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let certificate = parse_peer_certificate(certificate)?;
    let key = SubjectPublicKeyInfoDer::from(certificate.public_key_der());
    verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
}
