//! A client that uses little CPU: HTTP/1.1 over TLS, one request after the other. It reads answers and does
//! not parse their bodies.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use memchr::memmem;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The size of the buffer, which holds the head of an answer and most bodies.
const BUFFER_BYTES: usize = 64 << 10;
/// The longest head of an answer that is accepted.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// The address of a server and the TLS settings for it.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
}

/// A connection that is reused for many requests.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
    /// The body of an answer that comes in chunks, put together.
    joined: Vec<u8>,
}

/// The status code and the body of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer<'b> {
    pub(crate) code: u16,
    pub(crate) body: &'b [u8],
}

impl Answer<'_> {
    /// Whether the body contains these bytes.
    pub(crate) fn contains(&self, part: &[u8]) -> bool {
        memmem::find(self.body, part).is_some()
    }

    /// Whether the body ends with these bytes, apart from white space.
    pub(crate) fn ends_with(&self, end: &[u8]) -> bool {
        self.body.trim_ascii_end().ends_with(end)
    }
}

/// The status code and the body length in the head of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    code: u16,
    /// `None` if the body comes in chunks.
    body_bytes: Option<usize>,
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
        Ok(Self { address, tls: Arc::new(tls) })
    }

    /// A client that accepts any certificate. It is for a peer on this machine whose CA the user did not name.
    ///
    /// # Errors
    /// The TLS library refuses its own defaults.
    pub(crate) fn dangerous_trust_any(address: SocketAddr) -> anyhow::Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trust = AcceptAnyServerCertificate(provider.signature_verification_algorithms);
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(trust))
            .with_no_client_auth();
        Ok(Self { address, tls: Arc::new(tls) })
    }

    /// Opens a connection to the server.
    ///
    /// # Errors
    /// Nothing listens at the address, or its certificate is not trusted.
    pub(crate) async fn connect(&self) -> anyhow::Result<Connection> {
        let stream = self.connect_tls(Arc::clone(&self.tls)).await?;
        Ok(Connection { stream, buffer: Vec::with_capacity(BUFFER_BYTES), joined: Vec::new() })
    }

    /// Opens a TLS connection on which the server speaks HTTP/2.
    ///
    /// # Errors
    /// Nothing listens at the address, or its certificate is not trusted.
    pub(crate) async fn connect_http2(&self) -> anyhow::Result<TlsStream<TcpStream>> {
        let mut tls = ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![b"h2".to_vec()];
        self.connect_tls(Arc::new(tls)).await
    }

    async fn connect_tls(&self, tls: Arc<ClientConfig>) -> anyhow::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        Ok(TlsConnector::from(tls).connect(name, stream).await?)
    }
}

impl Connection {
    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// The connection breaks, or the answer does not announce its length.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        self.buffer.clear();
        let (head, head_bytes) = loop {
            self.read_some().await?;
            if let Some(at) = memmem::find(&self.buffer, b"\r\n\r\n") {
                break (parse_head(self.buffer.get(..at).unwrap_or_default())?, at + 4);
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                bail!("the head of the answer does not end");
            }
        };
        let Some(body_bytes) = head.body_bytes else {
            self.read_chunks(head_bytes).await?;
            return Ok(Answer { code: head.code, body: &self.joined });
        };
        let whole = head_bytes + body_bytes;
        self.buffer.reserve(whole.saturating_sub(self.buffer.len()));
        while self.buffer.len() < whole {
            self.read_some().await?;
        }
        let body = self.buffer.get(head_bytes..whole).unwrap_or_default();
        Ok(Answer { code: head.code, body })
    }

    /// Reads the chunks of a body that begin at a place of the buffer, and joins them.
    async fn read_chunks(&mut self, mut at: usize) -> anyhow::Result<()> {
        self.joined.clear();
        loop {
            let rest = self.buffer.get(at..).unwrap_or_default();
            let Some(line_bytes) = memmem::find(rest, b"\r\n") else {
                self.read_some().await?;
                continue;
            };
            let line = std::str::from_utf8(rest.get(..line_bytes).unwrap_or_default())?;
            let chunk_bytes = usize::from_str_radix(line, 16).context("a chunk without a size")?;
            let begin = at + line_bytes + 2;
            let end = begin + chunk_bytes + 2;
            while self.buffer.len() < end {
                self.read_some().await?;
            }
            if chunk_bytes == 0 {
                return Ok(());
            }
            self.joined.extend_from_slice(self.buffer.get(begin..end - 2).unwrap_or_default());
            // What has been read is dropped, so that the buffer stays small.
            self.buffer.drain(..end);
            at = 0;
        }
    }

    async fn read_some(&mut self) -> anyhow::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => bail!("the server closed the connection"),
            _ => Ok(()),
        }
    }
}

fn parse_head(head: &[u8]) -> anyhow::Result<Head> {
    let head = std::str::from_utf8(head).context("the head of the answer is no text")?;
    let mut lines = head.split("\r\n");
    let code = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
    let body_bytes = lines.find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let (name, value) = (name.to_ascii_lowercase(), value.to_ascii_lowercase());
        match (name.as_str(), value.as_str()) {
            ("content-length", length) => length.parse().ok().map(Some),
            ("transfer-encoding", "chunked") => Some(None),
            _ => None,
        }
    });
    match (code, body_bytes) {
        (Some(code), Some(body_bytes)) => Ok(Head { code, body_bytes }),
        _ => bail!("an answer without code or length: {head}"),
    }
}

/// Accepts every certificate of a server, and still verifies that the server has its key.
#[derive(Debug)]
struct AcceptAnyServerCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AcceptAnyServerCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_code_and_length() {
        let head = parse_head(b"HTTP/1.1 201 Created\r\nA: b\r\nContent-Length: 12").unwrap();
        assert_eq!(head, Head { code: 201, body_bytes: Some(12) });
        let head = parse_head(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked").unwrap();
        assert_eq!(head, Head { code: 200, body_bytes: None });
        assert!(parse_head(b"HTTP/1.1 200 OK\r\nA: b").is_err());
        assert!(parse_head(b"ok\r\ncontent-length: 1").is_err());
    }
}
