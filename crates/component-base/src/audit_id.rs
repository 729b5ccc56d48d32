//! The audit id of a request, which its response, its log line and its audit events share.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

/// The header with the audit id, in the request (optional) and in the response.
pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// The maximum length of an id that the server accepts from a client.
const AUDIT_ID_BYTES_MAX: usize = 64;

/// The audit id of one request. It is copied with the request and not allocated.
#[derive(Clone, Copy)]
pub struct AuditId {
    id_bytes: [u8; AUDIT_ID_BYTES_MAX],
    id_length: usize,
}

impl AuditId {
    /// Creates an id from ASCII text, and truncates it to [`AUDIT_ID_BYTES_MAX`].
    fn new(text: &[u8]) -> Self {
        let mut bytes = [0; AUDIT_ID_BYTES_MAX];
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = *from;
        }
        Self { id_bytes: bytes, id_length: text.len().min(AUDIT_ID_BYTES_MAX) }
    }

    /// The id as ASCII bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.id_bytes.get(..self.id_length).unwrap_or_default()
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Generates audit ids.
///
/// An id must be unique, but it is not secret. So the generator reads random bytes from the system once, and
/// each id is a hash of the next number of a sequence: a system call for every id would take longer than the
/// rest of many requests.
#[derive(Debug)]
pub struct AuditIdGenerator {
    random_seeds: [u64; 2],
    n_generated_ids: AtomicU64,
}

impl AuditIdGenerator {
    /// A generator whose sequence begins at a random number.
    pub fn new(random: [u8; 16]) -> Self {
        let [first, second] = split_u128(random);
        Self { random_seeds: [first, second], n_generated_ids: AtomicU64::new(0) }
    }

    /// Returns the id in the headers of a request if it is valid, and otherwise generates one.
    pub fn audit_id_for_request(&self, headers: &HeaderMap) -> AuditId {
        let given = headers.get(AUDIT_ID).map(HeaderValue::as_bytes);
        let is_usable = |text: &&[u8]| {
            !text.is_empty()
                && text.len() <= AUDIT_ID_BYTES_MAX
                && text.iter().all(u8::is_ascii_graphic)
        };
        match given.filter(is_usable) {
            Some(text) => AuditId::new(text),
            None => self.generate_audit_id(),
        }
    }

    fn generate_audit_id(&self) -> AuditId {
        let number = self.n_generated_ids.fetch_add(1, Ordering::Relaxed);
        let [first, second] = self.random_seeds.map(|seed| splitmix64(seed.wrapping_add(number)));
        let mut bytes = [0; 16];
        let (left, right) = bytes.split_at_mut(8);
        left.copy_from_slice(&first.to_be_bytes());
        right.copy_from_slice(&second.to_be_bytes());
        AuditId::new(&api_object::format_uuid4_ascii(bytes))
    }
}

fn split_u128(bytes: [u8; 16]) -> [u64; 2] {
    let number = u128::from_be_bytes(bytes);
    [(number >> 64) as u64, number as u64]
}

/// The finalizer of SplitMix64, which maps no two numbers to the same one.
fn splitmix64(number: u64) -> u64 {
    let mut number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_id_is_generated_twice() {
        let ids = AuditIdGenerator::new([7; 16]);
        let given: HashSet<String> =
            (0..10_000).map(|_| ids.audit_id_for_request(&HeaderMap::new()).to_string()).collect();
        assert_eq!(given.len(), 10_000);
        assert!(given.iter().all(|id| id.len() == 36), "{given:?}");
        let other = AuditIdGenerator::new([8; 16]).audit_id_for_request(&HeaderMap::new());
        assert!(!given.contains(other.as_str()));
    }

    #[test]
    fn the_id_of_a_client_is_used_up_to_a_limit() {
        let ids = AuditIdGenerator::new([0; 16]);
        let given = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUDIT_ID, text.parse().unwrap());
            ids.audit_id_for_request(&headers).to_string()
        };
        let longest = "a".repeat(AUDIT_ID_BYTES_MAX);
        assert_eq!(given(&longest), longest);
        for unusable in ["", "a b", &format!("{longest}a")] {
            assert_ne!(given(unusable), unusable);
        }
    }
}
