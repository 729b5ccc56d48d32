//! A server for a test, and clients of it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use https_server::{
    Body, CertificateFiles, Connection, Limits, Listener, OperatorPkiFiles, PkiFiles, PkiOptions,
    ReloadingCertificate, ServerNames, Shutdown,
};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long a test waits for what should happen soon. Only a broken server makes it wait so long.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    pub(crate) pki: PkiFiles,
    pub(crate) certificate: Arc<ReloadingCertificate>,
    pub(crate) shutdown: Shutdown,
    pub(crate) task: JoinHandle<()>,
    troubles: Arc<Mutex<Vec<String>>>,
    _directory: TempDir,
}

pub(crate) fn pki(directory: &TempDir) -> PkiFiles {
    https_server::prepare_pki_files(&PkiOptions {
        directory: directory.path().to_owned(),
        server_names: ServerNames::new(None, []),
        operator_pki_files: OperatorPkiFiles::default(),
        current_time: SystemTime::now(),
    })
    .unwrap()
}

impl Host {
    pub(crate) fn start<S, F>(limits: Limits, service: S) -> Self
    where
        S: Fn(Request<Incoming>, Arc<Connection>) -> F + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let directory = tempfile::tempdir().unwrap();
        let pki = pki(&directory);
        let certificate =
            Arc::new(ReloadingCertificate::load(pki.serving_certificate.clone()).unwrap());
        let tls = Arc::new(
            https_server::tls_server_config(
                Arc::clone(&certificate),
                https_server::ClientCertificates::Optional,
            )
            .unwrap(),
        );
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), tls).unwrap();
        let address = listener.bound_address();
        let shutdown = Shutdown::new();
        let troubles = Arc::new(Mutex::new(Vec::new()));
        let report: https_server::ConnectionFaultReporter = {
            let troubles = Arc::clone(&troubles);
            Arc::new(move |trouble| troubles.lock().unwrap().push(trouble.to_string()))
        };
        let task =
            tokio::spawn(https_server::serve(listener, limits, shutdown.clone(), report, service));
        Self { address, pki, certificate, shutdown, task, troubles, _directory: directory }
    }

    /// Answers every request with its protocol, the number of certificates and the body.
    pub(crate) fn echo(limits: Limits) -> Self {
        Self::start(limits, |mut request, connection| async move {
            let certificates = *connection.get_or_compute_identity(|_| true, <[_]>::len);
            let head = format!("{:?} {certificates} ", connection.protocol);
            let (body, pace) = (request.body_mut(), https_server::MinimumBodyRate::default());
            match https_server::collect_body(body, 1 << 20, pace).await {
                Ok(bytes) => Response::new(Body::from([head.as_bytes(), &bytes].concat())),
                Err(error) => {
                    https_server::discard_body(request.into_body(), 8 << 20).await;
                    Response::new(Body::from(error.to_string()))
                }
            }
        })
    }

    pub(crate) fn troubles(&self) -> Vec<String> {
        self.troubles.lock().unwrap().clone()
    }

    pub(crate) async fn trouble_with(&self, text: &str) {
        let wait = async {
            while !self.troubles().iter().any(|trouble| trouble.contains(text)) {
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(SOON, wait).await.is_err() {
            panic!("no trouble with `{text}` among {:?}", self.troubles());
        }
    }

    pub(crate) async fn tls(&self, client: &Client) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        let connector = TlsConnector::from(Arc::new(client.config(&self.pki)));
        connector.connect(ServerName::try_from("127.0.0.1").unwrap(), stream).await
    }

    pub(crate) async fn http1(&self, client: &Client) -> http1::SendRequest<Full<Bytes>> {
        let stream = self.tls(&Client { alpn: "http/1.1", ..client.clone() }).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    pub(crate) async fn http2(&self, client: &Client) -> http2::SendRequest<Full<Bytes>> {
        let stream = self.tls(&Client { alpn: "h2", ..client.clone() }).await.unwrap();
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Client {
    pub(crate) alpn: &'static str,
    pub(crate) certificate: Option<CertificateFiles>,
    pub(crate) version: Option<&'static SupportedProtocolVersion>,
}

impl Client {
    fn config(&self, pki: &PkiFiles) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&pki.serving_ca_file).unwrap()).unwrap();
        let versions = match self.version {
            Some(version) => vec![version],
            None => rustls::ALL_VERSIONS.to_vec(),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match &self.certificate {
            None => builder.with_no_client_auth(),
            Some(files) => {
                let chain = vec![CertificateDer::from_pem_file(&files.certificate_path).unwrap()];
                let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
                let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
                // The builder refuses what does not fit; a client may show anything.
                let pair = Arc::new(CertifiedKey::new(chain, key));
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(pair)))
            }
        };
        if !self.alpn.is_empty() {
            config.alpn_protocols = vec![self.alpn.as_bytes().to_vec()];
        }
        config
    }
}

pub(crate) fn request(target: &str, body: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .method("POST")
        .uri(target)
        .header("host", "localhost")
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .unwrap()
}

pub(crate) async fn text<B>(response: Response<B>) -> String
where
    B: hyper::body::Body<Error: std::fmt::Debug>,
{
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(SOON, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} did not happen"),
    }
}
