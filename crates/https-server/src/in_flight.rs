//! How many requests are worked on at one time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Which of the two limits a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Any verb but get, list and watch.
    Mutating,
    /// The verbs get and list. Watches last long and are not counted.
    ReadOnly,
}

/// Two counters of requests that are being worked on, each with a limit.
///
/// Writes have their own, so that a flood of reads can not keep them out, and the reverse.
#[derive(Debug, Clone)]
pub struct InFlight(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    mutating: Counter,
    read_only: Counter,
}

#[derive(Debug)]
struct Counter {
    count: AtomicUsize,
    /// `None` does not limit.
    max: Option<usize>,
}

/// The right to work on one request. Dropping it makes room for another.
#[derive(Debug)]
#[must_use = "the request counts only while the permit lives"]
pub struct InFlightPermit {
    counters: Arc<Counters>,
    kind: RequestKind,
}

impl InFlight {
    /// Limits for both kinds; zero does not limit.
    pub fn new(mutating_max: usize, read_only_max: usize) -> Self {
        let counter = |max| Counter { count: AtomicUsize::new(0), max: (max > 0).then_some(max) };
        Self(Arc::new(Counters {
            mutating: counter(mutating_max),
            read_only: counter(read_only_max),
        }))
    }

    /// Admits a request, or `None` if as many as allowed are under way.
    pub fn admit(&self, kind: RequestKind) -> Option<InFlightPermit> {
        let counter = self.0.counter(kind);
        let max = counter.max.unwrap_or(usize::MAX);
        counter
            .count
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                (count < max).then_some(count + 1)
            })
            .ok()
            .map(|_| self.permit(kind))
    }

    /// Admits a request of somebody who is never turned away. It counts like any other.
    pub fn admit_exempt(&self, kind: RequestKind) -> InFlightPermit {
        self.0.counter(kind).count.fetch_add(1, Ordering::Relaxed);
        self.permit(kind)
    }

    /// How many requests of a kind are under way.
    pub fn count(&self, kind: RequestKind) -> usize {
        self.0.counter(kind).count.load(Ordering::Relaxed)
    }

    fn permit(&self, kind: RequestKind) -> InFlightPermit {
        InFlightPermit { counters: Arc::clone(&self.0), kind }
    }
}

impl Counters {
    fn counter(&self, kind: RequestKind) -> &Counter {
        match kind {
            RequestKind::Mutating => &self.mutating,
            RequestKind::ReadOnly => &self.read_only,
        }
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        self.counters.counter(self.kind).count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admits_up_to_the_limit_and_again_when_one_ends() {
        let in_flight = InFlight::new(1, 2);
        let first = in_flight.admit(RequestKind::ReadOnly).unwrap();
        let _second = in_flight.admit(RequestKind::ReadOnly).unwrap();
        assert!(in_flight.admit(RequestKind::ReadOnly).is_none());
        assert!(in_flight.admit(RequestKind::Mutating).is_some());
        drop(first);
        assert_eq!(in_flight.count(RequestKind::ReadOnly), 1);
        assert!(in_flight.admit(RequestKind::ReadOnly).is_some());
    }

    #[test]
    fn the_exempt_are_admitted_past_the_limit() {
        let in_flight = InFlight::new(1, 1);
        let _first = in_flight.admit(RequestKind::Mutating).unwrap();
        let exempt = in_flight.admit_exempt(RequestKind::Mutating);
        assert_eq!(in_flight.count(RequestKind::Mutating), 2);
        drop(exempt);
        assert_eq!(in_flight.count(RequestKind::Mutating), 1);
    }

    #[test]
    fn zero_does_not_limit() {
        let in_flight = InFlight::new(0, 0);
        let permits: Vec<_> =
            (0..1000).map(|_| in_flight.admit(RequestKind::Mutating).unwrap()).collect();
        assert_eq!(in_flight.count(RequestKind::Mutating), permits.len());
    }
}
