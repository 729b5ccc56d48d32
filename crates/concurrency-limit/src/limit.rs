//! The limit, its permits, and what a caller is told that gets none.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The calls to one webhook that are in flight. Its memory is bounded by their number.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    calls_max: usize,
    in_flight: Mutex<InFlight>,
}

#[derive(Debug, Default)]
struct InFlight {
    n_calls: usize,
    /// Users without a call in flight have no entry.
    n_calls_by_user: HashMap<Arc<str>, usize>,
}

/// The right to make one call. Dropping it ends the call as far as the limit is concerned.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once limits nothing"]
pub struct Permit {
    limit: Arc<ConcurrencyLimit>,
    user: Arc<str>,
}

/// There is no permit now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// All permits of the webhook are taken.
    #[error("{calls_max} calls to the webhook are in flight, which is the limit; try again later")]
    Webhook {
        /// The limit.
        calls_max: usize,
    },
    /// The user holds as many permits as one user may.
    #[error(
        "{calls_max} calls to the webhook are in flight for this user, which is the limit; try again later"
    )]
    User {
        /// The limit.
        calls_max: usize,
    },
}

impl ConcurrencyLimit {
    /// A limit of `calls_max` calls.
    pub fn new(calls_max: usize) -> Self {
        Self { calls_max, in_flight: Mutex::default() }
    }

    /// The most calls that one user may have in flight: half of all rounded up, and at least one.
    pub fn calls_per_user_max(&self) -> usize {
        self.calls_max.div_ceil(2).max(1)
    }

    /// How many calls are in flight.
    pub fn n_in_flight(&self) -> usize {
        self.lock().n_calls
    }

    /// A permit for a call on behalf of the user with this name; anonymous requests have a name too.
    ///
    /// # Errors
    /// [`Busy`] if the webhook or the user is at its limit. A webhook at its limit is reported first.
    pub fn acquire(self: &Arc<Self>, user: &str) -> Result<Permit, Busy> {
        let mut in_flight = self.lock();
        if in_flight.n_calls >= self.calls_max {
            return Err(Busy::Webhook { calls_max: self.calls_max });
        }
        let calls_max = self.calls_per_user_max();
        let (user, n_calls_of_user) = match in_flight.n_calls_by_user.get_key_value(user) {
            Some((_, n_calls)) if *n_calls >= calls_max => return Err(Busy::User { calls_max }),
            Some((user, n_calls)) => (Arc::clone(user), *n_calls),
            None => (Arc::from(user), 0),
        };
        in_flight.n_calls_by_user.insert(Arc::clone(&user), n_calls_of_user + 1);
        in_flight.n_calls += 1;
        Ok(Permit { limit: Arc::clone(self), user })
    }

    /// A panic elsewhere leaves the counts whole: they change together or not at all.
    fn lock(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut in_flight = self.limit.lock();
        in_flight.n_calls -= 1;
        if let Some(n_calls) = in_flight.n_calls_by_user.get_mut(&*self.user) {
            *n_calls -= 1;
            if *n_calls == 0 {
                in_flight.n_calls_by_user.remove(&*self.user);
            }
        }
    }
}
