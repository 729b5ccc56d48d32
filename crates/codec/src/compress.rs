//! Compression of large responses.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Smaller responses are not compressed, because compressing them takes longer than sending them.
pub const GZIP_BYTES_MIN: usize = 128 << 10;

/// Reports whether `Accept-Encoding` lists `gzip`.
#[must_use]
pub fn accepts_gzip(accept_encoding: &str) -> bool {
    accept_encoding.split(',').any(|clause| {
        let (name, parameters) = clause.split_once(';').unwrap_or((clause, ""));
        let is_refused = parameters
            .split(';')
            .filter_map(|parameter| parameter.trim().strip_prefix("q="))
            .any(|quality| quality.trim().parse().is_ok_and(|quality: f32| quality <= 0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// Compresses with the fastest level: most responses go over a fast network.
///
/// # Errors
/// Writing to memory does not fail; the signature follows the encoder.
pub fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Compresses a response that is written piece by piece, with the same level as [`gzip`].
#[derive(Debug)]
pub struct GzipStream(GzEncoder<Vec<u8>>);

impl Default for GzipStream {
    fn default() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }
}

impl GzipStream {
    /// Takes the next bytes of the response, and returns the compressed ones that are complete, often none.
    ///
    /// # Errors
    /// Writing to memory does not fail; the signature follows the encoder.
    pub fn compress(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.0.write_all(bytes)?;
        Ok(std::mem::take(self.0.get_mut()))
    }

    /// Ends the response, and returns its last compressed bytes.
    ///
    /// # Errors
    /// Writing to memory does not fail; the signature follows the encoder.
    pub fn finish_gzip_stream(self) -> io::Result<Vec<u8>> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn accept_encoding_must_list_gzip() {
        for header in ["gzip", "deflate, GZIP ;q=0.5", "br,gzip"] {
            assert!(accepts_gzip(header), "{header}");
        }
        for header in ["", "identity", "gzip;q=0", "x-gzip", "*"] {
            assert!(!accepts_gzip(header), "{header}");
        }
    }

    #[test]
    fn compressed_bytes_decompress() {
        let text = b"portcullis ".repeat(20_000);
        let small = gzip(&text).unwrap();
        assert!(small.len() < text.len() / 10);
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(small.as_slice()).read_to_end(&mut back).unwrap();
        assert_eq!(back, text);
        let mut stream = GzipStream::default();
        let mut small = Vec::new();
        for part in text.chunks(10_000) {
            small.extend(stream.compress(part).unwrap());
        }
        small.extend(stream.finish_gzip_stream().unwrap());
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(small.as_slice()).read_to_end(&mut back).unwrap();
        assert_eq!(back, text);
    }
}
