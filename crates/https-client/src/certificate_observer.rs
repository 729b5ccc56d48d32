//! The observer of certificates that servers present.

/// Observes the certificates that servers present to a client. Methods must not block.
pub trait CertificateObserver: Send + Sync {
    /// The certificate of a server has no subject alternative name.
    fn on_missing_san(&self) {}

    /// A certificate that a server presents is signed with SHA-1.
    fn on_sha1_signature(&self) {}
}

/// An observer that ignores all certificates.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCertificateObserver;

impl CertificateObserver for NoCertificateObserver {}
