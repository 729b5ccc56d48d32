//! Memory that the requests of all users share.

use std::sync::Arc;

use authz::User;
use concurrency_limit::{ConcurrencyLimit, LimitReached, Permit};
use flow_control::Classification;
use flow_control::bootstrap_objects::is_system_priority_level;

/// Limits the bytes of one sort, such as those of bodies. One user has a part of them. A quarter is only for requests of the
/// priority levels that keep the cluster running.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    /// For requests of all levels.
    common_bytes_limit: Arc<ConcurrencyLimit>,
    system_bytes_limit: Arc<ConcurrencyLimit>,
}

impl MemoryBudget {
    /// Makes a budget of `bytes_max` bytes. One user may reserve at most `response_bytes_per_user_max` of the common
    /// part.
    pub(crate) fn new(bytes_max: usize, response_bytes_per_user_max: usize) -> Self {
        let system_bytes = bytes_max / 4;
        let common_bytes = bytes_max - system_bytes;
        Self {
            common_bytes_limit: Arc::new(ConcurrencyLimit::new_with_limit_per_user(
                common_bytes,
                response_bytes_per_user_max,
            )),
            system_bytes_limit: Arc::new(ConcurrencyLimit::new(system_bytes)),
        }
    }

    /// Reserves bytes for a request. Those of an exempt priority level are counted and never refused.
    ///
    /// # Errors
    /// [`LimitReached`] if fewer bytes are free, in total or for the user.
    pub(crate) fn reserve(
        &self,
        user: &User,
        classification: &Classification,
        n_bytes: usize,
    ) -> Result<Permit, LimitReached> {
        let user = authz::user_limit_key(&user.name);
        if classification.is_exempt() {
            return Ok(self.common_bytes_limit.acquire_permits_beyond_limit(user, n_bytes));
        }
        match self.common_bytes_limit.acquire_permits(user, n_bytes) {
            Err(LimitReached::Total { .. })
                if is_system_priority_level(classification.level_name()) =>
            {
                self.system_bytes_limit.acquire_permits(user, n_bytes)
            }
            other => other,
        }
    }

    /// The part that requests of all levels share.
    pub(crate) fn common_bytes_limit(&self) -> &Arc<ConcurrencyLimit> {
        &self.common_bytes_limit
    }

    /// The maximum number of bytes that one user may reserve.
    pub(crate) fn budget_bytes_per_user_max(&self) -> usize {
        self.common_bytes_limit.permits_per_user_max()
    }

    /// The bytes that are reserved.
    pub(crate) fn n_bytes_in_use(&self) -> usize {
        self.common_bytes_limit.n_permits_in_use() + self.system_bytes_limit.n_permits_in_use()
    }
}
