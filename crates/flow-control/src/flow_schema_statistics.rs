//! Counts what happens to the requests of one flow schema, for metrics.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::flow_controller::RejectionReason;

/// The upper bounds of the buckets in milliseconds, as in Kubernetes.
const BUCKETS_MS: [u64; 13] =
    [0, 5, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000];

/// The counters of one flow schema. All accesses are relaxed, because nothing but metrics depends on them.
#[derive(Debug, Default)]
pub(crate) struct FlowSchemaStatistics {
    n_dispatched_requests: AtomicU64,
    n_rejected_requests_by_reason: [AtomicU64; RejectionReason::ALL.len()],
    pub(crate) n_waiting_requests: Gauge,
    pub(crate) n_executing_requests: Gauge,
    pub(crate) seats_in_use: Gauge,
    dispatched_wait_durations: Histogram,
    rejected_wait_durations: Histogram,
    execution_durations: Histogram,
    watch_initialization_durations: Histogram,
}

/// A count that goes up and down, such as that of the requests that wait.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicUsize);

#[derive(Debug, Default)]
struct Histogram {
    /// The observations of each bucket; those that are longer than every bound are last.
    bucket_counts: [AtomicU64; BUCKETS_MS.len() + 1],
    duration_sum_nanos: AtomicU64,
}

/// The statistics of the requests of one flow schema.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSchemaUsage {
    /// The name of the flow schema.
    pub flow_schema_name: String,
    /// The name of its priority level.
    pub priority_level_name: String,
    /// The requests that got a seat.
    pub n_dispatched_requests: u64,
    /// The requests that got no seat, by reason.
    pub n_rejected_requests_by_reason: [(RejectionReason, u64); RejectionReason::ALL.len()],
    /// The requests that wait for a seat now.
    pub n_waiting_requests: usize,
    /// The requests that hold a seat now.
    pub n_executing_requests: usize,
    /// The seats that these requests hold.
    pub seats_in_use: usize,
    /// How long requests waited that got a seat.
    pub dispatched_wait_durations: DurationHistogram,
    /// How long requests waited that got no seat.
    pub rejected_wait_durations: DurationHistogram,
    /// How long requests other than watches held their seats.
    pub execution_durations: DurationHistogram,
    /// How long watches held their seats, which is until their response begins.
    pub watch_initialization_durations: DurationHistogram,
}

/// A histogram of durations at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct DurationHistogram {
    /// The upper bound of each bucket in seconds, and the observations up to it.
    pub cumulative_buckets: [(f64, u64); BUCKETS_MS.len()],
    /// The number of all observations.
    pub n_observations: u64,
    /// The sum of all observations in seconds.
    pub duration_sum_seconds: f64,
}

impl FlowSchemaStatistics {
    pub(crate) fn record_dispatch(&self, waited: Duration) {
        self.n_dispatched_requests.fetch_add(1, Ordering::Relaxed);
        self.dispatched_wait_durations.observe_duration(waited);
    }

    pub(crate) fn record_rejection(&self, why: RejectionReason, waited: Duration) {
        for (rejection, counter) in
            RejectionReason::ALL.into_iter().zip(&self.n_rejected_requests_by_reason)
        {
            if rejection == why {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.rejected_wait_durations.observe_duration(waited);
    }

    pub(crate) fn record_execution(&self, is_watch: bool, took: Duration) {
        if is_watch { &self.watch_initialization_durations } else { &self.execution_durations }
            .observe_duration(took);
    }

    pub(crate) fn to_flow_schema_usage(&self, schema: &str, level: &str) -> FlowSchemaUsage {
        let mut n_rejected_requests_by_reason =
            RejectionReason::ALL.map(|rejection| (rejection, 0));
        for ((_, n), counter) in
            n_rejected_requests_by_reason.iter_mut().zip(&self.n_rejected_requests_by_reason)
        {
            *n = counter.load(Ordering::Relaxed);
        }
        FlowSchemaUsage {
            flow_schema_name: schema.to_owned(),
            priority_level_name: level.to_owned(),
            n_dispatched_requests: self.n_dispatched_requests.load(Ordering::Relaxed),
            n_rejected_requests_by_reason,
            n_waiting_requests: self.n_waiting_requests.get(),
            n_executing_requests: self.n_executing_requests.get(),
            seats_in_use: self.seats_in_use.get(),
            dispatched_wait_durations: self.dispatched_wait_durations.to_duration_histogram(),
            rejected_wait_durations: self.rejected_wait_durations.to_duration_histogram(),
            execution_durations: self.execution_durations.to_duration_histogram(),
            watch_initialization_durations: self
                .watch_initialization_durations
                .to_duration_histogram(),
        }
    }
}

impl Gauge {
    pub(crate) fn increase_gauge(&self, n: usize) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn decrease_gauge(&self, n: usize) {
        self.0.fetch_sub(n, Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Histogram {
    fn observe_duration(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_MS.iter().take_while(|bound| nanos > **bound * 1_000_000).count();
        if let Some(counter) = self.bucket_counts.get(bucket) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.duration_sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    fn to_duration_histogram(&self) -> DurationHistogram {
        let mut buckets = BUCKETS_MS.map(|bound| (bound as f64 / 1_000.0, 0));
        let mut n_observations = 0;
        let mut counters = self.bucket_counts.iter();
        for ((_, n), counter) in buckets.iter_mut().zip(counters.by_ref()) {
            n_observations += counter.load(Ordering::Relaxed);
            *n = n_observations;
        }
        let n_longer: u64 = counters.map(|counter| counter.load(Ordering::Relaxed)).sum();
        DurationHistogram {
            cumulative_buckets: buckets,
            n_observations: n_observations + n_longer,
            duration_sum_seconds: Duration::from_nanos(
                self.duration_sum_nanos.load(Ordering::Relaxed),
            )
            .as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_buckets_that_it_fits_into() {
        let histogram = Histogram::default();
        for millis in [0, 5, 6, 30_000, 30_001] {
            histogram.observe_duration(Duration::from_millis(millis));
        }
        let read = histogram.to_duration_histogram();
        assert_eq!(read.cumulative_buckets[..4], [(0.0, 1), (0.005, 2), (0.02, 3), (0.05, 3)]);
        assert_eq!(read.cumulative_buckets.last(), Some(&(30.0, 4)));
        assert_eq!(read.n_observations, 5);
        assert!((read.duration_sum_seconds - 60.012).abs() < 1e-9);
    }
}
