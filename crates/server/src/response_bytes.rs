//! The limit on the bytes of responses that wait for their clients.
//!
//! A response holds its objects or its bytes until the client has taken them. A client that takes them slowly, on many
//! connections, could otherwise hold as much memory as it likes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api_object::Status;
use authz::User;
use http::Response;
use https_server::Body;

/// Responses of fewer bytes are not counted, because counting them takes longer than sending them.
pub(crate) const COUNTED_BYTES_MIN: usize = 16 << 10;

/// One user has at most this part of all bytes.
const USER_PART: usize = 4;

/// Counts the bytes of responses for each user and in total.
#[derive(Debug)]
pub(crate) struct ResponseBytesLimit {
    bytes_max: usize,
    in_flight: Mutex<BytesInFlight>,
}

#[derive(Debug, Default)]
struct BytesInFlight {
    /// The bytes of all users. A user who has more than the most for one user counts with that, so that others have
    /// the rest whatever one user does.
    n_bytes: usize,
    /// Users without a response have no entry.
    n_bytes_by_user: HashMap<Arc<str>, usize>,
}

/// The bytes of one response. Dropping it, with the body of the response, frees them.
#[derive(Debug)]
#[must_use = "bytes that are dropped at once are not counted"]
pub(crate) struct ResponseBytes {
    limit: Arc<ResponseBytesLimit>,
    user: Arc<str>,
    n_bytes: usize,
}

/// Why a response has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResponseBytesError {
    /// The user does not take the responses that it has asked for before.
    #[error(
        "responses of {bytes_max} bytes wait for this user, which is the most for one user, please try again later"
    )]
    User { bytes_max: usize },
    /// The users together do not take their responses.
    #[error(
        "responses of {bytes_max} bytes wait for their users, which is the most, please try again later"
    )]
    Total { bytes_max: usize },
}

impl ResponseBytesError {
    /// 429, with the time after which the client may try again.
    pub(crate) fn to_status(self) -> Status {
        Status::too_many_requests(&self.to_string(), 1)
    }
}

/// The user whom limits count a request for; `None` for a member of `system:masters`, whom no limit stops.
pub(crate) fn limited_user(user: &User) -> Option<&str> {
    (!user.is_in_group("system:masters")).then(|| authz::user_limit_key(&user.name))
}

impl ResponseBytesLimit {
    /// Makes a limit of this many bytes; 0 means no limit.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let bytes_max = if bytes_max == 0 { usize::MAX } else { bytes_max };
        Self { bytes_max, in_flight: Mutex::default() }
    }

    fn bytes_per_user_max(&self) -> usize {
        self.bytes_max.div_ceil(USER_PART)
    }

    /// The part of a user's bytes that counts for all users together.
    fn counted_bytes(&self, of_user: usize) -> usize {
        of_user.min(self.bytes_per_user_max())
    }

    /// Checks that the user may have another response of any size, before the server reads what the response contains.
    ///
    /// # Errors
    /// The bytes of the user, or all bytes, are in use.
    pub(crate) fn check_room(&self, user: &str) -> Result<(), ResponseBytesError> {
        self.lock().check_room(self, user, 1)
    }

    /// Counts the bytes of a response.
    ///
    /// A response that is larger than the limit is possible if no other is under way, because no later time would be
    /// better.
    ///
    /// # Errors
    /// There is no room for the bytes beside those that are in flight.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        user: &str,
        n_bytes: usize,
    ) -> Result<ResponseBytes, ResponseBytesError> {
        let mut in_flight = self.lock();
        in_flight.check_room(self, user, n_bytes)?;
        Ok(in_flight.add(self, user, n_bytes))
    }

    /// Counts the bytes of a response that can not be refused, because a write has happened.
    pub(crate) fn count(self: &Arc<Self>, user: &str, n_bytes: usize) -> ResponseBytes {
        self.lock().add(self, user, n_bytes)
    }

    /// Counts the bytes of a response that is not refused; `None` if they are few.
    pub(crate) fn count_large(
        self: &Arc<Self>,
        user: &str,
        response: &Response<Body>,
    ) -> Option<ResponseBytes> {
        let n_bytes = response.body().held_bytes();
        (n_bytes >= COUNTED_BYTES_MIN).then(|| self.count(user, n_bytes))
    }

    /// A poisoned lock is used: no panic can happen between the changes of the counts.
    fn lock(&self) -> MutexGuard<'_, BytesInFlight> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BytesInFlight {
    fn check_room(
        &self,
        limit: &ResponseBytesLimit,
        user: &str,
        n_bytes: usize,
    ) -> Result<(), ResponseBytesError> {
        let of_user = self.n_bytes_by_user.get(user).copied().unwrap_or_default();
        let has_room =
            |in_use: usize, max: usize| in_use == 0 || in_use.saturating_add(n_bytes) <= max;
        let bytes_max = limit.bytes_per_user_max();
        if !has_room(of_user, bytes_max) {
            return Err(ResponseBytesError::User { bytes_max });
        }
        let bytes_max = limit.bytes_max;
        if !has_room(self.n_bytes, bytes_max) {
            return Err(ResponseBytesError::Total { bytes_max });
        }
        Ok(())
    }

    fn add(
        &mut self,
        limit: &Arc<ResponseBytesLimit>,
        user: &str,
        n_bytes: usize,
    ) -> ResponseBytes {
        let user: Arc<str> = match self.n_bytes_by_user.get_key_value(user) {
            Some((user, _)) => Arc::clone(user),
            None => user.into(),
        };
        let of_user = self.n_bytes_by_user.entry(Arc::clone(&user)).or_default();
        let before = limit.counted_bytes(*of_user);
        *of_user += n_bytes;
        self.n_bytes += limit.counted_bytes(*of_user) - before;
        ResponseBytes { limit: Arc::clone(limit), user, n_bytes }
    }
}

impl Drop for ResponseBytes {
    fn drop(&mut self) {
        let mut in_flight = self.limit.lock();
        let Some(of_user) = in_flight.n_bytes_by_user.get_mut(&*self.user) else { return };
        let before = self.limit.counted_bytes(*of_user);
        *of_user -= self.n_bytes;
        let after = *of_user;
        if after == 0 {
            in_flight.n_bytes_by_user.remove(&*self.user);
        }
        in_flight.n_bytes -= before - self.limit.counted_bytes(after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_quarter_and_leaves_the_rest_to_others() {
        let limit = Arc::new(ResponseBytesLimit::new(400));
        let first = limit.reserve("jane", 60).unwrap();
        let too_much = ResponseBytesError::User { bytes_max: 100 };
        assert_eq!(limit.reserve("jane", 41).unwrap_err(), too_much);
        let second = limit.reserve("jane", 40).unwrap();
        assert_eq!(limit.check_room("jane").unwrap_err(), too_much);
        assert_eq!(limit.check_room("joe"), Ok(()));
        let others = ["joe", "ada", "eve"].map(|user| limit.reserve(user, 100).unwrap());
        let full = ResponseBytesError::Total { bytes_max: 400 };
        assert_eq!(limit.reserve("bob", 1).unwrap_err(), full);
        assert_eq!((limit.check_room("bob").unwrap_err(), full.to_status().code), (full, 429));
        drop((first, second, others));
        assert!(limit.lock().n_bytes_by_user.is_empty());
        assert_eq!(limit.lock().n_bytes, 0);
    }

    #[test]
    fn a_response_beyond_the_limit_leaves_the_rest_to_others() {
        let limit = Arc::new(ResponseBytesLimit::new(400));
        let large = limit.reserve("jane", 1_000).unwrap();
        assert!(limit.reserve("jane", 1).is_err());
        // What has been written is told, even so.
        let told = limit.count("jane", 50);
        assert_eq!(limit.lock().n_bytes, 100);
        let of_others = ["joe", "ada"].map(|user| limit.reserve(user, 100).unwrap());
        drop(large);
        assert_eq!(limit.lock().n_bytes, 250);
        drop((told, of_others));
        assert_eq!(limit.lock().n_bytes, 0);
        let unlimited = Arc::new(ResponseBytesLimit::new(0));
        let _large = unlimited.reserve("jane", 1 << 40).unwrap();
        assert!(unlimited.reserve("jane", 1 << 40).is_ok());
    }
}
