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

/// One user may use at most one part in this many of all bytes.
const USER_PART: usize = 4;

/// Counts the bytes of responses for each user and in total.
#[derive(Debug)]
pub(crate) struct ResponseBytesLimit {
    response_bytes_max: usize,
    response_bytes_in_flight: Mutex<ResponseBytesInFlight>,
}

#[derive(Debug, Default)]
struct ResponseBytesInFlight {
    /// The bytes of all users. A user above the limit for one user counts only with that limit, so that the rest
    /// stays available to other users.
    n_counted_response_bytes: usize,
    /// Users without a response have no entry.
    response_bytes_by_user: HashMap<Arc<str>, usize>,
}

/// The bytes of one response. Dropping it, with the body of the response, frees them.
#[derive(Debug)]
#[must_use = "bytes that are dropped at once are not counted"]
pub(crate) struct ResponseBytesReservation {
    response_bytes_limit: Arc<ResponseBytesLimit>,
    user: Arc<str>,
    n_reserved_response_bytes: usize,
}

/// Why the bytes of a response cannot be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResponseBytesError {
    /// The user has not read the responses to earlier requests.
    #[error(
        "responses of {bytes_max} bytes wait for this user, which is the most for one user, please try again later"
    )]
    User { bytes_max: usize },
    /// All users together have not read their responses.
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

/// The user name that limits count a request under; `None` for members of `system:masters`, who are exempt.
pub(crate) fn user_for_limits(user: &User) -> Option<&str> {
    (!user.is_in_group("system:masters")).then(|| authz::user_limit_key(&user.name))
}

impl ResponseBytesLimit {
    /// Makes a limit of this many bytes; 0 means no limit.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let bytes_max = if bytes_max == 0 { usize::MAX } else { bytes_max };
        Self { response_bytes_max: bytes_max, response_bytes_in_flight: Mutex::default() }
    }

    fn response_bytes_per_user_max(&self) -> usize {
        self.response_bytes_max.div_ceil(USER_PART)
    }

    /// The part of a user's bytes that counts for all users together.
    fn counted_response_bytes_of_user(&self, of_user: usize) -> usize {
        of_user.min(self.response_bytes_per_user_max())
    }

    /// Checks that the user may have another response of any size, before the server reads what the response contains.
    ///
    /// # Errors
    /// The bytes of the user, or all bytes, are in use.
    pub(crate) fn check_response_bytes_available(
        &self,
        user: &str,
    ) -> Result<(), ResponseBytesError> {
        self.lock().check_response_bytes_available(self, user, 1)
    }

    /// Counts the bytes of a response.
    ///
    /// A response that is larger than the limit is allowed if no other response is in flight, because a retry could
    /// not help.
    ///
    /// # Errors
    /// The bytes would exceed the limit together with those in flight.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        user: &str,
        n_bytes: usize,
    ) -> Result<ResponseBytesReservation, ResponseBytesError> {
        let mut in_flight = self.lock();
        in_flight.check_response_bytes_available(self, user, n_bytes)?;
        Ok(in_flight.add_response_bytes_of_user(self, user, n_bytes))
    }

    /// Counts the bytes of a response to a completed write, which cannot be refused.
    pub(crate) fn count(self: &Arc<Self>, user: &str, n_bytes: usize) -> ResponseBytesReservation {
        self.lock().add_response_bytes_of_user(self, user, n_bytes)
    }

    /// Counts the bytes of a response that is not refused; `None` if they are few.
    pub(crate) fn count_large_response(
        self: &Arc<Self>,
        user: &str,
        response: &Response<Body>,
    ) -> Option<ResponseBytesReservation> {
        let n_bytes = response.body().in_memory_bytes();
        (n_bytes >= COUNTED_BYTES_MIN).then(|| self.count(user, n_bytes))
    }

    /// A poisoned lock is used: no panic can happen between the changes of the counts.
    fn lock(&self) -> MutexGuard<'_, ResponseBytesInFlight> {
        self.response_bytes_in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResponseBytesInFlight {
    fn check_response_bytes_available(
        &self,
        limit: &ResponseBytesLimit,
        user: &str,
        n_bytes: usize,
    ) -> Result<(), ResponseBytesError> {
        let of_user = self.response_bytes_by_user.get(user).copied().unwrap_or_default();
        let has_room =
            |in_use: usize, max: usize| in_use == 0 || in_use.saturating_add(n_bytes) <= max;
        let bytes_max = limit.response_bytes_per_user_max();
        if !has_room(of_user, bytes_max) {
            return Err(ResponseBytesError::User { bytes_max });
        }
        let bytes_max = limit.response_bytes_max;
        if !has_room(self.n_counted_response_bytes, bytes_max) {
            return Err(ResponseBytesError::Total { bytes_max });
        }
        Ok(())
    }

    fn add_response_bytes_of_user(
        &mut self,
        limit: &Arc<ResponseBytesLimit>,
        user: &str,
        n_bytes: usize,
    ) -> ResponseBytesReservation {
        let user: Arc<str> = match self.response_bytes_by_user.get_key_value(user) {
            Some((user, _)) => Arc::clone(user),
            None => user.into(),
        };
        let of_user = self.response_bytes_by_user.entry(Arc::clone(&user)).or_default();
        let before = limit.counted_response_bytes_of_user(*of_user);
        *of_user += n_bytes;
        self.n_counted_response_bytes += limit.counted_response_bytes_of_user(*of_user) - before;
        ResponseBytesReservation {
            response_bytes_limit: Arc::clone(limit),
            user,
            n_reserved_response_bytes: n_bytes,
        }
    }
}

impl Drop for ResponseBytesReservation {
    fn drop(&mut self) {
        let mut in_flight = self.response_bytes_limit.lock();
        let Some(of_user) = in_flight.response_bytes_by_user.get_mut(&*self.user) else { return };
        let before = self.response_bytes_limit.counted_response_bytes_of_user(*of_user);
        *of_user -= self.n_reserved_response_bytes;
        let after = *of_user;
        if after == 0 {
            in_flight.response_bytes_by_user.remove(&*self.user);
        }
        in_flight.n_counted_response_bytes -=
            before - self.response_bytes_limit.counted_response_bytes_of_user(after);
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
        assert_eq!(limit.check_response_bytes_available("jane").unwrap_err(), too_much);
        assert_eq!(limit.check_response_bytes_available("joe"), Ok(()));
        let others = ["joe", "ada", "eve"].map(|user| limit.reserve(user, 100).unwrap());
        let full = ResponseBytesError::Total { bytes_max: 400 };
        assert_eq!(limit.reserve("bob", 1).unwrap_err(), full);
        assert_eq!(
            (limit.check_response_bytes_available("bob").unwrap_err(), full.to_status().code),
            (full, 429)
        );
        drop((first, second, others));
        assert!(limit.lock().response_bytes_by_user.is_empty());
        assert_eq!(limit.lock().n_counted_response_bytes, 0);
    }

    #[test]
    fn a_response_beyond_the_limit_leaves_the_rest_to_others() {
        let limit = Arc::new(ResponseBytesLimit::new(400));
        let large = limit.reserve("jane", 1_000).unwrap();
        assert!(limit.reserve("jane", 1).is_err());
        // The response to a completed write is counted even if the user is at the limit.
        let told = limit.count("jane", 50);
        assert_eq!(limit.lock().n_counted_response_bytes, 100);
        let of_others = ["joe", "ada"].map(|user| limit.reserve(user, 100).unwrap());
        drop(large);
        assert_eq!(limit.lock().n_counted_response_bytes, 250);
        drop((told, of_others));
        assert_eq!(limit.lock().n_counted_response_bytes, 0);
        let unlimited = Arc::new(ResponseBytesLimit::new(0));
        let _large = unlimited.reserve("jane", 1 << 40).unwrap();
        assert!(unlimited.reserve("jane", 1 << 40).is_ok());
    }
}
