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

/// The right to run one operation, or to hold several units, such as bytes. Dropping it releases them.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once limits nothing"]
pub struct Permit {
    concurrency_limit: Arc<ConcurrencyLimit>,
    user: Arc<str>,
    n_permits: usize,
}

/// Why no permit is free. The texts are those for calls to a webhook; other callers write their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitReached {
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
    /// Makes a limit of `permits_max` permits, of which one user may hold at most half, rounded up.
    pub fn new(permits_max: usize) -> Self {
        Self::new_with_limit_per_user(permits_max, permits_max.div_ceil(2))
    }

    /// Makes a limit of `permits_max` permits, of which one user may hold `permits_per_user_max`, but at least one.
    pub fn new_with_limit_per_user(permits_max: usize, permits_per_user_max: usize) -> Self {
        let permits_per_user_max = permits_per_user_max.max(1);
        Self { permits_max, permits_per_user_max, permits_in_use: Mutex::default() }
    }

    /// The maximum number of permits that one user may hold.
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
    /// [`LimitReached`] if all permits, or all permits of the user, are in use. The total limit is reported first.
    pub fn acquire_permit(self: &Arc<Self>, user: &str) -> Result<Permit, LimitReached> {
        self.acquire_permits(user, 1)
    }

    /// Acquires several permits at once, such as one for each byte of a body.
    ///
    /// # Errors
    /// [`LimitReached`] if fewer permits are free, in total or for the user. The total limit is reported first.
    pub fn acquire_permits(
        self: &Arc<Self>,
        user: &str,
        n_permits: usize,
    ) -> Result<Permit, LimitReached> {
        let mut in_use = self.lock();
        if in_use.n_permits.saturating_add(n_permits) > self.permits_max {
            return Err(LimitReached::Total { permits_max: self.permits_max });
        }
        let n_of_user = in_use.n_permits_by_user.get(user).copied().unwrap_or_default();
        if n_of_user.saturating_add(n_permits) > self.permits_per_user_max {
            return Err(LimitReached::User { permits_max: self.permits_per_user_max });
        }
        Ok(self.take_permits_unchecked(&mut in_use, user, n_permits))
    }

    /// Acquires permits even if none is free, for a request that must not be refused. They count against the limits
    /// of all other requests.
    pub fn acquire_permits_beyond_limit(self: &Arc<Self>, user: &str, n_permits: usize) -> Permit {
        self.take_permits_unchecked(&mut self.lock(), user, n_permits)
    }

    fn take_permits_unchecked(
        self: &Arc<Self>,
        in_use: &mut PermitsInUse,
        user: &str,
        n_permits: usize,
    ) -> Permit {
        let (user, n_of_user) = match in_use.n_permits_by_user.get_key_value(user) {
            Some((user, n)) => (Arc::clone(user), *n),
            None => (Arc::from(user), 0),
        };
        in_use.n_permits_by_user.insert(Arc::clone(&user), n_of_user.saturating_add(n_permits));
        in_use.n_permits = in_use.n_permits.saturating_add(n_permits);
        Permit { concurrency_limit: Arc::clone(self), user, n_permits }
    }

    fn release_permits(&self, user: &str, n_permits: usize) {
        let mut in_use = self.lock();
        in_use.n_permits = in_use.n_permits.saturating_sub(n_permits);
        if let Some(n_of_user) = in_use.n_permits_by_user.get_mut(user) {
            *n_of_user = n_of_user.saturating_sub(n_permits);
            if *n_of_user == 0 {
                in_use.n_permits_by_user.remove(user);
            }
        }
    }

    /// A poisoned lock is used: no panic can happen between the changes of the counts.
    fn lock(&self) -> MutexGuard<'_, PermitsInUse> {
        self.permits_in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// Acquires the missing permits, so that this value holds at least `n_permits`.
    ///
    /// # Errors
    /// [`LimitReached`] if fewer permits are free, in total or for the user. The value is then unchanged.
    pub fn grow_permit_to(&mut self, n_permits: usize) -> Result<(), LimitReached> {
        let missing = n_permits.saturating_sub(self.n_permits);
        if missing > 0 {
            let more = self.concurrency_limit.acquire_permits(&self.user, missing)?;
            self.merge_permit(more);
        }
        Ok(())
    }

    /// Grows as [`Self::grow_permit_to`] does, even if no permit is free, for a request that must not be refused.
    pub fn grow_permit_beyond_limit(&mut self, n_permits: usize) {
        let missing = n_permits.saturating_sub(self.n_permits);
        let more = self.concurrency_limit.acquire_permits_beyond_limit(&self.user, missing);
        self.merge_permit(more);
    }

    /// Moves the permits of another value of the same user into this one.
    fn merge_permit(&mut self, mut other: Self) {
        self.n_permits = self.n_permits.saturating_add(std::mem::take(&mut other.n_permits));
    }

    /// Releases the permits beyond `n_permits`.
    pub fn shrink_permit_to(&mut self, n_permits: usize) {
        let excess = self.n_permits.saturating_sub(n_permits);
        if excess > 0 {
            self.n_permits = n_permits;
            self.concurrency_limit.release_permits(&self.user, excess);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.concurrency_limit.release_permits(&self.user, self.n_permits);
    }
}
