//! Measures the times of decisions.
//!
//! Each decision is timed separately. A 99th percentile of batches would hide slow decisions among fast
//! ones.

use std::time::Duration;

use crate::timing::{nanoseconds, percentile};

/// The measurements of one side in one round of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Measurement {
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    /// The time from the first request to the last answer.
    pub(crate) total_ns: f64,
    /// What one decision allocates: the largest number of bytes on our side, the average number of
    /// allocations in Go.
    pub(crate) allocated: u64,
    /// The number of calls that the service received.
    pub(crate) n_calls: u64,
    pub(crate) n_decisions: usize,
    pub(crate) n_wrong: usize,
}

impl Measurement {
    /// Summarizes the times of single decisions and the total time.
    pub(crate) fn of(mut times_ns: Vec<u64>, total: Duration) -> Self {
        times_ns.sort_unstable();
        let at = |percent| percentile(&times_ns, percent) as f64;
        Self {
            p50_ns: at(50),
            p99_ns: at(99),
            total_ns: nanoseconds(total) as f64,
            n_decisions: times_ns.len(),
            ..Self::default()
        }
    }

    /// The same measurements, with the wrong answers of another part of the round added.
    pub(crate) fn with_wrong_answers_of(self, other: Self) -> Self {
        Self { n_wrong: self.n_wrong + other.n_wrong, ..self }
    }

    /// The best value of each number. Other programs on the machine make a round worse, never better. Wrong
    /// answers are added.
    pub(crate) fn best(self, other: Self) -> Self {
        Self {
            p50_ns: self.p50_ns.min(other.p50_ns),
            p99_ns: self.p99_ns.min(other.p99_ns),
            total_ns: self.total_ns.min(other.total_ns),
            allocated: self.allocated.min(other.allocated),
            n_calls: self.n_calls.max(other.n_calls),
            n_decisions: self.n_decisions + other.n_decisions,
            n_wrong: self.n_wrong + other.n_wrong,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_times() {
        let measurement = Measurement::of((0..=100).rev().collect(), Duration::from_micros(1));
        assert_eq!(
            (measurement.p50_ns, measurement.p99_ns, measurement.total_ns),
            (50.0, 99.0, 1000.0)
        );
        assert_eq!(Measurement::of(Vec::new(), Duration::ZERO), Measurement::default());
    }

    #[test]
    fn the_best_time_and_the_most_calls_count() {
        let one = Measurement { p50_ns: 1.0, n_calls: 3, n_wrong: 1, ..Measurement::default() };
        let other = Measurement { p50_ns: 2.0, n_calls: 1, n_wrong: 1, ..Measurement::default() };
        let best = one.best(other);
        assert_eq!((best.p50_ns, best.n_calls, best.n_wrong), (1.0, 3, 2));
    }
}
