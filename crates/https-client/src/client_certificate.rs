//! Reads the client certificate and its private key.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};

use crate::go_error_text::go_io_error_text;
use crate::pem_file::{self, PemBlock};
use crate::secret::Secret;

/// A client certificate and its key. Files are read again for every new connection, so a renewed certificate takes effect
/// with the next connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate and its intermediate certificates.
    pub certificate_location: PemLocation,
    /// The private key of the certificate.
    pub key: PemLocation,
}

/// A PEM text, or the file that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PemLocation {
    /// The PEM text itself.
    Inline(Secret),
    /// The path of a PEM file.
    File(PathBuf),
}

/// The reason why a client certificate cannot be used. The texts are those of Go.
#[derive(Debug, thiserror::Error)]
pub enum ClientCertificateError {
    /// A file cannot be read.
    #[error("open {}: {}", .path.display(), go_io_error_text(.error))]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The certificate input has no PEM block.
    #[error("tls: failed to find any PEM data in certificate input")]
    CertificateNotPem,
    /// The certificate input holds a private key.
    #[error(
        "tls: failed to find certificate PEM data in certificate input, but did find a private \
         key; PEM inputs may have been switched"
    )]
    Swapped,
    /// The certificate input holds other PEM blocks only.
    #[error("tls: failed to find \"CERTIFICATE\" PEM block in certificate input")]
    NoCertificate,
    /// The key input has no PEM block.
    #[error("tls: failed to find any PEM data in key input")]
    KeyNotPem,
    /// The key input holds a certificate.
    #[error("tls: found a certificate rather than a key in the PEM for the private key")]
    CertificateAsKey,
    /// The key input holds other PEM blocks only.
    #[error("tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input")]
    NoKey,
    /// The private key cannot be parsed.
    #[error("tls: failed to parse private key")]
    UnusableKey,
    /// The certificate cannot be parsed.
    #[error("x509: malformed certificate")]
    UnusableCertificate,
    /// The certificate has a version that cannot be presented.
    #[error(transparent)]
    OldVersion(#[from] x509_verify::OldCertificateVersionError),
    /// The private key belongs to another certificate.
    #[error("tls: private key does not match public key")]
    Mismatch,
}

impl ClientCertificate {
    /// Checks that certificate and key can be read and belong together.
    ///
    /// # Errors
    /// [`ClientCertificateError`] if they do not.
    pub fn check_certificate_usable(&self) -> Result<(), ClientCertificateError> {
        self.load_pem_pair().map(drop)
    }

    pub(crate) fn load_pem_pair(&self) -> Result<LoadedClientCertificate, ClientCertificateError> {
        let certificate_pem = self.certificate_location.read()?;
        let key_pem = self.key.read()?;
        let key = parse_certified_key(certificate_pem.expose(), key_pem.expose())?;
        Ok(LoadedClientCertificate { certificate_pem, key_pem, key: Arc::new(key) })
    }

    /// Reports whether the certificate or the key is in a file, which can change.
    pub(crate) fn is_read_from_files(&self) -> bool {
        matches!(self.certificate_location, PemLocation::File(_))
            || matches!(self.key, PemLocation::File(_))
    }
}

/// A client certificate that was read and parsed.
#[derive(Clone)]
pub(crate) struct LoadedClientCertificate {
    certificate_pem: Secret,
    key_pem: Secret,
    pub(crate) key: Arc<CertifiedKey>,
}

impl LoadedClientCertificate {
    pub(crate) fn has_same_pem(&self, other: &Self) -> bool {
        self.certificate_pem == other.certificate_pem && self.key_pem == other.key_pem
    }
}

impl PemLocation {
    fn read(&self) -> Result<Secret, ClientCertificateError> {
        match self {
            Self::Inline(pem) => Ok(pem.clone()),
            Self::File(path) => pem_file::read_pem_file(path)
                .map(Secret::new)
                .map_err(|error| ClientCertificateError::Read { path: path.clone(), error }),
        }
    }
}

fn parse_certified_key(
    certificate_pem: &[u8],
    key_pem: &[u8],
) -> Result<CertifiedKey, ClientCertificateError> {
    let mut chain = Vec::new();
    let mut has_key = false;
    let blocks = pem_file::parse_pem_blocks(certificate_pem);
    let is_empty = blocks.is_empty();
    for block in blocks {
        match block {
            PemBlock::Certificate(certificate) => chain.push(certificate),
            PemBlock::Key(_) => has_key = true,
            PemBlock::Other => {}
        }
    }
    if chain.is_empty() {
        return Err(match (is_empty, has_key) {
            (true, _) => ClientCertificateError::CertificateNotPem,
            (false, true) => ClientCertificateError::Swapped,
            (false, false) => ClientCertificateError::NoCertificate,
        });
    }
    if let Some(leaf) = chain.first() {
        x509_verify::Certificate::check_version(leaf)?;
    }
    let mut fault = ClientCertificateError::KeyNotPem;
    for block in pem_file::parse_pem_blocks(key_pem) {
        match block {
            PemBlock::Key(key) => {
                let made = CertifiedKey::from_der(chain, key, &crypto_provider());
                return made.map_err(|error| match error {
                    Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                        ClientCertificateError::Mismatch
                    }
                    Error::InvalidCertificate(_) => ClientCertificateError::UnusableCertificate,
                    _ => ClientCertificateError::UnusableKey,
                });
            }
            PemBlock::Certificate(_) => fault = ClientCertificateError::CertificateAsKey,
            PemBlock::Other => {
                if matches!(fault, ClientCertificateError::KeyNotPem) {
                    fault = ClientCertificateError::NoKey;
                }
            }
        }
    }
    Err(fault)
}

/// The cryptography provider of all connections. It has no SHA-1 and no TLS before 1.2.
pub(crate) fn crypto_provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

#[cfg(test)]
mod tests {
    use fake_http::{Authority, Leaf};

    use super::*;

    fn inline(certificate: &str, key: &str) -> Result<(), ClientCertificateError> {
        let identity = ClientCertificate {
            certificate_location: PemLocation::Inline(Secret::new(certificate)),
            key: PemLocation::Inline(Secret::new(key)),
        };
        identity.check_certificate_usable()
    }

    #[test]
    fn mismatched_certificates_and_keys_are_refused() {
        let authority = Authority::new("ca").unwrap();
        let issued = authority.issue(&Leaf::client("jane")).unwrap();
        let other = authority.issue(&Leaf::client("joe")).unwrap();
        let (certificate, key) = (&*issued.certificate_pem, &*issued.key_pem);
        let both = format!("{key}{certificate}");
        inline(certificate, key).unwrap();
        inline(&both, &both).unwrap();
        let fault = |certificate, key| inline(certificate, key).unwrap_err().to_string();
        assert_eq!(
            fault(certificate, &other.key_pem),
            "tls: private key does not match public key"
        );
        assert!(fault(key, certificate).ends_with("PEM inputs may have been switched"));
        assert!(fault(certificate, certificate).contains("found a certificate rather than a key"));
        assert!(fault("", key).contains("any PEM data in certificate input"));
        assert!(fault(certificate, "x").contains("any PEM data in key input"));
        let broken = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert_eq!(fault(certificate, broken), "tls: failed to parse private key");
    }

    #[test]
    fn the_error_names_a_missing_file() {
        let missing = PemLocation::File(PathBuf::from("/nowhere/tls.crt"));
        let identity = ClientCertificate { certificate_location: missing.clone(), key: missing };
        let message = identity.check_certificate_usable().unwrap_err().to_string();
        assert_eq!(message, "open /nowhere/tls.crt: no such file or directory");
    }
}
