//! A client that uses little CPU: HTTP/1.1 over TLS, one request after the other. It reads answers and does
//! not parse their bodies.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use memchr::memmem;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
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
}

/// The status code and the body of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer<'b> {
    pub(crate) code: u16,
    pub(crate) body: &'b [u8],
}

/// The status code and the body length in the head of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    code: u16,
    body_bytes: usize,
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

    /// Opens a connection to the server.
    ///
    /// # Errors
    /// Nothing listens at the address, or its certificate is not trusted.
    pub(crate) async fn connect(&self) -> anyhow::Result<Connection> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await?;
        Ok(Connection { stream, buffer: Vec::with_capacity(BUFFER_BYTES) })
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
        let whole = head_bytes + head.body_bytes;
        self.buffer.reserve(whole.saturating_sub(self.buffer.len()));
        while self.buffer.len() < whole {
            self.read_some().await?;
        }
        let body = self.buffer.get(head_bytes..whole).unwrap_or_default();
        Ok(Answer { code: head.code, body })
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
        name.eq_ignore_ascii_case("content-length").then(|| value.parse().ok())?
    });
    match (code, body_bytes) {
        (Some(code), Some(body_bytes)) => Ok(Head { code, body_bytes }),
        _ => bail!("an answer without code or length: {head}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_code_and_length() {
        let head = parse_head(b"HTTP/1.1 201 Created\r\nA: b\r\nContent-Length: 12").unwrap();
        assert_eq!(head, Head { code: 201, body_bytes: 12 });
        assert!(parse_head(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked").is_err());
        assert!(parse_head(b"ok\r\ncontent-length: 1").is_err());
    }
}
