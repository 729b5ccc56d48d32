//! Decides which certificates of servers are accepted, and reports insecure ones.

use std::sync::Arc;

use rustls::{CertificateError, Error, OtherError};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_verify::{Certificate, ServerCertificateChecker, TrustedRootsCheck, VerifyError};

use crate::certificate_observer::CertificateObserver;
use crate::server_trust::{ServerTrust, system_roots};

/// Checks the certificates of servers. It reports insecure certificates to the observer, accepted or not.
pub(crate) struct CertificateCheck {
    trust_rule: TrustRule,
    certificate_observer: Arc<dyn CertificateObserver>,
}

enum TrustRule {
    AcceptAny,
    /// Accept certificates that chain to a root. A root may also be the certificate of the server itself: self-signed
    /// certificates are common among webhooks.
    Roots(TrustedRootsCheck),
}

/// The reason why a certificate is refused that older clients accepted.
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

/// Weaknesses of a certificate chain, trusted or not.
struct CertificateWeaknesses {
    is_missing_san: bool,
    is_signed_with_sha1: bool,
}

impl CertificateCheck {
    pub(crate) fn new(trust: &ServerTrust, observer: Arc<dyn CertificateObserver>) -> Self {
        let trust_rule = match trust {
            ServerTrust::DangerousAcceptAny => TrustRule::AcceptAny,
            ServerTrust::System => TrustRule::Roots(TrustedRootsCheck::new(system_roots())),
            ServerTrust::CaBundle(bundle) => {
                TrustRule::Roots(TrustedRootsCheck::new(Arc::new(bundle.parse_roots())))
            }
        };
        Self { trust_rule, certificate_observer: observer }
    }
}

impl ServerCertificateChecker for CertificateCheck {
    /// 1. A missing SAN extension and SHA-1 signatures are reported to the observer, whatever the result.
    /// 2. The certificate must be trusted, valid at this time, and valid for the name.
    /// 3. If the certificate is refused because of one of these weaknesses, the message says so.
    fn check_server_certificate(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let weaknesses = CertificateWeaknesses::find_weaknesses(end_entity, intermediates);
        if weaknesses.is_missing_san {
            self.certificate_observer.on_missing_san();
        }
        if weaknesses.is_signed_with_sha1 {
            self.certificate_observer.on_sha1_signature();
        }
        let checked = match &self.trust_rule {
            TrustRule::AcceptAny => Ok(()),
            TrustRule::Roots(roots) => {
                roots.check_server_certificate(end_entity, intermediates, server_name, now)
            }
        };
        checked.map_err(|error| weaknesses.explain_refusal(error))
    }
}

impl CertificateWeaknesses {
    /// Finds the weaknesses of a chain. A certificate that cannot be parsed has none, since verification refuses
    /// it.
    fn find_weaknesses(
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
    ) -> Self {
        let is_missing_san =
            Certificate::parse(end_entity).is_ok_and(|leaf| !leaf.has_alternative_names());
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

/// Reports whether a certificate is signed with SHA-1. Signatures of self-signed certificates do not count, since
/// verification ignores them.
fn is_signed_with_sha1(certificate: &CertificateDer<'_>) -> bool {
    Certificate::parse(certificate)
        .is_ok_and(|certificate| certificate.has_sha1_signature() && !certificate.is_self_issued())
}
