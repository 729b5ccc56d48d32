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
    }
}
