//! Responses, and the reading of their bodies.

use std::io::{self, Write};

use bytes::{Bytes, BytesMut};
use flate2::write::MultiGzDecoder;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

/// A response of any status. Redirects are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status code.
    pub status: u16,
    /// The headers of the response.
    pub headers: HeaderMap,
    /// The whole body, decompressed.
    pub body: Bytes,
}

/// Counts the bytes of a body while it is read, for callers that limit the memory of several exchanges together.
pub trait ReplyByteCounter: Send {
    /// Counts the body with this many bytes from now on. Returns whether there is room for them; without room the exchange
    /// fails with [`FaultKind::Local`](crate::FaultKind::Local), because the peer is not at fault.
    fn reserve_body_bytes(&mut self, n_bytes: usize) -> bool;
}

/// A counter without a limit: it has room for every body.
pub(crate) struct NoReplyByteLimit;

impl ReplyByteCounter for NoReplyByteLimit {
    fn reserve_body_bytes(&mut self, _: usize) -> bool {
        true
    }
}

/// The reason why a body cannot be read.
pub(crate) enum ReadBodyError {
    TooLarge,
    NoRoom,
    Compression,
    Broken(hyper::Error),
}

/// Reads a body. If compression was requested and used, the body is decompressed and the headers about it are removed. The
/// limit applies to the decompressed body.
pub(crate) async fn read_body(
    headers: &mut HeaderMap,
    body: Incoming,
    accepts_gzip: bool,
    bytes_max: usize,
    counter: &mut dyn ReplyByteCounter,
) -> Result<Bytes, ReadBodyError> {
    let is_compressed =
        headers.get(CONTENT_ENCODING).is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"gzip"));
    // A Content-Length above the limit is refused before reading.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(ReadBodyError::TooLarge);
    }
    if accepts_gzip && is_compressed {
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        read_compressed_body(body, bytes_max, counter).await
    } else {
        read_plain_body(body, bytes_max, counter).await
    }
}

async fn read_plain_body(
    mut body: Incoming,
    bytes_max: usize,
    counter: &mut dyn ReplyByteCounter,
) -> Result<Bytes, ReadBodyError> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(ReadBodyError::Broken)?.into_data() else { continue };
        let n_bytes = first.len() + all.len() + data.len();
        if n_bytes > bytes_max {
            return Err(ReadBodyError::TooLarge);
        }
        if !counter.reserve_body_bytes(n_bytes) {
            return Err(ReadBodyError::NoRoom);
        }
        // Most bodies come in one frame, which needs no copy.
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

async fn read_compressed_body(
    mut body: Incoming,
    bytes_max: usize,
    counter: &mut dyn ReplyByteCounter,
) -> Result<Bytes, ReadBodyError> {
    let mut decoder = MultiGzDecoder::new(BoundedBuffer {
        buffered_bytes: Vec::new(),
        buffer_bytes_max: bytes_max,
    });
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(ReadBodyError::Broken)?.into_data() else { continue };
        decoder.write_all(&data).map_err(|error| decompression_error(&error))?;
        if !counter.reserve_body_bytes(decoder.get_ref().buffered_bytes.len()) {
            return Err(ReadBodyError::NoRoom);
        }
    }
    let decoded = decoder.finish().map_err(|error| decompression_error(&error))?;
    Ok(decoded.buffered_bytes.into())
}

fn decompression_error(error: &io::Error) -> ReadBodyError {
    match error.kind() {
        io::ErrorKind::FileTooLarge => ReadBodyError::TooLarge,
        _ => ReadBodyError::Compression,
    }
}

/// A buffer with a limit, because a short compressed body can expand to a very long one.
struct BoundedBuffer {
    buffered_bytes: Vec<u8>,
    buffer_bytes_max: usize,
}

impl Write for BoundedBuffer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.buffered_bytes.len() + data.len() > self.buffer_bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.buffered_bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
