//! Verification of client certificates during the handshake.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_verify::{verify_tls12_signature, verify_tls13_signature};

use super::ClientCertificates;

/// Accepts any certificate whose key the peer proves to hold.
///
/// Authentication decides for each request whether the certificate is trusted: an untrusted one is
/// a wrong credential and is answered with 401, which a failed handshake could not express. The
/// same holds for certificates with unknown critical extensions, so the signature of the handshake
/// is verified with the key alone.
#[derive(Debug)]
pub(super) struct AcceptAnyClientCertificate {
    signature_algorithms: WebPkiSupportedAlgorithms,
    client_certificates: ClientCertificates,
}

impl AcceptAnyClientCertificate {
    pub(super) fn new(
        algorithms: WebPkiSupportedAlgorithms,
        client_certificates: ClientCertificates,
    ) -> Self {
        Self { signature_algorithms: algorithms, client_certificates }
    }
}

impl ClientCertVerifier for AcceptAnyClientCertificate {
    fn client_auth_mandatory(&self) -> bool {
        self.client_certificates == ClientCertificates::Required
    }

    /// Sends no hints: clients would withhold certificates of other authorities, and the request
    /// would be anonymous instead of refused for a wrong certificate.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.signature_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.signature_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signature_algorithms.supported_schemes()
    }
}
