//! A limit of concurrent operations, its permits, and the error if no permit is free.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Limits operations that run at the same time, such as calls to one webhook or open watches. Its memory is bounded by the
/// number of permits.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    permits_max: usize,
    permits_per_user_max: usize,
    permits_in_use: Mutex<PermitsInUse>,
}

#[derive(Debug, Default)]
struct PermitsInUse {
    n_permits: usize,
    /// Users without a permit have no entry.
    n_permits_by_user: HashMap<Arc<str>, usize>,
}

/// The right to run one operation. Dropping it frees the place for another operation.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once limits nothing"]
pub struct Permit {
    limit: Arc<ConcurrencyLimit>,
    user: Arc<str>,
}

/// Why no permit is free. The texts are those for calls to a webhook; other callers write their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// All permits are in use.
    #[error(
        "{permits_max} calls to the webhook are in flight, which is the limit; try again later"
    )]
    Total {
        /// The limit of all permits.
        permits_max: usize,
    },
    /// The user holds as many permits as one user may.
    #[error(
        "{permits_max} calls to the webhook are in flight for this user, which is the limit; try again later"
    )]
    User {
        /// The limit of permits for one user.
        permits_max: usize,
    },
}

impl ConcurrencyLimit {
    /// Makes a limit with this number of permits, at most half of them, rounded up, for one user.
    pub fn new(permits_max: usize) -> Self {
        Self::with_limit_per_user(permits_max, permits_max.div_ceil(2))
    }

    /// Makes a limit with this number of permits, and this number of them for one user, at least one.
    pub fn with_limit_per_user(permits_max: usize, permits_per_user_max: usize) -> Self {
        let permits_per_user_max = permits_per_user_max.max(1);
        Self { permits_max, permits_per_user_max, permits_in_use: Mutex::default() }
    }

    /// The most permits for one user.
    pub fn permits_per_user_max(&self) -> usize {
        self.permits_per_user_max
    }

    /// The number of permits in use.
    pub fn n_permits_in_use(&self) -> usize {
        self.lock().n_permits
    }

    /// Acquires a permit for a user, without waiting. Anonymous requests have a user name too.
    ///
    /// # Errors
    /// [`Busy`] if all permits, or all permits of the user, are in use. The total limit is reported first.
    pub fn acquire(self: &Arc<Self>, user: &str) -> Result<Permit, Busy> {
        let mut in_use = self.lock();
        if in_use.n_permits >= self.permits_max {
            return Err(Busy::Total { permits_max: self.permits_max });
        }
        let permits_max = self.permits_per_user_max();
        let (user, n_of_user) = match in_use.n_permits_by_user.get_key_value(user) {
            Some((_, n)) if *n >= permits_max => return Err(Busy::User { permits_max }),
            Some((user, n)) => (Arc::clone(user), *n),
            None => (Arc::from(user), 0),
        };
        in_use.n_permits_by_user.insert(Arc::clone(&user), n_of_user + 1);
        in_use.n_permits += 1;
        Ok(Permit { limit: Arc::clone(self), user })
    }

    /// A poisoned lock is used: no panic can happen between the changes of the counts.
    fn lock(&self) -> MutexGuard<'_, PermitsInUse> {
        self.permits_in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut in_use = self.limit.lock();
        in_use.n_permits -= 1;
        if let Some(n_of_user) = in_use.n_permits_by_user.get_mut(&*self.user) {
            *n_of_user -= 1;
            if *n_of_user == 0 {
                in_use.n_permits_by_user.remove(&*self.user);
            }
        }
    }
}
