//! Limits on the number of requests that are processed at one time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The limit that a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Any verb but get, list and watch.
    Mutating,
    /// The verbs get and list. Watches last long and are not counted.
    ReadOnly,
}

/// Two limited counters of requests in flight.
///
/// Mutating and read-only requests have separate limits, so that a flood of one kind can not block
/// the other.
#[derive(Debug, Clone)]
pub struct InFlightLimiter(Arc<InFlightCounters>);

#[derive(Debug)]
struct InFlightCounters {
    mutating: LimitedCounter,
    read_only: LimitedCounter,
}

#[derive(Debug)]
struct LimitedCounter {
    count: AtomicUsize,
    /// `None` means no limit.
    max: Option<usize>,
}

/// The permit to process one request. Dropping it frees the slot.
#[derive(Debug)]
#[must_use = "the request counts only while the permit lives"]
pub struct InFlightPermit {
    counters: Arc<InFlightCounters>,
    kind: RequestKind,
}

impl InFlightLimiter {
    /// Takes the limits of both kinds; zero means no limit.
    pub fn new(mutating_max: usize, read_only_max: usize) -> Self {
        let counter =
            |max| LimitedCounter { count: AtomicUsize::new(0), max: (max > 0).then_some(max) };
        Self(Arc::new(InFlightCounters {
            mutating: counter(mutating_max),
            read_only: counter(read_only_max),
        }))
    }

    /// Acquires a permit, or returns `None` if the limit is reached.
    pub fn try_acquire(&self, kind: RequestKind) -> Option<InFlightPermit> {
        let counter = self.0.counter_for(kind);
        let max = counter.max.unwrap_or(usize::MAX);
        counter
            .count
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                (count < max).then_some(count + 1)
            })
            .ok()
            .map(|_| self.new_permit(kind))
    }

    /// Acquires a permit without regard to the limit, for exempt users. It counts like any other.
    pub fn acquire_exempt(&self, kind: RequestKind) -> InFlightPermit {
        self.0.counter_for(kind).count.fetch_add(1, Ordering::Relaxed);
        self.new_permit(kind)
    }

    /// The number of requests of a kind in flight.
    pub fn count(&self, kind: RequestKind) -> usize {
        self.0.counter_for(kind).count.load(Ordering::Relaxed)
    }

    fn new_permit(&self, kind: RequestKind) -> InFlightPermit {
        InFlightPermit { counters: Arc::clone(&self.0), kind }
    }
}

impl InFlightCounters {
    fn counter_for(&self, kind: RequestKind) -> &LimitedCounter {
        match kind {
            RequestKind::Mutating => &self.mutating,
            RequestKind::ReadOnly => &self.read_only,
        }
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        self.counters.counter_for(self.kind).count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admits_up_to_the_limit_and_again_when_one_ends() {
        let in_flight = InFlightLimiter::new(1, 2);
        let first = in_flight.try_acquire(RequestKind::ReadOnly).unwrap();
        let _second = in_flight.try_acquire(RequestKind::ReadOnly).unwrap();
        assert!(in_flight.try_acquire(RequestKind::ReadOnly).is_none());
        assert!(in_flight.try_acquire(RequestKind::Mutating).is_some());
        drop(first);
        assert_eq!(in_flight.count(RequestKind::ReadOnly), 1);
        assert!(in_flight.try_acquire(RequestKind::ReadOnly).is_some());
    }

    #[test]
    fn the_exempt_are_admitted_past_the_limit() {
        let in_flight = InFlightLimiter::new(1, 1);
        let _first = in_flight.try_acquire(RequestKind::Mutating).unwrap();
        let exempt = in_flight.acquire_exempt(RequestKind::Mutating);
        assert_eq!(in_flight.count(RequestKind::Mutating), 2);
        drop(exempt);
        assert_eq!(in_flight.count(RequestKind::Mutating), 1);
    }

    #[test]
    fn zero_does_not_limit() {
        let in_flight = InFlightLimiter::new(0, 0);
        let permits: Vec<_> =
            (0..1000).map(|_| in_flight.try_acquire(RequestKind::Mutating).unwrap()).collect();
        assert_eq!(in_flight.count(RequestKind::Mutating), permits.len());
    }
}
