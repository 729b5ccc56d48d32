//! A JSON document that is encoded once and served often.

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde_json::Value;

/// The bytes of a document and their hash.
#[derive(Debug, Clone)]
pub struct EncodedDocument {
    /// The JSON text, without a newline at the end.
    pub body: Bytes,
    /// The hash of the text, in hexadecimal digits in upper case.
    pub hash: String,
}

impl EncodedDocument {
    pub(crate) fn new(tree: &Value) -> Self {
        let body = Bytes::from(tree.to_string());
        let hash = digest(&SHA256, &body);
        let hash = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        Self { body, hash }
    }

    /// The value of an `ETag` header.
    #[must_use]
    pub fn etag(&self) -> String {
        format!("\"{}\"", self.hash)
    }
}
