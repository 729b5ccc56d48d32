//! LeasePool: how keys with a time to live go away.
//!
//! A lease of its own for every key would cost etcd as much as the key. So writes share one whose end
//! falls in the same window, and all its keys go at once, in one revision.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::call_error::CallError;
use crate::client::Client;
use crate::etcd_messages::{LeaseGrantRequest, LeaseGrantResponse};
use crate::member::LEASE_GRANT;

/// A key may live this part of its time longer, so that others can go with it.
const WINDOW_PART: u32 = 20;
/// But at least this: who writes a key every second to say that it lives shall not need a lease each
/// time.
const WINDOW_MIN: Duration = Duration::from_secs(1);
/// And no longer than this.
const WINDOW_MAX: Duration = Duration::from_secs(60);
/// So many keys share a lease, because they all go in one transaction.
const KEYS_MAX: u32 = 1000;
/// So many leases are open for more keys. A server has few different times to live.
const OPEN_MAX: usize = 16;

/// LeasePool that take more keys, newest last.
#[derive(Debug, Default)]
pub(crate) struct LeasePool {
    open: Mutex<Vec<Lease>>,
    /// Held while a lease is granted, so that those who want the same wait for it.
    granting: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Lease {
    id: i64,
    /// Not later than the moment from which etcd may take it away.
    ends_at: Instant,
    n_keys: u32,
}

impl LeasePool {
    /// A lease that ends no sooner than after `ttl`, and not much later.
    pub(crate) async fn lease_for_ttl(
        &self,
        client: &Client,
        ttl: Duration,
    ) -> Result<i64, CallError> {
        if let Some(id) = reuse_lease(&mut self.open_leases(), Instant::now(), ttl) {
            return Ok(id);
        }
        let _granting = self.granting.lock().await;
        let now = Instant::now();
        if let Some(id) = reuse_lease(&mut self.open_leases(), now, ttl) {
            return Ok(id);
        }
        let wanted = ttl.saturating_add(sharing_window(ttl));
        let ttl_seconds = i64::try_from(wanted.as_secs()).unwrap_or(i64::MAX).saturating_add(1);
        let request = LeaseGrantRequest { ttl_seconds: ttl_seconds.min(TTL_SECONDS_MAX) };
        let granted: LeaseGrantResponse = client.call(LEASE_GRANT, &request).await?;
        // It began after the request was sent, so counting from there is on the safe side.
        let time = Duration::from_secs(u64::try_from(granted.ttl_seconds).unwrap_or_default());
        if let Some(ends_at) = now.checked_add(time) {
            let mut open = self.open_leases();
            if open.len() >= OPEN_MAX {
                open.remove(0);
            }
            open.push(Lease { id: granted.id, ends_at, n_keys: 1 });
        }
        Ok(granted.id)
    }

    /// Forgets a lease that etcd does not know any more.
    pub(crate) fn forget_lease(&self, id: i64) {
        self.open_leases().retain(|lease| lease.id != id);
    }

    fn open_leases(&self) -> std::sync::MutexGuard<'_, Vec<Lease>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The longest that etcd grants, in seconds: some 285 years.
const TTL_SECONDS_MAX: i64 = 9_000_000_000;

fn sharing_window(ttl: Duration) -> Duration {
    (ttl / WINDOW_PART).clamp(WINDOW_MIN, WINDOW_MAX)
}

/// Adds a key to a lease that fits, if there is one, and forgets leases that will never fit.
fn reuse_lease(open: &mut Vec<Lease>, now: Instant, ttl: Duration) -> Option<i64> {
    open.retain(|lease| lease.ends_at > now && lease.n_keys < KEYS_MAX);
    let soonest = now.checked_add(ttl)?;
    // Seconds are the smallest step of etcd, and asking for the next one may have added one.
    let latest = soonest.checked_add(sharing_window(ttl) + Duration::from_secs(1))?;
    let fits = |lease: &&mut Lease| lease.ends_at >= soonest && lease.ends_at <= latest;
    let lease = open.iter_mut().find(fits)?;
    lease.n_keys += 1;
    Some(lease.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease_for_ttl(id: i64, ends_at: Instant) -> Lease {
        Lease { id, ends_at, n_keys: 1 }
    }

    #[test]
    fn a_lease_is_shared_within_the_window() {
        let now = Instant::now();
        let hour = Duration::from_secs(3600);
        let second = Duration::from_secs(1);
        let ends_at = now + hour + WINDOW_MAX + second;
        let mut open = vec![lease(7, ends_at)];
        assert_eq!(reuse_lease(&mut open, now, hour), Some(7));
        // A minute later it is still long enough, and then no more.
        assert_eq!(reuse_lease(&mut open, now + WINDOW_MAX + second, hour), Some(7));
        assert_eq!(reuse_lease(&mut open, now + WINDOW_MAX + 2 * second, hour), None);
        // Who wants much less would live much too long.
        assert_eq!(reuse_lease(&mut open, now, hour - WINDOW_MAX), None);
        assert_eq!(open[0].n_keys, 3);
    }

    #[test]
    fn a_lease_has_a_largest_number_of_keys() {
        let now = Instant::now();
        let ttl = Duration::from_secs(100);
        let mut open = vec![Lease { id: 7, ends_at: now + ttl, n_keys: KEYS_MAX - 1 }];
        assert_eq!(reuse_lease(&mut open, now, ttl), Some(7));
        assert_eq!(reuse_lease(&mut open, now, ttl), None);
        assert_eq!(open, []);
    }

    #[test]
    fn the_window_is_a_part_within_limits() {
        assert_eq!(window(Duration::from_secs(5)), WINDOW_MIN);
        assert_eq!(window(Duration::from_secs(20)), WINDOW_MIN);
        assert_eq!(window(Duration::from_secs(100)), Duration::from_secs(5));
        assert_eq!(window(Duration::from_secs(1200)), WINDOW_MAX);
        assert_eq!(window(Duration::from_secs(1220)), WINDOW_MAX);
    }
}
