//! Frames of HTTP/2, byte by byte, for clients that break the rules.

use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::client::Client;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// Encodes one frame with its header.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut bytes = Vec::with_capacity(9 + payload.len());
    bytes.extend_from_slice(length.get(1..).unwrap_or_default());
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A frame that ends a stream with `CANCEL`.
pub(crate) fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

/// One header field as HPACK writes it without an index and without Huffman's code.
pub(crate) fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        push_length(&mut bytes, text.len());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// An integer with a prefix of seven bits.
fn push_length(bytes: &mut Vec<u8>, length: usize) {
    if length < 127 {
        bytes.push(length as u8);
        return;
    }
    bytes.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        bytes.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    bytes.push(rest as u8);
}

/// The header block of a GET.
pub(crate) fn get(path: &str, token: Option<&str>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in
        [(":method", "GET"), (":scheme", "https"), (":authority", "127.0.0.1"), (":path", path)]
    {
        block.extend(field(name, value));
    }
    if let Some(token) = token {
        block.extend(field("authorization", &format!("Bearer {token}")));
    }
    block
}

/// A connection that sends any bytes and throws away what it receives.
pub(crate) struct RawConnection {
    writer: tokio::io::WriteHalf<TlsStream<TcpStream>>,
    reader: tokio::task::JoinHandle<()>,
}

impl RawConnection {
    /// Opens a connection and sends the preface with settings.
    ///
    /// # Errors
    /// The server does not accept it.
    pub(crate) async fn open(client: &Client, settings: &[(u16, u32)]) -> anyhow::Result<Self> {
        let (mut reader, mut writer) = tokio::io::split(client.connect_tls(true).await?);
        let reader = tokio::spawn(async move {
            let mut buffer = vec![0; 16 << 10];
            while reader.read(&mut buffer).await.is_ok_and(|n_bytes| n_bytes > 0) {}
        });
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend_from_slice(&name.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        writer.write_all(PREFACE).await?;
        writer.write_all(&frame(SETTINGS, 0, 0, &payload)).await?;
        writer.flush().await?;
        Ok(Self { writer, reader })
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The server has closed the connection.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.writer.write_all(bytes).await?;
        self.writer.flush().await?;
        Ok(())
    }

    /// Waits until the server closes the connection, or until a time.
    pub(crate) async fn wait_for_end(&mut self, until: Instant) {
        let _ = tokio::time::timeout_at(until.into(), &mut self.reader).await;
    }
}

impl Drop for RawConnection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_fields_have_the_bytes_of_the_standard() {
        assert_eq!(frame(SETTINGS, 0, 0, &[]), [0, 0, 0, 4, 0, 0, 0, 0, 0]);
        assert_eq!(reset(3), [0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, 8]);
        assert_eq!(field("a", "bc"), [0, 1, b'a', 2, b'b', b'c']);
        let long = field("a", &"x".repeat(1337));
        // The example of RFC 7541, section 5.1, with a prefix of seven bits.
        assert_eq!(long.get(3..6), Some(&[127, 186, 9][..]));
    }
}
