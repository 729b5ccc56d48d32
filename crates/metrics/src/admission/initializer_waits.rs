//! Objects with pending initializers: how long creators wait, timeouts and read repairs.

use std::time::Duration;

use prometheus::{Histogram, IntCounterVec, Registry};

use crate::bounded_names::BoundedNames;
use crate::register::{NAME_LABEL, counter_vec, histogram, retain_names};

/// Buckets for the time that a creator waits, in seconds: from an initializer that acts at once, over one, two and four
/// that run into their timeout, to the longest time that a request may take.
const WAIT_BUCKETS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.5, 10.5, 20.5, 34.0];

/// The reaction of the server to an initializer that does not act in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeoutAction {
    /// The initializer is removed from the pending list.
    Removed,
    /// The initializer stays pending, and the create request fails.
    Failed,
}

impl TimeoutAction {
    /// All actions on timeouts.
    pub const ALL: [Self; 2] = [Self::Removed, Self::Failed];

    /// The value of the label `action`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Failed => "failed",
        }
    }
}

#[derive(Debug)]
pub(crate) struct InitializerWaits {
    initializer_names: BoundedNames,
    wait_durations: Histogram,
    timeouts: IntCounterVec,
    read_repairs: IntCounterVec,
}

impl InitializerWaits {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            initializer_names: BoundedNames::default(),
            wait_durations: histogram(
                registry,
                "portcullis_initializer_wait_seconds",
                &WAIT_BUCKETS,
                "[ALPHA] Time that the creator of an object waited for its initializers.",
            )?,
            timeouts: counter_vec(
                registry,
                "portcullis_initializer_timeouts_total",
                &[NAME_LABEL, "action"],
                "[ALPHA] Objects for which an initializer did not act in time, by what was done \
                 about it.",
            )?,
            read_repairs: counter_vec(
                registry,
                "portcullis_initializer_read_repairs_total",
                &[NAME_LABEL],
                "[ALPHA] Objects that were found waiting for an initializer long after its time, and \
                 no longer do.",
            )?,
        })
    }

    pub(crate) fn record_wait(&self, took: Duration) {
        self.wait_durations.observe(took.as_secs_f64());
    }

    pub(crate) fn count_timeout(&self, name: &str, action: TimeoutAction) {
        let name = self.initializer_names.label_value(name);
        self.timeouts.with_label_values(&[name, action.label()]).inc();
    }

    pub(crate) fn count_read_repair(&self, name: &str) {
        self.read_repairs.with_label_values(&[self.initializer_names.label_value(name)]).inc();
    }

    /// Removes the series of initializers for which `is_kept` is false.
    pub(crate) fn retain(&self, is_kept: &dyn Fn(&str) -> bool) {
        self.initializer_names.retain(is_kept);
        retain_names(&self.timeouts, is_kept);
        retain_names(&self.read_repairs, is_kept);
    }
}
