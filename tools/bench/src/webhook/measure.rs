//! Time.
//!
//! Every decision is timed by itself: a 99th percentile of batches would hide the slow decisions
//! among the quick ones.

use std::time::Duration;

use crate::timing::{nanoseconds, percentile};

/// What one side did in one round of a contest.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Outcome {
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    /// From the first question to the last answer.
    pub(crate) total_ns: f64,
    /// What one decision allocates: the most bytes on our side, the average number of allocations in Go.
    pub(crate) allocated: u64,
    /// How often the service was asked.
    pub(crate) n_calls: u64,
    pub(crate) n_decisions: usize,
    pub(crate) n_wrong: usize,
}

impl Outcome {
    /// The times of single decisions, and how long all of them took.
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

    /// The same with what another part of the round did wrong.
    pub(crate) fn plus_wrong(self, other: Self) -> Self {
        Self { n_wrong: self.n_wrong + other.n_wrong, ..self }
    }

    /// The best of each number. Other programs on the machine make a round worse, never better; what
    /// is wrong stays wrong.
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
        let outcome = Outcome::of((0..=100).rev().collect(), Duration::from_micros(1));
        assert_eq!((outcome.p50_ns, outcome.p99_ns, outcome.total_ns), (50.0, 99.0, 1000.0));
        assert_eq!(Outcome::of(Vec::new(), Duration::ZERO), Outcome::default());
    }

    #[test]
    fn the_best_time_and_the_most_calls_count() {
        let one = Outcome { p50_ns: 1.0, n_calls: 3, n_wrong: 1, ..Outcome::default() };
        let other = Outcome { p50_ns: 2.0, n_calls: 1, n_wrong: 1, ..Outcome::default() };
        let best = one.best(other);
        assert_eq!((best.p50_ns, best.n_calls, best.n_wrong), (1.0, 3, 2));
    }
}
