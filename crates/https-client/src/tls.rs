//! TLS to a server.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::sign::SingleCertAndKey;
use rustls_pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::BuildError;
use crate::failure::explain;
use crate::fault::{Fault, FaultKind};
use crate::identity::{Identity, Loaded, provider};
use crate::observe::Observe;
use crate::trust::Trust;
use crate::verify::Verifier;
use crate::wire::Io;

/// How to speak TLS to one server, with the client certificate that the files hold at the time.
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    identity: Option<Identity>,
    /// The client certificate that was last good, and the configuration that shows it.
    shown: Mutex<Option<(Loaded, Arc<ClientConfig>)>>,
}

impl Tls {
    pub(crate) fn new(
        trust: &Trust,
        identity: Option<&Identity>,
        observe: Arc<dyn Observe>,
    ) -> Result<Self, BuildError> {
        let provider = Arc::new(provider());
        let verifier = Verifier::new(trust, Arc::clone(&provider), observe);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| BuildError::Cryptography)?;
        let mut config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        let shown = match identity {
            Some(identity) => Some(show(&config, identity.load()?)),
            None => None,
        };
        Ok(Self { config, identity: identity.cloned(), shown: Mutex::new(shown) })
    }

    /// The configuration for a new connection. Reads files.
    ///
    /// While certificate and key do not fit, as between the writing of one and of the other, the
    /// last pair that did is shown.
    fn current(&self) -> Arc<ClientConfig> {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(identity) = self.identity.as_ref().filter(|identity| identity.is_in_files())
            && let Ok(loaded) = identity.load()
            && !shown.as_ref().is_some_and(|(held, _)| held.is_same(&loaded))
        {
            *shown = Some(show(&self.config, loaded));
        }
        shown.as_ref().map_or_else(|| Arc::clone(&self.config), |(_, config)| Arc::clone(config))
    }

    /// Makes a handshake over a connection.
    pub(crate) async fn handshake(
        self: &Arc<Self>,
        io: Box<dyn Io>,
        name: ServerName<'static>,
    ) -> Result<TlsStream<Box<dyn Io>>, Fault> {
        let this = Arc::clone(self);
        let config = if self.identity.as_ref().is_some_and(Identity::is_in_files) {
            tokio::task::spawn_blocking(move || this.current())
                .await
                .map_err(|error| Fault::new(FaultKind::Other, error.to_string()))?
        } else {
            self.current()
        };
        let made = TlsConnector::from(config).connect(name, io).await;
        made.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Fault::new(FaultKind::Eof, "EOF"),
            _ => explain(&error),
        })
    }
}

/// Sessions are not resumed across client certificates: a resumed one still says who we were.
fn show(config: &ClientConfig, loaded: Loaded) -> (Loaded, Arc<ClientConfig>) {
    let mut config = config.clone();
    config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(Arc::clone(&loaded.key)));
    config.resumption = Resumption::default();
    (loaded, Arc::new(config))
}
