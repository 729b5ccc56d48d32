//! Who we are to a server: the client certificate.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};

use crate::failure::io_words;
use crate::pem::{self, Block};
use crate::secret::Secret;

/// A client certificate and its key. What is in files is read again for new connections, so that a
/// renewed certificate is shown from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, and those that lead to its authority.
    pub certificate: Material,
    /// The key.
    pub key: Material,
}

/// PEM, or where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Material {
    /// Here.
    Inline(Secret),
    /// In a file.
    File(PathBuf),
}

/// Why there is no client certificate. The words are those of Go.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file can not be read.
    #[error("open {}: {}", .path.display(), io_words(.error))]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The certificate is not PEM.
    #[error("tls: failed to find any PEM data in certificate input")]
    CertificateNotPem,
    /// There is a key where the certificate should be.
    #[error(
        "tls: failed to find certificate PEM data in certificate input, but did find a private \
         key; PEM inputs may have been switched"
    )]
    Switched,
    /// There is something else where the certificate should be.
    #[error("tls: failed to find \"CERTIFICATE\" PEM block in certificate input")]
    NoCertificate,
    /// The key is not PEM.
    #[error("tls: failed to find any PEM data in key input")]
    KeyNotPem,
    /// There is a certificate where the key should be.
    #[error("tls: found a certificate rather than a key in the PEM for the private key")]
    CertificateAsKey,
    /// There is something else where the key should be.
    #[error("tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input")]
    NoKey,
    /// The key can not be used.
    #[error("tls: failed to parse private key")]
    UnusableKey,
    /// The certificate can not be used.
    #[error("x509: malformed certificate")]
    UnusableCertificate,
    /// The key is that of another certificate.
    #[error("tls: private key does not match public key")]
    Mismatch,
}

impl Identity {
    /// Whether certificate and key can be read and belong together.
    ///
    /// # Errors
    /// [`IdentityError`] if not.
    pub fn check(&self) -> Result<(), IdentityError> {
        self.load().map(drop)
    }

    pub(crate) fn load(&self) -> Result<Loaded, IdentityError> {
        let certificate_pem = self.certificate.read()?;
        let key_pem = self.key.read()?;
        let key = certified_key(certificate_pem.expose(), key_pem.expose())?;
        Ok(Loaded { certificate_pem, key_pem, key: Arc::new(key) })
    }

    /// Whether anything may change without a new identity.
    pub(crate) fn is_in_files(&self) -> bool {
        matches!(self.certificate, Material::File(_)) || matches!(self.key, Material::File(_))
    }
}

/// A client certificate that can be shown.
#[derive(Clone)]
pub(crate) struct Loaded {
    certificate_pem: Secret,
    key_pem: Secret,
    pub(crate) key: Arc<CertifiedKey>,
}

impl Loaded {
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.certificate_pem == other.certificate_pem && self.key_pem == other.key_pem
    }
}

impl Material {
    fn read(&self) -> Result<Secret, IdentityError> {
        match self {
            Self::Inline(pem) => Ok(pem.clone()),
            Self::File(path) => pem::read(path)
                .map(Secret::new)
                .map_err(|error| IdentityError::Read { path: path.clone(), error }),
        }
    }
}

fn certified_key(certificate_pem: &[u8], key_pem: &[u8]) -> Result<CertifiedKey, IdentityError> {
    let mut chain = Vec::new();
    let mut has_key = false;
    let blocks = pem::blocks(certificate_pem);
    let is_empty = blocks.is_empty();
    for block in blocks {
        match block {
            Block::Certificate(certificate) => chain.push(certificate),
            Block::Key(_) => has_key = true,
            Block::Other => {}
        }
    }
    if chain.is_empty() {
        return Err(match (is_empty, has_key) {
            (true, _) => IdentityError::CertificateNotPem,
            (false, true) => IdentityError::Switched,
            (false, false) => IdentityError::NoCertificate,
        });
    }
    let mut fault = IdentityError::KeyNotPem;
    for block in pem::blocks(key_pem) {
        match block {
            Block::Key(key) => {
                let made = CertifiedKey::from_der(chain, key, &provider());
                return made.map_err(|error| match error {
                    Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                        IdentityError::Mismatch
                    }
                    Error::InvalidCertificate(_) => IdentityError::UnusableCertificate,
                    _ => IdentityError::UnusableKey,
                });
            }
            Block::Certificate(_) => fault = IdentityError::CertificateAsKey,
            Block::Other => {
                if matches!(fault, IdentityError::KeyNotPem) {
                    fault = IdentityError::NoKey;
                }
            }
        }
    }
    Err(fault)
}

/// The cryptography that all connections use. It has no SHA-1, and no TLS before 1.2.
pub(crate) fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

#[cfg(test)]
mod tests {
    use fake_http::{Authority, Leaf};

    use super::*;

    fn inline(certificate: &str, key: &str) -> Result<(), String> {
        let identity = Identity {
            certificate: Material::Inline(Secret::new(certificate)),
            key: Material::Inline(Secret::new(key)),
        };
        identity.check().map_err(|error| error.to_string())
    }

    #[test]
    fn certificates_and_keys_that_do_not_belong_together() {
        let authority = Authority::new("ca").unwrap();
        let issued = authority.issue(&Leaf::client("jane")).unwrap();
        let other = authority.issue(&Leaf::client("joe")).unwrap();
        let (certificate, key) = (&*issued.certificate_pem, &*issued.key_pem);
        let both = format!("{key}{certificate}");
        inline(certificate, key).unwrap();
        inline(&both, &both).unwrap();
        let fault = |certificate, key| inline(certificate, key).unwrap_err();
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
    fn a_missing_file_is_named() {
        let missing = Material::File(PathBuf::from("/nowhere/tls.crt"));
        let identity = Identity { certificate: missing.clone(), key: missing };
        let message = identity.check().unwrap_err().to_string();
        assert_eq!(message, "open /nowhere/tls.crt: no such file or directory");
    }
}
