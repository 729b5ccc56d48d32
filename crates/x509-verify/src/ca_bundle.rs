//! CA bundles: PEM files of the certificates at which a certificate chain may end.

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{PemObject as _, SectionKind};

use crate::certificate::Certificate;
use crate::chain_search::Roots;

/// The certificates of a CA bundle, which may also contain certificates of servers that are trusted directly.
///
/// INVARIANT: there is at least one certificate, and [`Certificate::parse`] accepts each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaBundle {
    certificates: Vec<CertificateDer<'static>>,
}

/// The reason why a CA bundle holds no usable certificate. The texts are those of Kubernetes' client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CaBundleError {
    /// The bytes hold no PEM block.
    #[error("unable to parse bytes as PEM block")]
    NotPem,
    /// All blocks of type `CERTIFICATE` are malformed.
    #[error("failed to parse certificate: x509: malformed certificate")]
    Malformed,
    /// No block is of type `CERTIFICATE`.
    #[error("no valid certificate authority data seen")]
    NoCertificate,
}

impl CaBundle {
    /// Reads the certificates of a PEM file. Other blocks and malformed certificates are skipped as long as
    /// one certificate remains; reading ends at the first broken PEM block.
    ///
    /// # Errors
    /// [`CaBundleError`] if no certificate remains.
    pub fn from_pem(pem: &[u8]) -> Result<Self, CaBundleError> {
        let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem).map_while(Result::ok);
        let (mut n_sections, mut n_certificates) = (0_usize, 0_usize);
        let mut certificates = Vec::new();
        for (kind, der) in sections {
            n_sections += 1;
            if kind == SectionKind::Certificate {
                n_certificates += 1;
                let der = CertificateDer::from(der);
                certificates.extend(Certificate::parse(&der).is_ok().then_some(der));
            }
        }
        match (certificates.len(), n_certificates, n_sections) {
            (1.., _, _) => Ok(Self { certificates }),
            (0, 1.., _) => Err(CaBundleError::Malformed),
            (0, 0, 1..) => Err(CaBundleError::NoCertificate),
            (0, 0, 0) => Err(CaBundleError::NotPem),
        }
    }

    /// The certificates in their order.
    #[must_use]
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// Parses the certificates for verification.
    #[must_use]
    pub fn parse_roots(&self) -> Roots {
        Roots::new(self.certificates.iter().filter_map(|der| Certificate::parse(der).ok()))
    }
}
