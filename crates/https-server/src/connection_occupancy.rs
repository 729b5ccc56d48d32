//! Counts the requests in progress on a connection, and evicts the connection if there are none.
//!
//! INVARIANT: one atomic number holds both, so a request begins or its connection is evicted, and never both. A
//! connection with a request under way is therefore not evicted in the moment in which the request begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

/// The bit that is set once the connection is evicted. The other bits count requests.
const EVICTED: usize = 1 << (usize::BITS - 1);

/// The requests in progress on one connection: their tasks run, or their responses are not sent yet.
#[derive(Debug)]
pub(crate) struct ConnectionOccupancy {
    request_count_and_evicted_bit: AtomicUsize,
    /// The start of the server, which `idle_since_us` counts from.
    server_start: Instant,
    /// When the last request ended, or when the connection was accepted.
    idle_since_us: AtomicU64,
    eviction_notify: Notify,
}

/// One request, or the task of one request, that keeps its connection from being evicted.
#[derive(Debug)]
pub(crate) struct EvictionBlocker(Arc<ConnectionOccupancy>);

impl ConnectionOccupancy {
    pub(crate) fn new(epoch: Instant) -> Self {
        let own = Self {
            request_count_and_evicted_bit: AtomicUsize::new(0),
            server_start: epoch,
            idle_since_us: AtomicU64::new(0),
            eviction_notify: Notify::new(),
        };
        own.record_idle_start();
        own
    }

    /// Begins a request; `None` if the connection was evicted before.
    pub(crate) fn begin_request(self: &Arc<Self>) -> Option<EvictionBlocker> {
        let begin = |state: usize| (state & EVICTED == 0).then_some(state + 1);
        self.request_count_and_evicted_bit
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, begin)
            .ok()?;
        Some(EvictionBlocker(Arc::clone(self)))
    }

    /// Evicts the connection unless a request is under way, and returns whether it did.
    pub(crate) fn evict_if_idle(&self) -> bool {
        let evicted = self.request_count_and_evicted_bit.compare_exchange(
            0,
            EVICTED,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if evicted.is_ok() {
            self.eviction_notify.notify_one();
        }
        evicted.is_ok()
    }

    /// Evicts the connection even if a request is under way. The peer loses the response; the task of the
    /// request runs to its end.
    pub(crate) fn evict_unconditionally(&self) {
        self.request_count_and_evicted_bit.fetch_or(EVICTED, Ordering::AcqRel);
        self.eviction_notify.notify_one();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.request_count_and_evicted_bit.load(Ordering::Acquire) == 0
    }

    pub(crate) fn idle_since_us(&self) -> u64 {
        self.idle_since_us.load(Ordering::Relaxed)
    }

    /// Completes when the connection is evicted. One task at a time may wait.
    pub(crate) async fn wait_for_eviction(&self) {
        self.eviction_notify.notified().await;
    }

    fn record_idle_start(&self) {
        let since = u64::try_from(self.server_start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.idle_since_us.store(since, Ordering::Relaxed);
    }
}

impl Drop for EvictionBlocker {
    fn drop(&mut self) {
        if self.0.request_count_and_evicted_bit.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.record_idle_start();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_evicted_or_begins_a_request() {
        let occupancy = Arc::new(ConnectionOccupancy::new(Instant::now()));
        let first = occupancy.begin_request().unwrap();
        let second = occupancy.begin_request().unwrap();
        drop(first);
        assert!(!occupancy.is_idle() && !occupancy.evict_if_idle(), "a request is under way");
        drop(second);
        assert!(occupancy.is_idle() && occupancy.evict_if_idle());
        assert!(occupancy.begin_request().is_none(), "it is evicted");
        assert!(!occupancy.evict_if_idle(), "it is evicted once");
    }

    #[tokio::test]
    async fn an_eviction_is_noticed_even_if_nobody_waits_yet() {
        let occupancy = Arc::new(ConnectionOccupancy::new(Instant::now()));
        let request = occupancy.begin_request();
        occupancy.evict_unconditionally();
        occupancy.wait_for_eviction().await;
        drop(request);
        assert!(!occupancy.is_idle());
    }
}
