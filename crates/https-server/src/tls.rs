//! The TLS configuration of the server.

mod accept_any_client_certificate;
mod reloading_certificate;

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;

use self::accept_any_client_certificate::AcceptAnyClientCertificate;

pub use self::reloading_certificate::ReloadingCertificate;
use crate::watched_files::FileReadError;

/// Why TLS cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] FileReadError),
    /// The certificate file holds no certificate in PEM.
    #[error("`{path}` holds no certificate in PEM form: {reason}")]
    Certificate {
        /// The path of the file.
        path: String,
        /// The error of the parser.
        reason: String,
    },
    /// The key file holds no private key in PEM.
    #[error("`{path}` holds no private key in PEM form: {reason}")]
    Key {
        /// The path of the file.
        path: String,
        /// The error of the parser.
        reason: String,
    },
    /// Certificate and key are well-formed but cannot be used together.
    #[error("`{certificate}` and `{key}` cannot be used: {reason}")]
    Pair {
        /// The path of the certificate file.
        certificate: String,
        /// The path of the key file.
        key: String,
        /// The error of the library.
        reason: String,
    },
    /// The library refuses its own defaults, which is a bug of this server.
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
}

/// Whether a client must present a certificate. In both cases the handshake only proves that the client has its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCertificates {
    /// A client without a certificate can connect.
    Optional,
    /// The handshake fails without a certificate.
    Required,
}

/// TLS 1.2 and later, HTTP/2 before HTTP/1.1, and client certificates.
///
/// # Errors
/// [`TlsError::Setup`] if the library refuses these settings.
pub fn tls_server_config(
    certificate: Arc<ReloadingCertificate>,
    client_certificates: ClientCertificates,
) -> Result<ServerConfig, TlsError> {
    let provider = crypto_provider();
    let clients = AcceptAnyClientCertificate::new(
        provider.signature_verification_algorithms,
        client_certificates,
    );
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(TlsError::Setup)?
        .with_client_cert_verifier(Arc::new(clients))
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
