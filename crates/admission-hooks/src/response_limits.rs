//! The limit on the bytes of the responses of hooks in memory.
//!
//! The author of a hook decides how long its responses are, and users decide how many calls are in flight. Without
//! a common limit, a hundred calls of a hook that answers four megabytes would take hundreds of megabytes.

use std::sync::Arc;

use concurrency_limit::{ConcurrencyLimit, Permit};
use https_client::ReplyByteCounter;

/// Responses of up to this many bytes do not count toward the limit: the number of calls in flight bounds them.
const UNCOUNTED_BYTES_MAX: usize = 64 << 10;

/// Bytes are counted in steps of this size.
const STEP_BYTES: usize = 256 << 10;

/// The number of responses of maximum length that one user may have in memory.
const RESPONSES_PER_USER: usize = 4;

/// The number of users who may use their whole share of the memory at the same time.
const USERS: usize = 4;

/// The share of one user has at least this many bytes, however short the longest response is.
const BYTES_PER_USER_MIN: usize = 16 << 20;

/// Makes the limit on the bytes of responses that are being read, for hooks whose responses have at most this many bytes.
pub fn new_response_bytes_limit(response_bytes_max: usize) -> Arc<ConcurrencyLimit> {
    let per_user = response_bytes_max.saturating_mul(RESPONSES_PER_USER).max(BYTES_PER_USER_MIN);
    Arc::new(ConcurrencyLimit::new_with_limit_per_user(per_user.saturating_mul(USERS), per_user))
}

/// Counts the bytes of one response against a limit until it is dropped.
#[derive(Debug)]
pub(crate) struct ResponseBytesPermit {
    response_bytes_limit: Arc<ConcurrencyLimit>,
    user: String,
    response_bytes_permit: Option<Permit>,
}

impl ResponseBytesPermit {
    /// Creates a permit for no bytes. Later bytes count against the limit of this user.
    pub(crate) fn new(limit: &Arc<ConcurrencyLimit>, user: &str) -> Self {
        let user = authz::user_limit_key(user).to_owned();
        Self { response_bytes_limit: Arc::clone(limit), user, response_bytes_permit: None }
    }
}

impl ReplyByteCounter for ResponseBytesPermit {
    fn reserve_body_bytes(&mut self, n_bytes: usize) -> bool {
        if n_bytes <= UNCOUNTED_BYTES_MAX {
            return true;
        }
        let n_bytes = n_bytes.next_multiple_of(STEP_BYTES);
        match &mut self.response_bytes_permit {
            Some(permit) => permit.grow_permit_to(n_bytes).is_ok(),
            None => {
                self.response_bytes_permit =
                    self.response_bytes_limit.acquire_permits(&self.user, n_bytes).ok();
                self.response_bytes_permit.is_some()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A20: the bytes of one user's responses are limited, those of all together too, and short ones are not counted.
    #[test]
    fn a20_bytes_of_responses_are_limited_for_each_user() {
        const MIB: usize = 1 << 20;
        let limit = new_response_bytes_limit(4 * MIB);
        let mut held = Vec::new();
        for user in ["a", "b", "c", "d"] {
            for _ in 0..RESPONSES_PER_USER {
                let mut bytes = ResponseBytesPermit::new(&limit, user);
                assert!(
                    [MIB, 2 * MIB, 4 * MIB].iter().all(|n| bytes.reserve_body_bytes(*n)),
                    "{user}"
                );
                held.push(bytes);
            }
            let mut more = ResponseBytesPermit::new(&limit, user);
            assert!(
                more.reserve_body_bytes(UNCOUNTED_BYTES_MAX) && !more.reserve_body_bytes(MIB),
                "{user}"
            );
        }
        assert!(!ResponseBytesPermit::new(&limit, "e").reserve_body_bytes(MIB));
        held.truncate(4);
        assert!(ResponseBytesPermit::new(&limit, "e").reserve_body_bytes(MIB));
        // Accounts of one namespace are one user.
        let accounts = ["system:serviceaccount:n:a", "system:serviceaccount:n:b"];
        let mut held = accounts.map(|user| ResponseBytesPermit::new(&limit, user));
        assert!(
            held[0].reserve_body_bytes(12 * MIB)
                && !held[1].reserve_body_bytes(8 * MIB)
                && held[1].reserve_body_bytes(4 * MIB)
        );
        drop(held);
        assert_eq!(limit.n_permits_in_use(), 16 * MIB);
        // A limit that the administrator raises has room for one response at least.
        assert!(
            ResponseBytesPermit::new(&new_response_bytes_limit(64 * MIB), "a")
                .reserve_body_bytes(64 * MIB)
        );
    }
}
