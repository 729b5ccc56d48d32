//! The hash of configuration files in metrics and in the status.

use std::fmt::Write;

use ring::digest::{SHA256, digest};

/// Returns `sha256:` and the SHA-256 digest of the bytes in lower-case hexadecimal, or an empty text for no bytes.
///
/// Kubernetes uses this form for the labels of its metrics: for configuration files and for the identity of a server.
pub fn sha256_hash(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return String::new();
    }
    let mut text = "sha256:".to_owned();
    for byte in digest(&SHA256, bytes).as_ref() {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_kubernetes() {
        for (bytes, want) in [
            ("", ""),
            (
                "testAPIServerID",
                "sha256:14f9d63e669337ac6bfda2e2162915ee6a6067743eddd4e5c374b572f951ff37",
            ),
            ("config2", "sha256:f309dd9c31fe24b3e594d2f9420419c48dfe954523245d5f35dc37739970d881"),
        ] {
            assert_eq!(sha256_hash(bytes.as_bytes()), want, "{bytes}");
        }
    }
}
