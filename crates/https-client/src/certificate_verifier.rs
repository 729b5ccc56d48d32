//! Verifies the certificates of servers, and reports insecure ones.

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

use crate::certificate_observer::CertificateObserver;
use crate::trust::{Trust, system_roots};

const OID_ECDSA_WITH_SHA1: Oid<'static> = oid!(1.2.840.10045.4.1);

/// Verifies the certificates of servers. Insecure certificates are reported to the observer, accepted or not.
pub(crate) struct CertificateVerifier {
    trust_rule: TrustRule,
    provider: Arc<CryptoProvider>,
    observe: Arc<dyn CertificateObserver>,
}

enum TrustRule {
    AcceptAny,
    /// Accept certificates that chain to a root. A root may also be the certificate of the server itself: self-signed
    /// certificates are common among webhooks.
    Roots(ServerVerifier),
}

/// Why a certificate is refused that older clients accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InsecureCertificate {
    #[error("certificate relies on legacy Common Name field, use SANs instead")]
    MissingSan,
    #[error(
        "certificate signed by unknown authority (possibly because of \"x509: cannot verify \
         signature: insecure algorithm SHA1\" while trying to verify candidate authority \
         certificate)"
    )]
    Sha1,
}

/// Weaknesses of a certificate chain, whoever signed it.
struct CertificateWeaknesses {
    is_missing_san: bool,
    is_signed_with_sha1: bool,
}

impl CertificateVerifier {
    pub(crate) fn new(
        trust: &Trust,
        provider: Arc<CryptoProvider>,
        observe: Arc<dyn CertificateObserver>,
    ) -> Self {
        let by_roots =
            |roots: Arc<Roots>| TrustRule::Roots(ServerVerifier::new(roots, Arc::clone(&provider)));
        let trust_rule = match trust {
            Trust::DangerousAcceptAny => TrustRule::AcceptAny,
            Trust::System => by_roots(system_roots()),
            Trust::CaBundle(bundle) => by_roots(Arc::new(bundle.roots())),
        };
        Self { trust_rule, provider, observe }
    }

    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        match &self.trust_rule {
            TrustRule::AcceptAny => Ok(()),
            TrustRule::Roots(by) => by.verify(end_entity, intermediates, server_name, now),
        }
    }
}

impl ServerCertVerifier for CertificateVerifier {
    /// 1. A missing SAN extension and SHA-1 signatures are reported to the observer, whatever the result.
    /// 2. The certificate must be trusted, valid at this time, and valid for the name.
    /// 3. If it is not because of one of these weaknesses, the message says so.
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let weaknesses = CertificateWeaknesses::find(end_entity, intermediates);
        if weaknesses.is_missing_san {
            self.observe.missing_san();
        }
        if weaknesses.is_signed_with_sha1 {
            self.observe.sha1_signature();
        }
        let verified = self.verify(end_entity, intermediates, server_name, now);
        verified.map_err(|error| weaknesses.explain_refusal(error))?;
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

impl fmt::Debug for CertificateVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateVerifier").finish_non_exhaustive()
    }
}

impl CertificateWeaknesses {
    /// A certificate that can not be parsed has no weakness here, since verification refuses it.
    fn find(end_entity: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> Self {
        let is_missing_san = X509Certificate::from_der(end_entity).is_ok_and(|(_, leaf)| {
            !leaf.extensions().iter().any(|it| it.oid == OID_X509_EXT_SUBJECT_ALT_NAME)
        });
        let mut shown = std::iter::once(end_entity).chain(intermediates);
        Self { is_missing_san, is_signed_with_sha1: shown.any(is_signed_with_sha1) }
    }

    fn explain_refusal(&self, error: Error) -> Error {
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
            ) if self.is_missing_san => InsecureCertificate::MissingSan,
            Error::InvalidCertificate(error) if self.is_signed_with_sha1 && is_unknown(error) => {
                InsecureCertificate::Sha1
            }
            _ => return error,
        };
        CertificateError::Other(OtherError(Arc::new(insecure))).into()
    }
}

/// Signatures of self-signed certificates do not count, since verification ignores them.
fn is_signed_with_sha1(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, certificate)| {
        let algorithm = certificate.signature_algorithm.oid();
        let is_signed_with_sha1 =
            *algorithm == OID_PKCS1_SHA1WITHRSA || *algorithm == OID_ECDSA_WITH_SHA1;
        is_signed_with_sha1 && certificate.issuer() != certificate.subject()
    })
}
