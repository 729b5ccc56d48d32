//! The id by which a request is found again in the answer, the log and the audit.

use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use http::header::HeaderName;

/// Where a client may give an id, and where the answer tells it.
pub(crate) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// The longest id that is taken over from a client.
const AUDIT_ID_BYTES_MAX: usize = 64;

/// Gives out ids.
///
/// An id must not occur twice, but it is no secret. So the system is asked for randomness once, and
/// each id is the next number of a sequence that begins there, scattered over all ids: asking for
/// every request would be the dearest part of many.
#[derive(Debug)]
pub(crate) struct AuditIds {
    seeds: [u64; 2],
    n_given: AtomicU64,
}

impl AuditIds {
    /// Ids that begin at a random place.
    pub(crate) fn new(random: [u8; 16]) -> Self {
        let [first, second] = halves(random);
        Self { seeds: [first, second], n_given: AtomicU64::new(0) }
    }

    /// The id that the client gave, if it can be used, or one of our own.
    pub(crate) fn of(&self, headers: &HeaderMap) -> String {
        let given = headers.get(AUDIT_ID).and_then(|value| value.to_str().ok());
        let is_usable = |text: &&str| {
            !text.is_empty()
                && text.len() <= AUDIT_ID_BYTES_MAX
                && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        match given.filter(is_usable) {
            Some(text) => text.to_owned(),
            None => self.next(),
        }
    }

    fn next(&self) -> String {
        let number = self.n_given.fetch_add(1, Ordering::Relaxed);
        let [first, second] = self.seeds.map(|seed| scatter(seed.wrapping_add(number)));
        let mut bytes = [0; 16];
        let (left, right) = bytes.split_at_mut(8);
        left.copy_from_slice(&first.to_be_bytes());
        right.copy_from_slice(&second.to_be_bytes());
        api_object::uuid4(bytes)
    }
}

fn halves(bytes: [u8; 16]) -> [u64; 2] {
    let number = u128::from_be_bytes(bytes);
    [(number >> 64) as u64, number as u64]
}

/// The finalizer of SplitMix64, which maps no two numbers to the same one.
fn scatter(number: u64) -> u64 {
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
    fn no_id_is_given_twice() {
        let ids = AuditIds::new([7; 16]);
        let given: HashSet<String> = (0..10_000).map(|_| ids.of(&HeaderMap::new())).collect();
        assert_eq!(given.len(), 10_000);
        assert!(given.iter().all(|id| id.len() == 36), "{given:?}");
        let other = AuditIds::new([8; 16]).of(&HeaderMap::new());
        assert!(!given.contains(&other));
    }

    #[test]
    fn an_id_of_a_client_is_taken_over_up_to_a_limit() {
        let ids = AuditIds::new([0; 16]);
        let given = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUDIT_ID, text.parse().unwrap());
            ids.of(&headers)
        };
        let longest = "a".repeat(AUDIT_ID_BYTES_MAX);
        assert_eq!(given(&longest), longest);
        for unusable in ["", "a b", &format!("{longest}a")] {
            assert_ne!(given(unusable), unusable);
        }
    }
}
