//! Objects with pending initializers: how long creators wait, timeouts and read repairs.

use std::time::Duration;

use prometheus::{Histogram, IntCounterVec, Registry};

use crate::bounded_names::BoundedNames;
use crate::register_metrics::{
    NAME_LABEL, register_counter_vec, register_histogram, retain_series_by_name,
};

/// Buckets for the time that a create request waits, in seconds. The first ones fit an initializer that acts at once,
/// 5.5, 10.5 and 20.5 fit one, two and four initializers that time out, and 34 is the longest duration of a write.
const WAIT_BUCKETS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.5, 10.5, 20.5, 34.0];

/// The reaction of the server to an initializer that does not act in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InitializerTimeoutAction {
    /// The initializer is removed from the pending list.
    Removed,
    /// The initializer stays pending, and the create request fails.
    Failed,
}

impl InitializerTimeoutAction {
    /// All reactions to a timeout.
    pub const ALL: [Self; 2] = [Self::Removed, Self::Failed];

    /// The value of the label `action`.
    #[must_use]
    pub const fn label_value(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Failed => "failed",
        }
    }
}

#[derive(Debug)]
pub(crate) struct InitializerWaits {
    initializer_names: BoundedNames,
    initializer_wait_durations: Histogram,
    initializer_timeout_counts: IntCounterVec,
    read_repair_counts: IntCounterVec,
}

impl InitializerWaits {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            initializer_names: BoundedNames::default(),
            initializer_wait_durations: register_histogram(
                registry,
                "portcullis_initializer_wait_seconds",
                &WAIT_BUCKETS,
                "[ALPHA] Time that a create request waited for the initializers of its object.",
            )?,
            initializer_timeout_counts: register_counter_vec(
                registry,
                "portcullis_initializer_timeouts_total",
                &[NAME_LABEL, "action"],
                "[ALPHA] Objects for which an initializer did not act in time, by the action of the server.",
            )?,
            read_repair_counts: register_counter_vec(
                registry,
                "portcullis_initializer_read_repairs_total",
                &[NAME_LABEL],
                "[ALPHA] Objects from which a read removed an initializer that was pending long after its timeout.",
            )?,
        })
    }

    pub(crate) fn record_initializer_wait(&self, took: Duration) {
        self.initializer_wait_durations.observe(took.as_secs_f64());
    }

    pub(crate) fn count_initializer_timeout(&self, name: &str, action: InitializerTimeoutAction) {
        let name = self.initializer_names.label_value_for(name);
        self.initializer_timeout_counts.with_label_values(&[name, action.label_value()]).inc();
    }

    pub(crate) fn count_read_repair(&self, name: &str) {
        self.read_repair_counts
            .with_label_values(&[self.initializer_names.label_value_for(name)])
            .inc();
    }

    /// Removes the series of initializers for which `is_kept` is false.
    pub(crate) fn retain_initializer_series(&self, is_kept: &dyn Fn(&str) -> bool) {
        self.initializer_names.retain_labelled_names(is_kept);
        retain_series_by_name(&self.initializer_timeout_counts, is_kept);
        retain_series_by_name(&self.read_repair_counts, is_kept);
    }
}
