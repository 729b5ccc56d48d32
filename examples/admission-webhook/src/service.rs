//! Serves the decisions over HTTPS.

use std::convert::Infallible;
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::decide;
use crate::review;

/// The longest review that is read: a review contains an object at most twice, and an object has at most 3
/// MiB.
const BODY_BYTES_MAX: usize = 8 << 20;

/// The address, the certificate and the permitted registry of the service.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) registry: String,
}

impl Service {
    /// Serves until the program is stopped.
    pub(crate) async fn run(self) -> Result<(), Box<dyn Error>> {
        let chain = CertificateDer::pem_file_iter(&self.certificate)?.collect::<Result<_, _>>()?;
        let key = PrivateKeyDer::from_pem_file(&self.key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(self.address).await?;
        say(&format!("serving https://{}", listener.local_addr()?));
        let registry: Arc<str> = self.registry.into();
        loop {
            let (stream, _) = listener.accept().await?;
            let (acceptor, registry) = (acceptor.clone(), Arc::clone(&registry));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(move |request| answer(request, Arc::clone(&registry)));
                // A client may disconnect at any time.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    registry: Arc<str>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await;
    let request = body.ok().and_then(|body| review::read(&body.to_bytes()));
    let Some(request) = request else {
        return Ok(refused(StatusCode::BAD_REQUEST, "want a review of admission.k8s.io\n"));
    };
    let answer = match path.as_str() {
        "/mutate" => decide::mutate(&request.object),
        "/validate" => decide::validate(&request.object, &registry),
        _ => return Ok(refused(StatusCode::NOT_FOUND, "try /mutate or /validate\n")),
    };
    say(&review::line(&path, &request, &answer));
    let body = review::write(&request, &answer).to_string();
    Ok(Response::new(Full::new(body.into())))
}

fn refused(status: StatusCode, why: &'static str) -> Response<Full<Bytes>> {
    let mut refused = Response::new(Full::new(Bytes::from_static(why.as_bytes())));
    *refused.status_mut() = status;
    refused
}

/// Prints a line at once, because scripts count lines.
fn say(line: &str) {
    // The service continues if nobody reads its output.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
