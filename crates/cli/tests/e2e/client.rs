//! A small client over TLS that takes a server's death for an answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Builder;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::RootCertStore;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long any one answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The header by which a client names a request for the audit log.
const AUDIT_ID: &str = "audit-id";

/// The connection broke, so the result of the request is unknown.
#[derive(Debug)]
pub(crate) struct Broken;

/// A request over HTTP/2 has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The server has not begun to process it: it was not sent, or the server said so by GOAWAY or by
    /// REFUSED_STREAM. Sending it again is safe, and Go's transport does that by itself.
    Unprocessed,
    /// The server may have processed it.
    Unknown,
}

/// A client with the credentials of the administrator.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    tls: Arc<rustls::ClientConfig>,
}

/// One connection, used for one request after the other.
pub(crate) struct Connection {
    host: String,
    sender: SendRequest<Full<Bytes>>,
}

/// A connection in HTTP/2.
pub(crate) struct Http2Connection {
    sender: http2::SendRequest<Full<Bytes>>,
}

impl Http2Connection {
    /// Sends a request, and returns the code, the header `Retry-After` and the body of the answer.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<(u16, Option<String>, Bytes), NoAnswer> {
        self.sender.ready().await.map_err(|_| NoAnswer::Unprocessed)?;
        let answer = tokio::time::timeout(PATIENCE, self.sender.send_request(request)).await;
        let answer = answer.map_err(|_| NoAnswer::Unknown)?.map_err(|error| no_answer(&error))?;
        let code = answer.status().as_u16();
        let retry_after = answer.headers().get("retry-after");
        let retry_after = retry_after.and_then(|own| own.to_str().ok()).map(str::to_owned);
        let body = tokio::time::timeout(PATIENCE, answer.into_body().collect()).await;
        let body = body.map_err(|_| NoAnswer::Unknown)?.map_err(|_| NoAnswer::Unknown)?;
        Ok((code, retry_after, body.to_bytes()))
    }

    /// Sends a request, and resets its stream after a time unless the answer is there.
    pub(crate) async fn send_and_reset(
        &mut self,
        request: Request<Full<Bytes>>,
        after: Duration,
    ) -> Result<(), Broken> {
        self.sender.ready().await.map_err(|_| Broken)?;
        match tokio::time::timeout(after, self.sender.send_request(request)).await {
            Ok(Err(_)) => Err(Broken),
            Ok(Ok(_)) | Err(_) => Ok(()),
        }
    }
}

/// Whether the server has processed a request whose connection or stream ended.
fn no_answer(error: &hyper::Error) -> NoAnswer {
    if error.is_canceled() {
        return NoAnswer::Unprocessed;
    }
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(own) = source {
        let text = own.to_string();
        // The words of the library for NO_ERROR in a GOAWAY of the server, and for REFUSED_STREAM.
        if text.contains("not a result of an error") || text.contains("refused stream") {
            return NoAnswer::Unprocessed;
        }
        source = own.source();
    }
    NoAnswer::Unknown
}

/// A stream of events.
pub(crate) struct Events {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, ca: &str, certificate: &str, key: &str) -> Self {
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
        let chain = chain.map(|own| own.unwrap()).collect();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let tls = trusting(ca).with_client_auth_cert(chain, key).unwrap();
        Self { address, tls: Arc::new(tls) }
    }

    /// A client without a certificate.
    pub(crate) fn anonymous(address: SocketAddr, ca: &str) -> Self {
        Self { address, tls: Arc::new(trusting(ca).with_no_client_auth()) }
    }

    /// The same client at another address.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self { address, tls: Arc::clone(&self.tls) }
    }

    pub(crate) async fn connect(&self) -> Result<Connection, Broken> {
        let stream = TokioIo::new(self.open(Arc::clone(&self.tls)).await?);
        let (sender, connection) = http1::handshake(stream).await.map_err(|_| Broken)?;
        // It ends with the sender or with the server.
        tokio::spawn(connection);
        Ok(Connection { host: self.address.to_string(), sender })
    }

    async fn open(&self, tls: Arc<rustls::ClientConfig>) -> Result<TlsStream<TcpStream>, Broken> {
        let tcp = TcpStream::connect(self.address).await.map_err(|_| Broken)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        TlsConnector::from(tls).connect(name, tcp).await.map_err(|_| Broken)
    }

    /// Sends a request over a connection of its own, and closes that after a time, answer or not.
    pub(crate) async fn send_and_close(
        &self,
        request: Request<Full<Bytes>>,
        after: Duration,
    ) -> Result<(), Broken> {
        let stream = TokioIo::new(self.open(Arc::clone(&self.tls)).await?);
        let (mut sender, connection) = http1::handshake(stream).await.map_err(|_| Broken)?;
        let connection = tokio::spawn(connection);
        tokio::time::timeout(after, sender.send_request(request)).await.ok();
        connection.abort();
        Ok(())
    }

    /// A connection in HTTP/2, whose requests can be taken back.
    pub(crate) async fn connect_http2(&self) -> Result<Http2Connection, Broken> {
        let mut tls = rustls::ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TokioIo::new(self.open(Arc::new(tls)).await?);
        let handshake = http2::handshake(TokioExecutor::new(), stream).await;
        let (sender, connection) = handshake.map_err(|_| Broken)?;
        tokio::spawn(connection);
        Ok(Http2Connection { sender })
    }

    /// A request with a body, under an id by which the audit log knows it.
    pub(crate) fn request(
        &self,
        id: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Request<Full<Bytes>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.address))
            .header("host", self.address.to_string())
            .header("content-type", "application/json")
            .header(AUDIT_ID, id);
        request.body(bytes(body)).unwrap()
    }

    /// One request on a connection of its own, to a server that is expected to answer.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let mut connection = self.connect().await.unwrap();
        connection.send(method, path, body).await.unwrap()
    }

    /// Posts an object and returns the code and the trace of the hooks.
    pub(crate) async fn post_traced(&self, path: &str, body: &Value) -> (u16, Value) {
        const TRACE: &str = "portcullis-admission-trace";
        let mut connection = self.connect().await.unwrap();
        let request = connection.request(Method::POST, path).header(TRACE, "true");
        let body = Full::new(Bytes::from(body.to_string()));
        let answer = connection.sender.send_request(request.body(body).unwrap()).await.unwrap();
        let trace = answer.headers().get(TRACE).map(|own| own.to_str().unwrap().to_owned());
        let trace = trace.map(|own| serde_json::from_str(&own).unwrap()).unwrap_or_default();
        (answer.status().as_u16(), trace)
    }

    /// Reads a path whose answer is not JSON.
    pub(crate) async fn text(&self, path: &str) -> String {
        let (code, text) = self.get_text(path).await;
        assert_eq!(code, 200, "{path}");
        text
    }

    /// The same, with the code.
    pub(crate) async fn get_text(&self, path: &str) -> (u16, String) {
        let mut connection = self.connect().await.unwrap();
        let (code, body) = connection.begin(Method::GET, path, &Value::Null).await.unwrap();
        let bytes = body.collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Whether the server says that it is ready; a server without an answer is not.
    pub(crate) async fn is_ready(&self) -> bool {
        let Ok(mut connection) = self.connect().await else { return false };
        let answer = connection.begin(Method::GET, "/readyz", &Value::Null).await;
        matches!(answer, Ok((200, _)))
    }

    /// Begins a watch of a path.
    pub(crate) async fn watch(&self, path: &str) -> Result<Events, Broken> {
        let mut connection = self.connect().await?;
        let (code, body) = connection.begin(Method::GET, path, &Value::Null).await?;
        assert_eq!(code, 200, "{path}");
        Ok(Events { body, buffer: Vec::new() })
    }
}

impl Connection {
    /// Sends a request; `Null` is no body. The answer has a code and JSON.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Value), Broken> {
        let request = self.request(method, path).body(bytes(body)).unwrap();
        self.finish(request).await
    }

    /// The same, under an id by which the audit log knows the request.
    pub(crate) async fn send_as(
        &mut self,
        id: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Value), Broken> {
        let request = self.request(method, path).header(AUDIT_ID, id);
        self.finish(request.body(bytes(body)).unwrap()).await
    }

    /// Sends a text as body and returns the code. It reads and ignores the body of the answer.
    pub(crate) async fn send_text(
        &mut self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<u16, Broken> {
        let request = self.request(method, path).body(Full::new(Bytes::from(body))).unwrap();
        let (code, body) = self.start(request).await?;
        let read = tokio::time::timeout(PATIENCE, body.collect()).await;
        read.expect("an answer in time").map_err(|_| Broken)?;
        Ok(code)
    }

    /// The server answers some faults of its own with plain text, as kube-apiserver does: such a body is a
    /// JSON string here.
    async fn finish(&mut self, request: Request<Full<Bytes>>) -> Result<(u16, Value), Broken> {
        let (code, body) = self.start(request).await?;
        let bytes =
            tokio::time::timeout(PATIENCE, body.collect()).await.expect("an answer in time");
        let bytes = bytes.map_err(|_| Broken)?.to_bytes();
        let body = match code {
            500.. => serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
            _ => serde_json::from_slice(&bytes).expect("JSON"),
        };
        Ok((code, body))
    }

    fn request(&self, method: Method, path: &str) -> Builder {
        let request = Request::builder().method(method).uri(path);
        request.header("host", &self.host).header("content-type", "application/json")
    }

    async fn begin(
        &mut self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Incoming), Broken> {
        let request = self.request(method, path).body(bytes(body)).unwrap();
        self.start(request).await
    }

    async fn start(&mut self, request: Request<Full<Bytes>>) -> Result<(u16, Incoming), Broken> {
        // The end of the last answer may not have come to the connection yet.
        self.sender.ready().await.map_err(|_| Broken)?;
        let answer = tokio::time::timeout(PATIENCE, self.sender.send_request(request)).await;
        let answer = answer.expect("an answer in time").map_err(|_| Broken)?;
        Ok((answer.status().as_u16(), answer.into_body()))
    }
}

/// The beginning of a configuration that trusts these authorities.
fn trusting(
    ca: &str,
) -> rustls::ConfigBuilder<rustls::ClientConfig, rustls::client::WantsClientCert> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        roots.add(authority.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots)
}

/// A body; `Null` is none.
fn bytes(body: &Value) -> Full<Bytes> {
    Full::new(match body {
        Value::Null => Bytes::new(),
        body => Bytes::from(body.to_string()),
    })
}

impl Events {
    /// The next event; an error when the stream ends, however it does.
    pub(crate) async fn next(&mut self) -> Result<Value, Broken> {
        loop {
            if let Some(at) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=at).collect();
                return Ok(serde_json::from_slice(&line).expect("an event"));
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            let frame = frame.expect("an event in time").ok_or(Broken)?.map_err(|_| Broken)?;
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}
