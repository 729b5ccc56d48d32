//! The handshake: what the server shows, and what it asks of the peer.

mod any_client;
mod certificate;

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;

use self::any_client::AnyClient;

pub use self::certificate::ReloadingCertificate;
use crate::watched_files::ReadError;

/// Why TLS can not be spoken with what was given.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file of certificates holds none, or something else than PEM.
    #[error("`{path}` holds no certificate in PEM form: {reason}")]
    Certificate {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The file of the key holds none, or something else than PEM.
    #[error("`{path}` holds no private key in PEM form: {reason}")]
    Key {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Each of the two is well-formed, but they can not be used together.
    #[error("`{certificate}` and `{key}` can not be used: {reason}")]
    Pair {
        /// The file of certificates.
        certificate: String,
        /// The file of the key.
        key: String,
        /// Why not.
        reason: String,
    },
    /// The library refuses its own defaults, which is a fault of ours.
    #[error("TLS can not be set up")]
    Setup(#[source] rustls::Error),
}

/// TLS 1.2 and later, HTTP/2 before HTTP/1.1, and a client certificate asked for but not demanded.
///
/// # Errors
/// [`TlsError::Setup`] if the library refuses these settings.
pub fn server_config(certificate: Arc<ReloadingCertificate>) -> Result<ServerConfig, TlsError> {
    let provider = provider();
    let clients = AnyClient::new(provider.signature_verification_algorithms);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(TlsError::Setup)?
        .with_client_cert_verifier(Arc::new(clients))
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
