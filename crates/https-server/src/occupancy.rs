//! Whether a connection has requests under way, and its eviction.
//!
//! INVARIANT: one atomic number holds both, so a request begins or its connection is evicted, and never both. A
//! connection with a request under way is therefore not evicted in the moment in which the request begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

/// The bit that is set once the connection is evicted. The other bits count requests.
const EVICTED: usize = 1 << (usize::BITS - 1);

/// The requests of one connection that are under way, in their tasks or in their responses.
#[derive(Debug)]
pub(crate) struct Occupancy {
    state: AtomicUsize,
    /// The start of the server, which `idle_since_us` counts from.
    epoch: Instant,
    /// When the last request ended, or when the connection was accepted.
    idle_since_us: AtomicU64,
    evicted: Notify,
}

/// One request, or the task of one request, that keeps its connection from being evicted.
#[derive(Debug)]
pub(crate) struct OccupiedGuard(Arc<Occupancy>);

impl Occupancy {
    pub(crate) fn new(epoch: Instant) -> Self {
        let own = Self {
            state: AtomicUsize::new(0),
            epoch,
            idle_since_us: AtomicU64::new(0),
            evicted: Notify::new(),
        };
        own.record_idle();
        own
    }

    /// Begins a request; `None` if the connection was evicted before.
    pub(crate) fn begin_request(self: &Arc<Self>) -> Option<OccupiedGuard> {
        let begin = |state: usize| (state & EVICTED == 0).then_some(state + 1);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, begin).ok()?;
        Some(OccupiedGuard(Arc::clone(self)))
    }

    /// Evicts the connection unless a request is under way, and returns whether it did.
    pub(crate) fn try_evict(&self) -> bool {
        let evicted = self.state.compare_exchange(0, EVICTED, Ordering::AcqRel, Ordering::Acquire);
        if evicted.is_ok() {
            self.evicted.notify_one();
        }
        evicted.is_ok()
    }

    /// Evicts the connection even if a request is under way. The peer loses the response; the task of the
    /// request runs to its end.
    pub(crate) fn evict(&self) {
        self.state.fetch_or(EVICTED, Ordering::AcqRel);
        self.evicted.notify_one();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.state.load(Ordering::Acquire) == 0
    }

    pub(crate) fn idle_since_us(&self) -> u64 {
        self.idle_since_us.load(Ordering::Relaxed)
    }

    /// Completes when the connection is evicted. One task at a time may wait.
    pub(crate) async fn wait_for_eviction(&self) {
        self.evicted.notified().await;
    }

    fn record_idle(&self) {
        let since = u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.idle_since_us.store(since, Ordering::Relaxed);
    }
}

impl Drop for OccupiedGuard {
    fn drop(&mut self) {
        if self.0.state.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.record_idle();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_evicted_or_begins_a_request() {
        let occupancy = Arc::new(Occupancy::new(Instant::now()));
        let first = occupancy.begin_request().unwrap();
        let second = occupancy.begin_request().unwrap();
        drop(first);
        assert!(!occupancy.is_idle() && !occupancy.try_evict(), "a request is under way");
        drop(second);
        assert!(occupancy.is_idle() && occupancy.try_evict());
        assert!(occupancy.begin_request().is_none(), "it is evicted");
        assert!(!occupancy.try_evict(), "it is evicted once");
    }

    #[tokio::test]
    async fn an_eviction_is_noticed_even_if_nobody_waits_yet() {
        let occupancy = Arc::new(Occupancy::new(Instant::now()));
        let request = occupancy.begin_request();
        occupancy.evict();
        occupancy.wait_for_eviction().await;
        drop(request);
        assert!(!occupancy.is_idle());
    }
}
