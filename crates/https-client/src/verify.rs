//! Certificates of servers: whether they are believed, and what is counted.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::{Oid, oid};
use x509_parser::oid_registry::{OID_PKCS1_SHA1WITHRSA, OID_X509_EXT_SUBJECT_ALT_NAME};
use x509_parser::prelude::FromDer as _;
use x509_verify::{
    Roots, ServerVerifier, VerifyError, verify_tls12_signature, verify_tls13_signature,
};

use crate::observe::Observe;
use crate::trust::{Trust, system_roots};

const OID_ECDSA_WITH_SHA1: Oid<'static> = oid!(1.2.840.10045.4.1);

/// Believes the certificates of servers or not, and has the insecure ones counted either way.
pub(crate) struct Verifier {
    belief: Belief,
    provider: Arc<CryptoProvider>,
    observe: Arc<dyn Observe>,
}

enum Belief {
    Any,
    /// What some authority vouches for, and what is trusted itself: a certificate that is its own
    /// authority is common among webhooks.
    Vouched(ServerVerifier),
}

/// Why a certificate is refused that others once believed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Insecure {
    #[error("certificate relies on legacy Common Name field, use SANs instead")]
    MissingSan,
    #[error(
        "certificate signed by unknown authority (possibly because of \"x509: cannot verify \
         signature: insecure algorithm SHA1\" while trying to verify candidate authority \
         certificate)"
    )]
    Sha1,
}

/// What is wrong with a certificate, whoever vouches for it.
struct Flaws {
    is_missing_san: bool,
    is_sha1: bool,
}

impl Verifier {
    pub(crate) fn new(
        trust: &Trust,
        provider: Arc<CryptoProvider>,
        observe: Arc<dyn Observe>,
    ) -> Self {
        let vouched =
            |roots: Arc<Roots>| Belief::Vouched(ServerVerifier::new(roots, Arc::clone(&provider)));
        let belief = match trust {
            Trust::DangerousAcceptAny => Belief::Any,
            Trust::System => vouched(system_roots()),
            Trust::CaBundle(bundle) => vouched(Arc::new(bundle.roots())),
        };
        Self { belief, provider, observe }
    }

    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        match &self.belief {
            Belief::Any => Ok(()),
            Belief::Vouched(by) => by.verify(end_entity, intermediates, server_name, now),
        }
    }
}

impl ServerCertVerifier for Verifier {
    /// 1. Whatever comes of it, a missing SAN extension and SHA-1 signatures are counted.
    /// 2. The certificate must be believed, in time, and for the name.
    /// 3. If it is not, and one of those flaws is why, the message says so.
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let flaws = Flaws::find(end_entity, intermediates);
        if flaws.is_missing_san {
            self.observe.missing_san();
        }
        if flaws.is_sha1 {
            self.observe.sha1_signature();
        }
        let verified = self.verify(end_entity, intermediates, server_name, now);
        verified.map_err(|error| flaws.blame(error))?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

impl Flaws {
    /// What can not be parsed has no flaw here: nobody will believe it.
    fn find(end_entity: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> Self {
        let is_missing_san = X509Certificate::from_der(end_entity).is_ok_and(|(_, leaf)| {
            !leaf.extensions().iter().any(|it| it.oid == OID_X509_EXT_SUBJECT_ALT_NAME)
        });
        let mut shown = std::iter::once(end_entity).chain(intermediates);
        Self { is_missing_san, is_sha1: shown.any(is_sha1) }
    }

    fn blame(&self, error: Error) -> Error {
        let is_unknown = |error: &CertificateError| match error {
            CertificateError::UnknownIssuer => true,
            CertificateError::Other(other) => matches!(
                other.0.downcast_ref::<VerifyError>(),
                Some(VerifyError::UnknownAuthority(_))
            ),
            _ => false,
        };
        let insecure = match &error {
            Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) if self.is_missing_san => Insecure::MissingSan,
            Error::InvalidCertificate(error) if self.is_sha1 && is_unknown(error) => Insecure::Sha1,
            _ => return error,
        };
        CertificateError::Other(OtherError(Arc::new(insecure))).into()
    }
}

/// Roots that servers send along are not verified by their signatures, so those do not matter.
fn is_sha1(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, certificate)| {
        let algorithm = certificate.signature_algorithm.oid();
        let is_sha1 = *algorithm == OID_PKCS1_SHA1WITHRSA || *algorithm == OID_ECDSA_WITH_SHA1;
        is_sha1 && certificate.issuer() != certificate.subject()
    })
}
