//! A client over TLS that shows everything of an answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::RootCertStore;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::ServerName;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long any one answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client with one identity.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    tls: Arc<rustls::ClientConfig>,
    token: Option<String>,
}

/// The response of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

/// A connection that stays.
pub(crate) struct Session {
    sender: http1::SendRequest<Full<Bytes>>,
    client: Client,
}

/// An HTTP/2 connection for many requests at a time.
#[derive(Clone)]
pub(crate) struct Http2Session {
    sender: http2::SendRequest<Full<Bytes>>,
    client: Client,
}

impl Http2Session {
    /// Sends a GET and waits for the head of the answer.
    pub(crate) async fn begin(&mut self, path: &str) -> (http::response::Parts, Incoming) {
        let mut request = Request::builder().uri(format!("https://{}{path}", self.client.address));
        if let Some(token) = &self.client.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::new())).expect("a request");
        let answer = tokio::time::timeout(PATIENCE, self.sender.send_request(request)).await;
        answer.expect("an answer in time").expect("an answer").into_parts()
    }
}

/// A stream of events.
pub(crate) struct Events {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Client {
    /// Creates a client without credentials.
    pub(crate) fn anonymous(address: SocketAddr, ca_pem: &str) -> Self {
        Self { address, tls: config(ca_pem, None), token: None }
    }

    /// The same client with a bearer token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// One with a client certificate.
    pub(crate) fn with_certificate(
        address: SocketAddr,
        ca_pem: &str,
        cert_pem: &str,
        key_pem: &str,
    ) -> Self {
        Self { address, tls: config(ca_pem, Some((cert_pem, key_pem))), token: None }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, &[], body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, &[], body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], "").await
    }

    pub(crate) async fn patch(&self, path: &str, kind: &str, body: &Value) -> Answer {
        let content_type = format!("application/{kind}+json");
        let headers = [("content-type", content_type.as_str())];
        self.send(Method::PATCH, path, &headers, body.to_string()).await
    }

    /// Sends a request as it is given.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let (parts, body) = self.begin(method, path, headers, body).await;
        whole(parts, body).await
    }

    /// Sends a request over HTTP/2, with header values as they are given: its library trims none.
    pub(crate) async fn send_http2(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &[u8])],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut tls = rustls::ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let tcp = TcpStream::connect(self.address).await.expect("the server listens");
        let name = ServerName::IpAddress(self.address.ip().into());
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, tcp).await.expect("TLS");
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
        tokio::spawn(connection);
        let mut request =
            Request::builder().method(method).uri(format!("https://{}{path}", self.address));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a request");
        let answer = tokio::time::timeout(PATIENCE, sender.send_request(request)).await;
        let (parts, body) = answer.expect("an answer in time").expect("an answer").into_parts();
        whole(parts, body).await
    }

    /// Begins a watch and returns its events.
    pub(crate) async fn watch(&self, path: &str) -> Events {
        self.watch_with(path, &[]).await
    }

    /// Begins a watch with headers.
    pub(crate) async fn watch_with(&self, path: &str, headers: &[(&str, &str)]) -> Events {
        let (parts, body) = self.begin(Method::GET, path, headers, "").await;
        assert_eq!(parts.status.as_u16(), 200, "{path}");
        Events { body, buffer: Vec::new() }
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn begin(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> (http::response::Parts, Incoming) {
        self.session().await.begin(method, path, headers, body).await
    }

    /// Opens a connection without sending a request, for one of these protocols.
    pub(crate) async fn connect(&self, protocol: &str) -> TlsStream<TcpStream> {
        let tcp = TcpStream::connect(self.address).await.expect("the server listens");
        let name = ServerName::IpAddress(self.address.ip().into());
        let mut tls = Arc::clone(&self.tls);
        if !protocol.is_empty() {
            Arc::make_mut(&mut tls).alpn_protocols = vec![protocol.as_bytes().to_vec()];
        }
        let connector = TlsConnector::from(tls);
        connector.connect(name, tcp).await.expect("TLS comes about")
    }

    /// An HTTP/2 connection whose streams take this many bytes before somebody reads them.
    pub(crate) async fn http2_session(&self, stream_window: u32) -> Http2Session {
        let stream = self.connect("h2").await;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(stream_window).initial_connection_window_size(64 << 20);
        let (sender, connection) =
            builder.handshake(TokioIo::new(stream)).await.expect("HTTP/2 comes about");
        tokio::spawn(connection);
        Http2Session { sender, client: self.clone() }
    }

    /// A connection for many requests, one after the other.
    pub(crate) async fn session(&self) -> Session {
        let stream = self.connect("").await;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.expect("HTTP comes about");
        tokio::spawn(connection);
        Session { sender, client: self.clone() }
    }
}

/// A request that the server has authorized, and whose body is still to be sent.
pub(crate) struct AuthorizedHead {
    stream: TlsStream<TcpStream>,
    body: String,
}

impl Client {
    /// Sends the head of a request that announces a body, and returns the connection.
    pub(crate) async fn announce_body(
        &self,
        method: Method,
        path: &str,
        n_bytes: usize,
    ) -> TlsStream<TcpStream> {
        let token = self.token.as_deref().unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {n_bytes}\r\n\r\n",
            self.address,
        );
        let mut stream = self.connect("http/1.1").await;
        stream.write_all(head.as_bytes()).await.expect("a connection");
        stream
    }

    /// Sends the head of a request and returns when the server asks for the body. The server reads no body
    /// before it has authorized the request, so the snapshot by which it is authorized is fixed then.
    pub(crate) async fn send_head(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> AuthorizedHead {
        let (body, token) = (body.to_string(), self.token.as_deref().unwrap_or_default());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\
             connection: close\r\n\r\n",
            self.address,
            body.len()
        );
        let mut stream = self.connect("http/1.1").await;
        stream.write_all(head.as_bytes()).await.expect("a connection");
        let mut interim = Vec::new();
        while !interim.ends_with(b"\r\n\r\n") {
            let byte = tokio::time::timeout(PATIENCE, stream.read_u8()).await;
            interim.push(byte.expect("an answer in time").expect("an answer"));
        }
        let interim = String::from_utf8_lossy(&interim);
        assert!(interim.starts_with("HTTP/1.1 100 "), "{method} {path}: {interim}");
        AuthorizedHead { stream, body }
    }
}

impl AuthorizedHead {
    /// Sends the body and reads the answer, without its headers.
    pub(crate) async fn send_body(self) -> Answer {
        let Self { mut stream, body } = self;
        stream.write_all(body.as_bytes()).await.expect("a connection");
        let mut text = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await;
        read.expect("an answer in time").expect("a whole answer");
        let end = text.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head") + 4;
        let head = String::from_utf8_lossy(&text[..end]).into_owned();
        assert!(!head.contains("chunked"), "{head}");
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
        let bytes = Bytes::copy_from_slice(&text[end..]);
        Answer { code, headers: HeaderMap::new(), bytes }
    }
}

impl Session {
    /// Sends a request as it is given.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Answer {
        self.send_with(method, path, &[], body).await
    }

    /// The same with headers.
    pub(crate) async fn send_with(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let (parts, body) = self.begin(method, path, headers, body).await;
        whole(parts, body).await
    }

    /// Sends a request with headers. Of a stream only the first frame is read, and the connection
    /// cannot be used again then, which the second value says.
    pub(crate) async fn first_frame(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> (Answer, bool) {
        let (parts, mut body) = self.begin(method, path, headers, body).await;
        if parts.headers.contains_key("content-length") {
            return (whole(parts, body).await, true);
        }
        let frame = tokio::time::timeout(PATIENCE, body.frame()).await.expect("a frame in time");
        let bytes = frame.and_then(|frame| frame.ok()?.into_data().ok()).unwrap_or_default();
        (Answer { code: parts.status.as_u16(), headers: parts.headers, bytes }, false)
    }

    async fn begin(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> (http::response::Parts, Incoming) {
        if self.sender.ready().await.is_err() {
            // The server has ended the connection after its last answer.
            *self = self.client.session().await;
        }
        let Self { sender, client } = self;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", client.address.to_string())
            .header("user-agent", "t/1");
        if let Some(token) = &client.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a request");
        let answer = tokio::time::timeout(PATIENCE, sender.send_request(request)).await;
        answer.expect("an answer in time").expect("an answer").into_parts()
    }
}

/// Reads the whole body of an answer.
pub(crate) async fn whole(parts: http::response::Parts, body: Incoming) -> Answer {
    let bytes = tokio::time::timeout(PATIENCE, body.collect()).await.expect("an answer in time");
    Answer {
        code: parts.status.as_u16(),
        headers: parts.headers,
        bytes: bytes.expect("a whole body").to_bytes(),
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The JSON of an answer that must have this code.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.text());
        self.json()
    }
}

impl Events {
    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(at) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=at).collect();
                return Some(serde_json::from_slice(&line).expect("an event"));
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            let frame = frame.expect("an event in time")?;
            if let Ok(data) = frame.expect("a whole frame").into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}

fn config(ca_pem: &str, identity: Option<(&str, &str)>) -> Arc<rustls::ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        roots.add(certificate.expect("PEM")).expect("a certificate");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            let chain =
                CertificateDer::pem_slice_iter(cert.as_bytes()).map(|own| own.expect("PEM"));
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
            let key = rustls::crypto::ring::sign::any_supported_type(&key).expect("a key");
            // The builder refuses certificates that it does not like; a client may have any.
            let pair = Arc::new(CertifiedKey::new(chain.collect(), key));
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(pair)))
        }
    };
    Arc::new(config)
}
