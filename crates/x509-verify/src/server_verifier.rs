//! Verification of server certificates for `rustls`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::chain_search::{CertificateUsage, Roots};
use crate::handshake_signature::{verify_tls12_signature, verify_tls13_signature};
use crate::verify_error::VerifyError;

/// Decides whether the certificate of a server is accepted.
pub trait ServerCertificateChecker: Send + Sync {
    /// Checks the certificates that a server presents for a name.
    ///
    /// # Errors
    /// The certificate is not accepted.
    fn check_server_certificate(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error>;
}

/// Accepts certificates that chain to trusted roots, are valid, are for servers, and are for the requested name.
pub struct TrustedRootsCheck(Arc<Roots>);

/// Lets `rustls` decide about servers by a [`ServerCertificateChecker`]. It verifies the signatures of handshakes itself.
pub struct ServerVerifier<C> {
    certificate_check: C,
    crypto_provider: Arc<CryptoProvider>,
}

impl TrustedRootsCheck {
    /// Trusts the certificates among these roots.
    pub fn new(roots: Arc<Roots>) -> Self {
        Self(roots)
    }
}

impl ServerCertificateChecker for TrustedRootsCheck {
    fn check_server_certificate(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let presented: Vec<CertificateDer<'_>> =
            std::iter::once(end_entity).chain(intermediates).cloned().collect();
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        self.0
            .verify_chain(&presented, CertificateUsage::ServerAuth, seconds)
            .map_err(|error| to_rustls_error(error, now))?;
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)
    }
}

/// Converts an error, so that `rustls` sends the matching alert.
fn to_rustls_error(error: VerifyError, now: UnixTime) -> Error {
    let time = |at: i64| {
        UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(at).unwrap_or_default()))
    };
    let error = match error {
        VerifyError::Malformed => CertificateError::BadEncoding,
        VerifyError::UnhandledCriticalExtension => CertificateError::UnhandledCriticalExtension,
        VerifyError::NotYetValid { not_before } => {
            CertificateError::NotValidYetContext { time: now, not_before: time(not_before) }
        }
        VerifyError::Expired { not_after } => {
            CertificateError::ExpiredContext { time: now, not_after: time(not_after) }
        }
        VerifyError::UnknownAuthority(None) => CertificateError::UnknownIssuer,
        VerifyError::IncompatibleUsage => CertificateError::InvalidPurpose,
        VerifyError::UnknownAuthority(Some(_))
        | VerifyError::Issuer(_)
        | VerifyError::Name(_)
        | VerifyError::Policy
        | VerifyError::SignatureLimit => CertificateError::Other(OtherError(Arc::new(error))),
    };
    error.into()
}

impl<C> ServerVerifier<C> {
    /// Combines a check with the algorithms of a cryptography provider.
    pub fn new(check: C, crypto_provider: Arc<CryptoProvider>) -> Self {
        Self { certificate_check: check, crypto_provider }
    }
}

impl<C: ServerCertificateChecker> ServerCertVerifier for ServerVerifier<C> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.certificate_check.check_server_certificate(
            end_entity,
            intermediates,
            server_name,
            now,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.crypto_provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.crypto_provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.crypto_provider.signature_verification_algorithms.supported_schemes()
    }
}

impl<C> fmt::Debug for ServerVerifier<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerVerifier").finish_non_exhaustive()
    }
}
