//! Leases for keys with a time to live.
//!
//! One lease per key would cost etcd as much as the key. So keys that expire at about the same time share a
//! lease, and etcd deletes them in one revision.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use store::Unavailable;
use tokio::time::Instant;

use crate::call_error::CallError;
use crate::client::Client;
use crate::etcd_messages::{LeaseGrantRequest, LeaseGrantResponse};
use crate::member::LEASE_GRANT;

/// A key may live longer by this fraction (1/20) of its time to live, so that it can share a lease.
const SHARING_WINDOW_DIVISOR: u32 = 20;
/// Minimum of the extra time that a key may live: a heartbeat every second must not need a new lease each
/// time.
const SHARING_WINDOW_MIN: Duration = Duration::from_secs(1);
/// Maximum of the extra time that a key may live.
const SHARING_WINDOW_MAX: Duration = Duration::from_secs(60);
/// Maximum keys per lease, because etcd deletes them in one transaction.
const KEYS_PER_LEASE_MAX: u32 = 1000;
/// Maximum leases that accept more keys. A server uses few different times to live.
const OPEN_LEASES_MAX: usize = 16;

/// Leases that accept more keys, newest last.
#[derive(Debug, Default)]
pub(crate) struct LeasePool {
    open_leases: Mutex<Vec<Lease>>,
    /// Held while a lease is granted, so that concurrent writers share it.
    grant_lock: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Lease {
    id: i64,
    /// A lower bound of the expiry time.
    expires_at_min: Instant,
    n_keys: u32,
}

impl LeasePool {
    /// Returns a lease that ends after `ttl`, and not much later.
    pub(crate) async fn lease_for_ttl(
        &self,
        client: &Client,
        ttl: Duration,
    ) -> Result<i64, CallError> {
        if let Some(id) = reuse_lease(&mut self.lock_open_leases(), Instant::now(), ttl) {
            return Ok(id);
        }
        let _granting = self.grant_lock.lock().await;
        let now = Instant::now();
        if let Some(id) = reuse_lease(&mut self.lock_open_leases(), now, ttl) {
            return Ok(id);
        }
        let wanted = ttl.saturating_add(lease_sharing_window(ttl));
        let ttl_seconds = i64::try_from(wanted.as_secs()).unwrap_or(i64::MAX).saturating_add(1);
        let request = LeaseGrantRequest { ttl_seconds: ttl_seconds.min(TTL_SECONDS_MAX) };
        let granted: LeaseGrantResponse = client.call(LEASE_GRANT, &request).await?;
        // With the id 0 etcd would keep the key for ever.
        if granted.id == 0 {
            return Err(Unavailable { reason: "etcd granted no lease".into() }.into());
        }
        // The lease began after the request was sent, so this is a lower bound.
        let time = Duration::from_secs(u64::try_from(granted.ttl_seconds).unwrap_or_default());
        if let Some(ends_at) = now.checked_add(time) {
            let mut open = self.lock_open_leases();
            if open.len() >= OPEN_LEASES_MAX {
                open.remove(0);
            }
            open.push(Lease { id: granted.id, expires_at_min: ends_at, n_keys: 1 });
        }
        Ok(granted.id)
    }

    /// Removes a lease that etcd no longer knows.
    pub(crate) fn forget_lease(&self, id: i64) {
        self.lock_open_leases().retain(|lease| lease.id != id);
    }

    fn lock_open_leases(&self) -> std::sync::MutexGuard<'_, Vec<Lease>> {
        self.open_leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The longest lease of etcd in seconds.
const TTL_SECONDS_MAX: i64 = 9_000_000_000;

fn lease_sharing_window(ttl: Duration) -> Duration {
    (ttl / SHARING_WINDOW_DIVISOR).clamp(SHARING_WINDOW_MIN, SHARING_WINDOW_MAX)
}

/// Adds a key to a lease that fits, if there is one, and drops expired and full leases.
fn reuse_lease(open: &mut Vec<Lease>, now: Instant, ttl: Duration) -> Option<i64> {
    open.retain(|lease| lease.expires_at_min > now && lease.n_keys < KEYS_PER_LEASE_MAX);
    let soonest = now.checked_add(ttl)?;
    // etcd counts in seconds, and rounding up may have added one.
    let latest = soonest.checked_add(lease_sharing_window(ttl) + Duration::from_secs(1))?;
    let fits =
        |lease: &&mut Lease| lease.expires_at_min >= soonest && lease.expires_at_min <= latest;
    let lease = open.iter_mut().find(fits)?;
    lease.n_keys += 1;
    Some(lease.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease_for_ttl(id: i64, ends_at: Instant) -> Lease {
        Lease { id, expires_at_min: ends_at, n_keys: 1 }
    }

    #[test]
    fn a_lease_is_shared_within_the_window() {
        let now = Instant::now();
        let hour = Duration::from_secs(3600);
        let second = Duration::from_secs(1);
        let ends_at = now + hour + SHARING_WINDOW_MAX + second;
        let mut open = vec![lease_for_ttl(7, ends_at)];
        assert_eq!(reuse_lease(&mut open, now, hour), Some(7));
        // A minute later the lease still lasts long enough; after that it does not.
        assert_eq!(reuse_lease(&mut open, now + SHARING_WINDOW_MAX + second, hour), Some(7));
        assert_eq!(reuse_lease(&mut open, now + SHARING_WINDOW_MAX + 2 * second, hour), None);
        // A much shorter time to live does not fit.
        assert_eq!(reuse_lease(&mut open, now, hour - SHARING_WINDOW_MAX), None);
        assert_eq!(open[0].n_keys, 3);
    }

    #[test]
    fn the_keys_of_a_lease_are_limited() {
        let now = Instant::now();
        let ttl = Duration::from_secs(100);
        let mut open =
            vec![Lease { id: 7, expires_at_min: now + ttl, n_keys: KEYS_PER_LEASE_MAX - 1 }];
        assert_eq!(reuse_lease(&mut open, now, ttl), Some(7));
        assert_eq!(reuse_lease(&mut open, now, ttl), None);
        assert_eq!(open, []);
    }

    #[test]
    fn the_sharing_window_is_a_bounded_fraction() {
        assert_eq!(lease_sharing_window(Duration::from_secs(5)), SHARING_WINDOW_MIN);
        assert_eq!(lease_sharing_window(Duration::from_secs(20)), SHARING_WINDOW_MIN);
        assert_eq!(lease_sharing_window(Duration::from_secs(100)), Duration::from_secs(5));
        assert_eq!(lease_sharing_window(Duration::from_secs(1200)), SHARING_WINDOW_MAX);
        assert_eq!(lease_sharing_window(Duration::from_secs(1220)), SHARING_WINDOW_MAX);
    }
}
