//! The service that both sides call, as a separate process.
//!
//! It serves HTTP/1.1 over TLS and verifies client certificates. It answers each line on its standard input
//! with the number of calls so far.

use std::convert::Infallible;
use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::webhook::environment::{AUTHORITY, SERVER_CERTIFICATE, SERVER_KEY, SLOW_PATH};
use crate::webhook::review_request::ALLOWED;

/// The argument that starts the service.
pub(crate) const NAME: &str = "webhook-service";

/// The delay of answers on the slow path: long enough that all equal requests arrive before the first
/// answer.
const SLOW_ANSWER_DELAY: Duration = Duration::from_millis(200);

const YES: &[u8] = br#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true,"reason":"a rule of the benchmark allows it"}}"#;
const NO: &[u8] = br#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":false,"reason":"no rule of the benchmark allows it"}}"#;

/// Serves until its standard input ends.
pub(crate) fn run(folder: &Path) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let n_calls = Arc::new(AtomicU64::new(0));
    let acceptor = acceptor(folder)?;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    let port = listener.local_addr()?.port();
    runtime.spawn(listen(listener, acceptor, Arc::clone(&n_calls)));
    let mut output = std::io::stdout().lock();
    writeln!(output, "{port}")?;
    output.flush()?;
    for line in std::io::stdin().lock().lines() {
        line?;
        writeln!(output, "{}", n_calls.load(Ordering::SeqCst))?;
        output.flush()?;
    }
    Ok(())
}

fn acceptor(folder: &Path) -> anyhow::Result<TlsAcceptor> {
    let read = |name: &str| fs::read(folder.join(name)).with_context(|| format!("no {name}"));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&read(AUTHORITY)?)?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let certificate = CertificateDer::from_pem_slice(&read(SERVER_CERTIFICATE)?)?;
    let key = PrivateKeyDer::from_pem_slice(&read(SERVER_KEY)?)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier.build()?)
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn listen(listener: TcpListener, acceptor: TlsAcceptor, n_calls: Arc<AtomicU64>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, n_calls) = (acceptor.clone(), Arc::clone(&n_calls));
        tokio::spawn(async move {
            // The client reports a failed call.
            let _ = serve(stream, &acceptor, n_calls).await;
        });
    }
}

async fn serve(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    n_calls: Arc<AtomicU64>,
) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let stream = TokioIo::new(acceptor.accept(stream).await?);
    let service = service_fn(move |request| {
        let n_calls = Arc::clone(&n_calls);
        async move { Ok::<_, Infallible>(answer(request, &n_calls).await) }
    });
    // A client may close its connections at any time.
    let _ = http1::Builder::new().serve_connection(stream, service).await;
    Ok(())
}

async fn answer(request: Request<Incoming>, n_calls: &AtomicU64) -> Response<Full<Bytes>> {
    n_calls.fetch_add(1, Ordering::SeqCst);
    let is_slow = request.uri().path() == SLOW_PATH;
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    if is_slow {
        tokio::time::sleep(SLOW_ANSWER_DELAY).await;
    }
    let is_allowed = body.windows(ALLOWED.len()).any(|part| part == ALLOWED.as_bytes());
    let answer = if is_allowed { YES } else { NO };
    let mut response = Response::new(Full::new(Bytes::from_static(answer)));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
