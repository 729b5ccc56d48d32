//! Counters and histograms that many threads increment at once.
//!
//! Every decision increments some counters. With one copy of each counter, all processors would contend for the same
//! few cache lines, which takes longer than many decisions: with two threads, a histogram of the `prometheus` crate takes
//! ten times as long as with one. So each counter has several copies, each thread increments one of them, and a
//! collector adds them up.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use prometheus::proto;

/// The number of copies. If there are more threads, several share a copy.
const STRIPES: usize = 8;

/// Copies of a group of counters, no two of them in one cache line.
#[derive(Debug, Default)]
pub(crate) struct StripedCounters<T> {
    stripes: [CacheAlignedStripe<T>; STRIPES],
}

/// Aligned to twice the usual cache line, since some processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CacheAlignedStripe<T>(T);

impl<T> StripedCounters<T> {
    /// Returns the copy that this thread increments.
    pub(crate) fn stripe_of_this_thread(&self) -> &T {
        thread_local! {
            static STRIPE_INDEX: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        let index = STRIPE_INDEX.with(|index| {
            if index.get() == usize::MAX {
                static NEXT: AtomicUsize = AtomicUsize::new(0);
                index.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
            }
            index.get()
        });
        &self.stripes[index % STRIPES].0
    }

    /// Adds a counter up over all copies.
    pub(crate) fn sum_counter_over_stripes(&self, counter_of: impl Fn(&T) -> &AtomicU64) -> u64 {
        self.stripes.iter().map(|stripe| load_counter(counter_of(&stripe.0))).sum()
    }

    /// Adds a histogram up over all copies.
    pub(crate) fn merge_histogram_over_stripes<const N: usize>(
        &self,
        bounds: &BucketBounds<N>,
        histogram_of: impl Fn(&T) -> &DurationHistogram<N>,
    ) -> MergedHistogram {
        MergedHistogram::merge_histograms(
            bounds,
            self.stripes.iter().map(|stripe| histogram_of(&stripe.0)),
        )
    }
}

/// Adds one to a counter.
pub(crate) fn increment_counter(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Reads the value of a counter.
pub(crate) fn load_counter(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// The inclusive upper bounds of the buckets of a histogram, in nanoseconds.
///
/// They are whole nanoseconds rather than fractions of a second, so that durations are compared and summed without
/// conversion.
pub(crate) type BucketBounds<const N: usize> = [u64; N];

/// A histogram of durations: the number of durations in each bucket, and their sum.
#[derive(Debug)]
pub(crate) struct DurationHistogram<const N: usize> {
    bucket_counts: [AtomicU64; N],
    n_above_bounds: AtomicU64,
    sum_ns: AtomicU64,
}

impl<const N: usize> Default for DurationHistogram<N> {
    fn default() -> Self {
        Self {
            bucket_counts: [const { AtomicU64::new(0) }; N],
            n_above_bounds: AtomicU64::new(0),
            sum_ns: AtomicU64::new(0),
        }
    }
}

impl<const N: usize> DurationHistogram<N> {
    pub(crate) fn observe_duration(&self, bounds: &BucketBounds<N>, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bounds.partition_point(|bound| *bound < ns);
        increment_counter(self.bucket_counts.get(bucket).unwrap_or(&self.n_above_bounds));
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

/// The sum of several histograms at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MergedHistogram {
    /// The upper bound of each bucket in seconds, and the number of durations up to it.
    cumulative_buckets: Vec<(f64, u64)>,
    pub(crate) n_observations: u64,
    sum_seconds: f64,
}

impl MergedHistogram {
    pub(crate) fn merge_histograms<'a, const N: usize>(
        bounds: &BucketBounds<N>,
        histograms: impl Iterator<Item = &'a DurationHistogram<N>> + Clone,
    ) -> Self {
        let sum = |counter_of: fn(&DurationHistogram<N>) -> &AtomicU64| -> u64 {
            histograms
                .clone()
                .map(|histogram| load_counter(counter_of(histogram)))
                .fold(0, u64::wrapping_add)
        };
        let mut n_observations = 0;
        let cumulative_buckets = bounds
            .iter()
            .enumerate()
            .map(|(bucket, bound)| {
                let counts =
                    histograms.clone().filter_map(|histogram| histogram.bucket_counts.get(bucket));
                n_observations += counts.map(load_counter).sum::<u64>();
                (ns_to_seconds(*bound), n_observations)
            })
            .collect();
        n_observations += sum(|histogram| &histogram.n_above_bounds);
        Self {
            cumulative_buckets,
            n_observations,
            sum_seconds: ns_to_seconds(sum(|histogram| &histogram.sum_ns)),
        }
    }
}

impl From<MergedHistogram> for proto::Histogram {
    fn from(merged: MergedHistogram) -> Self {
        let buckets = merged.cumulative_buckets.into_iter().map(|(upper_bound, n_below)| {
            let mut bucket = proto::Bucket::default();
            bucket.set_upper_bound(upper_bound);
            bucket.set_cumulative_count(n_below);
            bucket
        });
        let mut histogram = Self::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(merged.n_observations);
        histogram.set_sample_sum(merged.sum_seconds);
        histogram
    }
}

fn ns_to_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: BucketBounds<2> = [1_000, 5_000_000];

    #[test]
    fn a_bound_belongs_to_the_bucket_below_it() {
        let histogram = DurationHistogram::default();
        for ns in [0, 1_000, 1_001, 5_000_000, 5_000_001] {
            histogram.observe_duration(&BOUNDS, Duration::from_nanos(ns));
        }
        let merged = MergedHistogram::merge_histograms(&BOUNDS, [&histogram].into_iter());
        let want = MergedHistogram {
            cumulative_buckets: vec![(1e-6, 2), (0.005, 4)],
            n_observations: 5,
            sum_seconds: 0.010_002_002,
        };
        assert_eq!(merged, want);
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        #[derive(Default)]
        struct Counters {
            n: AtomicU64,
            times: DurationHistogram<2>,
        }
        let striped = StripedCounters::<Counters>::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * STRIPES {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        increment_counter(&striped.stripe_of_this_thread().n);
                        striped
                            .stripe_of_this_thread()
                            .times
                            .observe_duration(&BOUNDS, Duration::from_micros(2));
                    }
                });
            }
        });
        let want = 2 * STRIPES as u64 * 1000;
        assert_eq!(striped.sum_counter_over_stripes(|counters| &counters.n), want);
        let merged = striped.merge_histogram_over_stripes(&BOUNDS, |counters| &counters.times);
        assert_eq!(merged.n_observations, want);
        assert_eq!(merged.cumulative_buckets, [(1e-6, 0), (0.005, want)]);
    }

    #[test]
    fn the_longest_duration_is_above_all_buckets() {
        let histogram = DurationHistogram::default();
        histogram.observe_duration(&BOUNDS, Duration::MAX);
        let merged = MergedHistogram::merge_histograms(&BOUNDS, [&histogram].into_iter());
        assert_eq!((merged.cumulative_buckets[1].1, merged.n_observations), (0, 1));
    }
}
