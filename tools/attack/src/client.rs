//! Clients over TLS: whole exchanges over HTTP/1.1, streams over HTTP/2, and bare connections for those who break
//! the protocol.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const JSON: &str = "application/json";

/// The address of the server and the TLS settings for it.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    tls: Arc<ClientConfig>,
    tls_http2: Arc<ClientConfig>,
}

/// An HTTP/1.1 connection of one user.
pub(crate) struct Session {
    sender: http1::SendRequest<Full<Bytes>>,
    token: Option<String>,
}

/// An HTTP/2 connection of one user. Clones share the connection.
#[derive(Clone)]
pub(crate) struct StreamSession {
    sender: http2::SendRequest<Full<Bytes>>,
    token: Option<String>,
}

/// The status code and the body of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as JSON; null if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Client {
    /// A client that trusts one CA.
    ///
    /// # Errors
    /// The file contains no certificate.
    pub(crate) fn new(address: SocketAddr, authority: &Path) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority)?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tls_http2 = tls.clone();
        tls_http2.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { address, tls: Arc::new(tls), tls_http2: Arc::new(tls_http2) })
    }

    /// Opens a TCP connection without TLS.
    ///
    /// # Errors
    /// The server does not accept it.
    pub(crate) async fn connect_tcp(&self) -> anyhow::Result<TcpStream> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Opens a TLS connection for HTTP/1.1 or HTTP/2.
    ///
    /// # Errors
    /// The server does not accept it.
    pub(crate) async fn connect_tls(&self, is_http2: bool) -> anyhow::Result<TlsStream<TcpStream>> {
        let tls = if is_http2 { &self.tls_http2 } else { &self.tls };
        let name = ServerName::IpAddress(self.address.ip().into());
        let stream = self.connect_tcp().await?;
        Ok(TlsConnector::from(Arc::clone(tls)).connect(name, stream).await?)
    }

    /// Opens an HTTP/1.1 connection of the user with a token; `None` is the anonymous user.
    ///
    /// # Errors
    /// The server does not accept it.
    pub(crate) async fn session(&self, token: Option<&str>) -> anyhow::Result<Session> {
        let stream = TokioIo::new(self.connect_tls(false).await?);
        let (sender, connection) = http1::handshake(stream).await?;
        tokio::spawn(connection);
        Ok(Session { sender, token: token.map(str::to_owned) })
    }

    /// Opens an HTTP/2 connection whose streams may receive so many bytes before they are read.
    ///
    /// # Errors
    /// The server does not accept it.
    pub(crate) async fn streams(
        &self,
        token: Option<&str>,
        window_bytes: u32,
    ) -> anyhow::Result<StreamSession> {
        let stream = TokioIo::new(self.connect_tls(true).await?);
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window_bytes)
            .handshake(stream)
            .await?;
        tokio::spawn(connection);
        Ok(StreamSession { sender, token: token.map(str::to_owned) })
    }
}

fn request(
    token: Option<&str>,
    (method, path): (Method, &str),
    content_type: &str,
    body: Bytes,
    authority: &str,
) -> anyhow::Result<Request<Full<Bytes>>> {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("{authority}{path}"))
        .header("host", "127.0.0.1")
        .header("accept", JSON);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    if !body.is_empty() {
        request = request.header("content-type", content_type);
    }
    Ok(request.body(Full::new(body))?)
}

async fn collect(response: Response<Incoming>) -> anyhow::Result<Answer> {
    let code = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok(Answer { code, body })
}

impl Session {
    /// Sends a request with a body of any type and reads the whole answer.
    ///
    /// # Errors
    /// The connection breaks.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> anyhow::Result<Answer> {
        let request = request(self.token.as_deref(), (method, path), content_type, body, "")?;
        self.sender.ready().await?;
        collect(self.sender.send_request(request).await?).await
    }

    /// Sends a request without a body.
    ///
    /// # Errors
    /// The connection breaks.
    pub(crate) async fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.send(Method::GET, path, JSON, Bytes::new()).await
    }

    /// Sends a JSON body.
    ///
    /// # Errors
    /// The connection breaks.
    pub(crate) async fn json(
        &mut self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Answer> {
        self.send(method, path, JSON, body.to_string().into()).await
    }

    /// Sends a JSON body that the server must accept.
    ///
    /// # Errors
    /// The server refuses it.
    pub(crate) async fn create(&mut self, path: &str, body: &Value) -> anyhow::Result<()> {
        let answer = self.json(Method::POST, path, body).await?;
        let text = || String::from_utf8_lossy(&answer.body).chars().take(300).collect::<String>();
        anyhow::ensure!(answer.code == 201, "POST {path}: {} {}", answer.code, text());
        Ok(())
    }
}

impl StreamSession {
    /// Sends a request on a new stream and waits for the head of the answer.
    ///
    /// # Errors
    /// The connection breaks, or the stream is reset.
    pub(crate) async fn open(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<Response<Incoming>> {
        let target = (method, path);
        let token = self.token.as_deref();
        let request = request(token, target, JSON, body, "https://127.0.0.1")?;
        self.sender.ready().await?;
        self.sender.send_request(request).await.context("the stream was reset")
    }

    /// Sends a request on a new stream and reads the whole answer.
    ///
    /// # Errors
    /// The connection breaks, or the stream is reset.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<Answer> {
        collect(self.open(method, path, body).await?).await
    }
}
