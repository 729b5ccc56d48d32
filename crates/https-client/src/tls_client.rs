//! TLS connections to a server.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::sign::SingleCertAndKey;
use rustls_pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use x509_verify::ServerVerifier;

use crate::certificate_check::CertificateCheck;
use crate::certificate_observer::CertificateObserver;
use crate::client::BuildError;
use crate::client_certificate::{ClientCertificate, LoadedClientCertificate, crypto_provider};
use crate::connection::ByteStream;
use crate::fault::{Fault, FaultKind};
use crate::go_error_text::error_to_fault;
use crate::server_trust::ServerTrust;

/// Makes TLS handshakes with one server, with the client certificate that the files hold at the time.
pub(crate) struct TlsClient {
    config_without_certificate: Arc<ClientConfig>,
    client_certificate: Option<ClientCertificate>,
    /// The last valid client certificate, and the configuration that presents it.
    config_with_certificate: Mutex<Option<(LoadedClientCertificate, Arc<ClientConfig>)>>,
}

impl TlsClient {
    pub(crate) fn new(
        trust: &ServerTrust,
        client_certificate: Option<&ClientCertificate>,
        observer: Arc<dyn CertificateObserver>,
    ) -> Result<Self, BuildError> {
        let provider = Arc::new(crypto_provider());
        let check = CertificateCheck::new(trust, observer);
        let verifier = ServerVerifier::new(check, Arc::clone(&provider));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| BuildError::Cryptography)?;
        let mut config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        let config_with_certificate = match client_certificate {
            Some(certificate) => {
                Some(config_with_client_certificate(&config, certificate.load_pem_pair()?))
            }
            None => None,
        };
        Ok(Self {
            config_without_certificate: config,
            client_certificate: client_certificate.cloned(),
            config_with_certificate: Mutex::new(config_with_certificate),
        })
    }

    /// Returns the configuration for a new connection. It reads files.
    ///
    /// While certificate and key do not match, as between the writes of the two files, the last matching pair is used.
    fn current_tls_config(&self) -> Arc<ClientConfig> {
        let mut last_valid =
            self.config_with_certificate.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(certificate) =
            self.client_certificate.as_ref().filter(|it| it.is_read_from_files())
            && let Ok(loaded) = certificate.load_pem_pair()
            && !last_valid.as_ref().is_some_and(|(held, _)| held.has_same_pem(&loaded))
        {
            *last_valid =
                Some(config_with_client_certificate(&self.config_without_certificate, loaded));
        }
        match last_valid.as_ref() {
            Some((_, config)) => Arc::clone(config),
            None => Arc::clone(&self.config_without_certificate),
        }
    }

    /// Makes a handshake over a byte stream.
    pub(crate) async fn tls_handshake(
        self: &Arc<Self>,
        io: Box<dyn ByteStream>,
        name: ServerName<'static>,
    ) -> Result<TlsStream<Box<dyn ByteStream>>, Fault> {
        let this = Arc::clone(self);
        let config = if self
            .client_certificate
            .as_ref()
            .is_some_and(ClientCertificate::is_read_from_files)
        {
            tokio::task::spawn_blocking(move || this.current_tls_config())
                .await
                .map_err(|error| Fault::new(FaultKind::Other, error.to_string()))?
        } else {
            self.current_tls_config()
        };
        let made = TlsConnector::from(config).connect(name, io).await;
        made.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Fault::new(FaultKind::Eof, "EOF"),
            _ => error_to_fault(&error),
        })
    }
}

/// Makes a configuration that presents a client certificate. It has its own session cache: a session resumed across client
/// certificates would still have the old identity.
fn config_with_client_certificate(
    config: &ClientConfig,
    loaded: LoadedClientCertificate,
) -> (LoadedClientCertificate, Arc<ClientConfig>) {
    let mut config = config.clone();
    config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(Arc::clone(&loaded.key)));
    config.resumption = Resumption::default();
    (loaded, Arc::new(config))
}
