//! Durations in nanoseconds, the cost of the clock, and percentiles.

use std::time::{Duration, Instant};

/// Converts a duration to whole nanoseconds.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The cost of reading the clock twice, as the median of many measurements.
pub(crate) fn clock_ns() -> u64 {
    let mut costs: Vec<u64> = (0..10_001).map(|_| nanoseconds(Instant::now().elapsed())).collect();
    costs.sort_unstable();
    percentile(&costs, 50)
}

/// A percentile of sorted values; 0 if there are none.
pub(crate) fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_the_list() {
        let sorted: Vec<u64> = (0..=200).collect();
        assert_eq!(
            [0, 50, 99, 100].map(|percent| percentile(&sorted, percent)),
            [0, 100, 198, 200]
        );
        assert_eq!(percentile(&[], 50), 0);
    }
}
