//! Measures time and memory of decisions.
//!
//! Each decision is timed separately, and the cost of the clock is subtracted. A 99th percentile of batches
//! would hide slow decisions among fast ones.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ::authz::{Attributes, Decision};

use crate::MEMORY;
use crate::authz::request_pool::{RequestPool, preload};
use crate::timing::{clock_ns, nanoseconds, percentile};

/// The number of passes over all requests.
const PASSES: usize = 2;

/// The amounts of work of one run.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// The number of requests of each kind of user.
    pub(crate) n_requests: usize,
    /// The longest time for which the naive implementation runs, for each kind of user.
    pub(crate) reference_time_max: Duration,
    /// The number of small policies that are generated only to compare decisions.
    pub(crate) n_small_policies: usize,
    /// The number of timed changes of one object.
    pub(crate) n_updates: usize,
    /// The number of timed who-can queries.
    pub(crate) n_who_can: usize,
}

impl Effort {
    /// The amounts for the published tables.
    pub(crate) const FULL: Self = Self {
        n_requests: 131_072,
        reference_time_max: Duration::from_secs(2),
        n_small_policies: 200,
        n_updates: 3000,
        n_who_can: 60,
    };
    /// The amounts for a test that the benchmark still runs.
    pub(crate) const QUICK: Self = Self {
        n_requests: 400,
        reference_time_max: Duration::from_millis(300),
        n_small_policies: 2,
        n_updates: 20,
        n_who_can: 5,
    };
}

/// Percentiles of many durations, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Times {
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    pub(crate) max_ns: f64,
}

/// Durations without the cost of the clock.
pub(crate) struct Samples {
    clock_ns: u64,
    all_ns: Vec<u64>,
}

impl Samples {
    pub(crate) fn new() -> Self {
        Self { clock_ns: clock_ns(), all_ns: Vec::new() }
    }

    pub(crate) fn add(&mut self, time: Duration) {
        self.all_ns.push(nanoseconds(time).saturating_sub(self.clock_ns));
    }

    pub(crate) fn times(mut self) -> Times {
        self.all_ns.sort_unstable();
        let at = |percent| percentile(&self.all_ns, percent) as f64;
        Times { p50_ns: at(50), p99_ns: at(99), max_ns: at(100) }
    }
}

/// Decides all requests one after the other, and then all of them again. The shorter time of each request
/// counts, so that other programs on the machine do not. Both passes find the index equally cold, because
/// the requests in between fill the cache.
pub(crate) fn time_decisions(
    pool: &RequestPool,
    decide: impl Fn(&Attributes<'_>) -> Decision,
) -> Times {
    let mut least = vec![Duration::MAX; pool.requests.len()];
    for _ in 0..PASSES {
        for ((attributes, _), least) in pool.iter().zip(&mut least) {
            preload(&attributes);
            let start = Instant::now();
            drop(black_box(decide(black_box(&attributes))));
            *least = start.elapsed().min(*least);
        }
    }
    let mut samples = Samples::new();
    least.into_iter().for_each(|time| samples.add(time));
    samples.times()
}

/// Times a function for each item and keeps the shortest time of the rounds.
pub(crate) fn time_least<T>(items: &[T], n_rounds: usize, mut run: impl FnMut(&T)) -> Times {
    let mut samples = Samples::new();
    for item in items {
        let once = (0..n_rounds).map(|_| {
            let start = Instant::now();
            run(item);
            start.elapsed()
        });
        samples.add(once.min().unwrap_or_default());
    }
    samples.times()
}

/// Times changes that cannot be repeated.
pub(crate) fn time_changes<T>(changes: Vec<T>, mut apply: impl FnMut(T)) -> Times {
    let mut samples = Samples::new();
    for change in changes {
        let start = Instant::now();
        apply(change);
        samples.add(start.elapsed());
    }
    samples.times()
}

/// Builds a value from copies of its parts three times and returns the median time.
pub(crate) fn time_build<P: Clone, T>(parts: &P, build: impl Fn(P) -> T) -> Duration {
    let mut times = [(); 3].map(|()| {
        let parts = parts.clone();
        let start = Instant::now();
        let built = black_box(build(parts));
        let time = start.elapsed();
        drop(built);
        time
    });
    times.sort_unstable();
    times[1]
}

/// The bytes that stay allocated for a new value.
pub(crate) fn bytes_of<T>(make: impl FnOnce() -> T) -> f64 {
    let before = MEMORY.allocated();
    let made = black_box(make());
    let bytes = MEMORY.allocated().saturating_sub(before);
    drop(made);
    bytes as f64
}

/// The largest number of bytes that one allowed decision allocates, whether it frees them or not.
pub(crate) fn allocated_max(
    pool: &RequestPool,
    decide: impl Fn(&Attributes<'_>) -> Decision,
) -> usize {
    let allowed = pool.iter().filter(|(_, is_allowed)| *is_allowed);
    let counts = allowed.map(|(attributes, _)| {
        let before = MEMORY.total_allocated();
        drop(black_box(decide(black_box(&attributes))));
        MEMORY.total_allocated() - before
    });
    counts.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_samples() {
        let samples = Samples { clock_ns: 10, all_ns: (0..=100).rev().collect() };
        let want = Times { p50_ns: 50.0, p99_ns: 99.0, max_ns: 100.0 };
        assert_eq!(samples.times(), want);
        let mut samples = Samples { clock_ns: 10, all_ns: Vec::new() };
        samples.add(Duration::from_nanos(15));
        samples.add(Duration::from_nanos(5));
        assert_eq!(samples.all_ns, [5, 0]);
        let nothing = Samples { clock_ns: 0, all_ns: Vec::new() }.times();
        assert_eq!(nothing, Times { p50_ns: 0.0, p99_ns: 0.0, max_ns: 0.0 });
    }

    /// Other tests allocate at the same time, so some attempts count bytes of others too.
    #[test]
    fn what_is_kept_is_counted() {
        let makes = || Vec::<u8>::with_capacity(1000);
        assert!((0..1000).any(|_| bytes_of(makes) == 1000.0));
        assert!((0..1000).any(|_| bytes_of(|| drop(makes())) == 0.0));
    }
}
