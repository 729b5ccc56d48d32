//! Numbers that many threads add to at once.
//!
//! Every decision adds to some. Were there one copy of each, all processors would fight for the same
//! few cache lines, which takes longer than many of the decisions that are counted: with two threads
//! a histogram of the `prometheus` crate takes ten times as long as with one. So there are several
//! copies, each thread keeps to one, and whoever reads adds them up.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use prometheus::proto;

/// How many copies there are. More threads share them in turn.
const STRIPES: usize = 8;

/// Copies of numbers, no two of them in one cache line.
#[derive(Debug, Default)]
pub(crate) struct Striped<T> {
    stripes: [Stripe<T>; STRIPES],
}

/// Twice the usual cache line, since some processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe<T>(T);

impl<T> Striped<T> {
    /// The copy that this thread adds to.
    pub(crate) fn mine(&self) -> &T {
        thread_local! {
            static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        let index = MINE.with(|mine| {
            if mine.get() == usize::MAX {
                static NEXT: AtomicUsize = AtomicUsize::new(0);
                mine.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
            }
            mine.get()
        });
        &self.stripes[index % STRIPES].0
    }

    /// The sum of a number over all copies.
    pub(crate) fn sum(&self, part: impl Fn(&T) -> &AtomicU64) -> u64 {
        self.stripes.iter().map(|stripe| read(part(&stripe.0))).sum()
    }

    /// A distribution over all copies.
    pub(crate) fn distribution<const N: usize>(
        &self,
        bounds: &Bounds<N>,
        part: impl Fn(&T) -> &Histogram<N>,
    ) -> Distribution {
        Distribution::of(bounds, self.stripes.iter().map(|stripe| part(&stripe.0)))
    }
}

/// Adds one.
pub(crate) fn count(number: &AtomicU64) {
    number.fetch_add(1, Ordering::Relaxed);
}

/// What was added so far.
pub(crate) fn read(number: &AtomicU64) -> u64 {
    number.load(Ordering::Relaxed)
}

/// The upper ends of classes of durations in nanoseconds, each belonging to its class.
///
/// Whole nanoseconds rather than parts of a second, so that a duration is compared and summed as it
/// comes from the clock.
pub(crate) type Bounds<const N: usize> = [u64; N];

/// How many durations fell into each class.
#[derive(Debug)]
pub(crate) struct Histogram<const N: usize> {
    counts: [AtomicU64; N],
    n_above: AtomicU64,
    sum_ns: AtomicU64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; N],
            n_above: AtomicU64::new(0),
            sum_ns: AtomicU64::new(0),
        }
    }
}

impl<const N: usize> Histogram<N> {
    /// Counts a duration.
    pub(crate) fn observe(&self, bounds: &Bounds<N>, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let class = bounds.partition_point(|bound| *bound < ns);
        count(self.counts.get(class).unwrap_or(&self.n_above));
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

/// What some histograms hold together at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Distribution {
    /// The upper end of each class in seconds, and how many durations were at most as long.
    classes: Vec<(f64, u64)>,
    pub(crate) n_all: u64,
    sum_seconds: f64,
}

impl Distribution {
    pub(crate) fn of<'a, const N: usize>(
        bounds: &Bounds<N>,
        histograms: impl Iterator<Item = &'a Histogram<N>> + Clone,
    ) -> Self {
        let sum = |part: fn(&Histogram<N>) -> &AtomicU64| -> u64 {
            histograms.clone().map(|histogram| read(part(histogram))).fold(0, u64::wrapping_add)
        };
        let mut n_all = 0;
        let classes = bounds
            .iter()
            .enumerate()
            .map(|(class, bound)| {
                let counts = histograms.clone().filter_map(|histogram| histogram.counts.get(class));
                n_all += counts.map(read).sum::<u64>();
                (seconds(*bound), n_all)
            })
            .collect();
        n_all += sum(|histogram| &histogram.n_above);
        Self { classes, n_all, sum_seconds: seconds(sum(|histogram| &histogram.sum_ns)) }
    }
}

impl From<Distribution> for proto::Histogram {
    fn from(distribution: Distribution) -> Self {
        let buckets = distribution.classes.into_iter().map(|(upper_bound, n_below)| {
            let mut bucket = proto::Bucket::default();
            bucket.set_upper_bound(upper_bound);
            bucket.set_cumulative_count(n_below);
            bucket
        });
        let mut histogram = Self::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(distribution.n_all);
        histogram.set_sample_sum(distribution.sum_seconds);
        histogram
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds<2> = [1_000, 5_000_000];

    #[test]
    fn a_bound_belongs_to_the_class_below_it() {
        let histogram = Histogram::default();
        for ns in [0, 1_000, 1_001, 5_000_000, 5_000_001] {
            histogram.observe(&BOUNDS, Duration::from_nanos(ns));
        }
        let distribution = Distribution::of(&BOUNDS, [&histogram].into_iter());
        let want = Distribution {
            classes: vec![(1e-6, 2), (0.005, 4)],
            n_all: 5,
            sum_seconds: 0.010_002_002,
        };
        assert_eq!(distribution, want);
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        #[derive(Default)]
        struct Share {
            n: AtomicU64,
            times: Histogram<2>,
        }
        let striped = Striped::<Share>::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * STRIPES {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        count(&striped.mine().n);
                        striped.mine().times.observe(&BOUNDS, Duration::from_micros(2));
                    }
                });
            }
        });
        let want = 2 * STRIPES as u64 * 1000;
        assert_eq!(striped.sum(|share| &share.n), want);
        let distribution = striped.distribution(&BOUNDS, |share| &share.times);
        assert_eq!(distribution.n_all, want);
        assert_eq!(distribution.classes, [(1e-6, 0), (0.005, want)]);
    }

    #[test]
    fn the_longest_duration_is_above_all_classes() {
        let histogram = Histogram::default();
        histogram.observe(&BOUNDS, Duration::MAX);
        let distribution = Distribution::of(&BOUNDS, [&histogram].into_iter());
        assert_eq!((distribution.classes[1].1, distribution.n_all), (0, 1));
    }
}
