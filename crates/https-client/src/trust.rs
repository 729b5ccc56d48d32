//! Whose certificates are believed.

use std::sync::{Arc, OnceLock};

use rustls_pki_types::CertificateDer;
use x509_verify::Certificate;

use crate::pem::{self, Block};

/// Whose certificates are believed.
#[derive(Debug, Clone, PartialEq)]
pub enum Trust {
    /// Those of the authorities that the system knows, looked up once per process.
    System,
    /// Those of these authorities and of nobody else.
    Roots(Roots),
    /// Any: somebody on the way can read and answer everything. The peer must still hold the key of
    /// the certificate that it shows.
    Anything,
}

/// Certificates of authorities, and of servers that are trusted themselves; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Roots {
    certificates: Vec<CertificateDer<'static>>,
}

/// Why there are no authorities. The words are those of Kubernetes' client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RootsError {
    /// Not a PEM file.
    #[error("unable to parse bytes as PEM block")]
    NotPem,
    /// It holds something called a certificate, which is none.
    #[error("failed to parse certificate: x509: malformed certificate")]
    Malformed,
    /// It holds other things.
    #[error("no valid certificate authority data seen")]
    NoCertificate,
}

impl Roots {
    /// The certificates of a PEM file; what else it holds is skipped as long as one remains.
    ///
    /// # Errors
    /// [`RootsError`] if none remains.
    pub fn from_pem(pem: &[u8]) -> Result<Self, RootsError> {
        let blocks = pem::blocks(pem);
        let all = blocks.iter().filter_map(|block| match block {
            Block::Certificate(certificate) => Some(certificate),
            Block::Key(_) | Block::Other => None,
        });
        let usable = all.clone().filter(|der| Certificate::parse(der).is_ok());
        let certificates: Vec<_> = usable.cloned().collect();
        if !certificates.is_empty() {
            Ok(Self { certificates })
        } else if all.clone().next().is_some() {
            Err(RootsError::Malformed)
        } else if blocks.is_empty() {
            Err(RootsError::NotPem)
        } else {
            Err(RootsError::NoCertificate)
        }
    }

    #[cfg(test)]
    pub(crate) fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// What they vouch for.
    pub(crate) fn verifying(&self) -> Arc<x509_verify::Roots> {
        Arc::new(parse_all(&self.certificates))
    }
}

/// The authorities that the system knows. None at all is no error here: then no certificate is
/// believed, and the failed handshake says so.
pub(crate) fn system_roots() -> Arc<x509_verify::Roots> {
    static SYSTEM: OnceLock<Arc<x509_verify::Roots>> = OnceLock::new();
    let load = || Arc::new(parse_all(&rustls_native_certs::load_native_certs().certs));
    Arc::clone(SYSTEM.get_or_init(load))
}

/// Those that can be read.
fn parse_all(certificates: &[CertificateDer<'_>]) -> x509_verify::Roots {
    x509_verify::Roots::new(certificates.iter().filter_map(|der| Certificate::parse(der).ok()))
}

#[cfg(test)]
mod tests {
    use fake_http::Authority;

    use super::*;

    #[test]
    fn what_a_file_of_authorities_may_hold() {
        let authority = Authority::new("ca").unwrap();
        let key = authority.issue(&fake_http::Leaf::client("x")).unwrap().key_pem;
        let pem = format!("# a comment\n{key}\n{}", authority.pem());
        assert_eq!(Roots::from_pem(pem.as_bytes()).unwrap().certificates().len(), 1);
        assert_eq!(Roots::from_pem(b"").unwrap_err(), RootsError::NotPem);
        assert_eq!(Roots::from_pem(b"abc").unwrap_err(), RootsError::NotPem);
        assert_eq!(Roots::from_pem(key.as_bytes()).unwrap_err(), RootsError::NoCertificate);
        let junk = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(Roots::from_pem(junk).unwrap_err(), RootsError::Malformed);
    }
}
