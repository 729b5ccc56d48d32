//! Answers and the reading of their bodies.

use std::io::{self, Write};

use bytes::{Bytes, BytesMut};
use flate2::write::MultiGzDecoder;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

/// An answer: any status, also a redirect, which is never followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The header fields.
    pub headers: HeaderMap,
    /// The whole body, decompressed.
    pub body: Bytes,
}

/// Why there is no body.
pub(crate) enum ReadError {
    TooLarge,
    Compression,
    Broken(hyper::Error),
}

/// Reads a body. If it is compressed and that was asked for, it is decompressed and the headers say
/// no more that it was not; the limit holds for what comes out.
pub(crate) async fn read(
    headers: &mut HeaderMap,
    body: Incoming,
    can_compress: bool,
    bytes_max: usize,
) -> Result<Bytes, ReadError> {
    let is_compressed =
        headers.get(CONTENT_ENCODING).is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"gzip"));
    // Who announces too much is not listened to.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(ReadError::TooLarge);
    }
    if can_compress && is_compressed {
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        read_compressed(body, bytes_max).await
    } else {
        read_plain(body, bytes_max).await
    }
}

async fn read_plain(mut body: Incoming, bytes_max: usize) -> Result<Bytes, ReadError> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(ReadError::Broken)?.into_data() else { continue };
        if first.len() + all.len() + data.len() > bytes_max {
            return Err(ReadError::TooLarge);
        }
        // Most bodies come in one piece, which needs no copy.
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

async fn read_compressed(mut body: Incoming, bytes_max: usize) -> Result<Bytes, ReadError> {
    let mut decoder = MultiGzDecoder::new(Bounded { bytes: Vec::new(), bytes_max });
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(ReadError::Broken)?.into_data() else { continue };
        decoder.write_all(&data).map_err(|error| decompression(&error))?;
    }
    let decoded = decoder.finish().map_err(|error| decompression(&error))?;
    Ok(decoded.bytes.into())
}

fn decompression(error: &io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::FileTooLarge => ReadError::TooLarge,
        _ => ReadError::Compression,
    }
}

/// Bytes up to a limit: a few compressed ones may stand for a great many.
struct Bounded {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl Write for Bounded {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + data.len() > self.bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
