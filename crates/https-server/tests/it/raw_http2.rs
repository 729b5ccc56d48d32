//! Frames of HTTP/2, as somebody writes them who does not care what a client may send.

use tokio::io::AsyncReadExt;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
/// The flags END_STREAM and END_HEADERS together.
pub(crate) const WHOLE: u8 = END_STREAM | END_HEADERS;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Reads until the server ends the connection, and returns the code of its GOAWAY if there was one.
pub(crate) async fn goaway(mut stream: impl tokio::io::AsyncRead + Unpin) -> Option<u32> {
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await.ok()?;
        if head[3] == GOAWAY {
            return Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
    }
    None
}
