//! TLS connections to members.
//!
//! Every new connection reads the certificate files again. So a renewed client certificate is used, and a removed
//! CA is no longer trusted, without a restart.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tower_service::Service;
use x509_verify::{
    Certificate, OldCertificateVersionError, Roots, ServerVerifier, TrustedRootsCheck,
};

use crate::options::ClientCertificateFiles;

/// The ALPN protocol of etcd.
const ALPN_HTTP2: &[u8] = b"h2";

/// The reason why the certificates for etcd cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFilesError {
    /// A file cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The path of the file.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file does not hold the expected PEM object.
    #[error("{} holds no {what} in PEM form", file.display())]
    Missing {
        /// The path of the file.
        file: PathBuf,
        /// The PEM object that the file must hold.
        what: &'static str,
    },
    /// The client certificate has a version that cannot be presented.
    #[error("{} cannot be used", file.display())]
    OldVersion {
        /// The path of the file.
        file: PathBuf,
        /// The version of the certificate.
        source: OldCertificateVersionError,
    },
    /// The client certificate and its key cannot be used together.
    #[error("the client certificate cannot be used")]
    Identity(#[source] rustls::Error),
}

/// The certificate files of TLS connections to members.
pub(crate) struct TlsFiles {
    ca_file: PathBuf,
    client_certificate: Option<ClientCertificateFiles>,
    /// The TLS configuration of the last valid files.
    last_valid_config: Mutex<Option<Arc<ClientConfig>>>,
}

impl TlsFiles {
    pub(crate) fn new(
        ca_file: PathBuf,
        client_certificate: Option<ClientCertificateFiles>,
    ) -> Self {
        Self { ca_file, client_certificate, last_valid_config: Mutex::default() }
    }

    /// Reads the files and builds a TLS configuration.
    pub(crate) fn load_tls_config(&self) -> Result<Arc<ClientConfig>, TlsFilesError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities = read_certificates(&self.ca_file)?;
        let authorities = authorities.iter().filter_map(|der| Certificate::parse(der).ok());
        let roots = Roots::new(authorities);
        if roots.is_empty() {
            return Err(missing_pem_error(&self.ca_file, "certificate"));
        }
        let verifier =
            ServerVerifier::new(TrustedRootsCheck::new(Arc::new(roots)), Arc::clone(&provider));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsFilesError::Identity)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &self.client_certificate {
            None => builder.with_no_client_auth(),
            Some(ClientCertificateFiles { cert_file, key_file }) => {
                let key = PrivateKeyDer::from_pem_slice(&read(key_file)?)
                    .map_err(|_| missing_pem_error(key_file, "private key"))?;
                let chain = read_certificates(cert_file)?;
                if let Some(leaf) = chain.first() {
                    Certificate::check_version(leaf).map_err(|source| {
                        TlsFilesError::OldVersion { file: cert_file.clone(), source }
                    })?;
                }
                builder.with_client_auth_cert(chain, key).map_err(TlsFilesError::Identity)?
            }
        };
        config.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
        let config = Arc::new(config);
        *self.last_valid_config.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::clone(&config));
        Ok(config)
    }

    /// Reads the files. While they cannot be used, for example between the writes of a certificate and of its
    /// key, returns the last valid configuration.
    fn load_tls_config_or_last_valid(&self) -> Result<Arc<ClientConfig>, TlsFilesError> {
        self.load_tls_config().or_else(|error| {
            let last = self.last_valid_config.lock().unwrap_or_else(PoisonError::into_inner);
            last.clone().ok_or(error)
        })
    }
}

fn read(file: &Path) -> Result<Vec<u8>, TlsFilesError> {
    fs::read(file).map_err(|source| TlsFilesError::Read { file: file.to_owned(), source })
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFilesError> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(&read(file)?)
        .collect::<Result<_, _>>()
        .map_err(|_| missing_pem_error(file, "certificate"))?;
    if found.is_empty() { Err(missing_pem_error(file, "certificate")) } else { Ok(found) }
}

fn missing_pem_error(file: &Path, what: &'static str) -> TlsFilesError {
    TlsFilesError::Missing { file: file.to_owned(), what }
}

/// Opens connections to one member.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp_connector: HttpConnector,
    /// The certificate files; `None` connects without TLS.
    tls_files: Option<Arc<TlsFiles>>,
}

impl Connector {
    pub(crate) fn new(connect_timeout: Duration, tls: Option<Arc<TlsFiles>>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(connect_timeout));
        Self { tcp_connector: tcp, tls_files: tls }
    }
}

/// A connection with or without TLS.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

impl Connector {
    /// Opens a connection to the host and port of a URI.
    pub(crate) async fn connect(
        &self,
        uri: &Uri,
    ) -> Result<TokioIo<Box<dyn ByteStream>>, Box<dyn Error + Send + Sync>> {
        let mut tcp = self.tcp_connector.clone();
        let stream = tcp.call(uri.clone()).await?.into_inner();
        let Some(files) = self.tls_files.clone() else {
            return Ok(TokioIo::new(Box::new(stream)));
        };
        let config =
            tokio::task::spawn_blocking(move || files.load_tls_config_or_last_valid()).await??;
        let host = uri.host().unwrap_or_default();
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name)?;
        let stream = TlsConnector::from(config).connect(name, stream).await?;
        if stream.get_ref().1.alpn_protocol() != Some(ALPN_HTTP2) {
            return Err("the member does not speak HTTP/2".into());
        }
        Ok(TokioIo::new(Box::new(stream)))
    }
}
