//! What becomes of objects that wait for initializers (admission §6).

use std::time::Duration;

use prometheus::{Histogram, IntCounterVec, Registry};

use crate::family::{NAME, counters, histogram, retain};
use crate::names::Names;

/// Classes of times that a creator waits: from an initializer that acts at once, over one, two and
/// four dead ones, to the longest that a request may take.
const WAIT_SECONDS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.5, 10.5, 20.5, 34.0];

/// What is done about an initializer that did not act in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeoutAction {
    /// The object no longer waits for it.
    Removed,
    /// The object goes on waiting, and its creator is told so.
    Failed,
}

impl TimeoutAction {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Removed, Self::Failed];

    /// The label `action`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Failed => "failed",
        }
    }
}

/// The numbers of all initializers.
#[derive(Debug)]
pub(crate) struct Initializers {
    names: Names,
    wait: Histogram,
    timeouts: IntCounterVec,
    repairs: IntCounterVec,
}

impl Initializers {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            names: Names::default(),
            wait: histogram(
                registry,
                "portcullis_initializer_wait_seconds",
                &WAIT_SECONDS,
                "[ALPHA] Time that the creator of an object waited for its initializers.",
            )?,
            timeouts: counters(
                registry,
                "portcullis_initializer_timeouts_total",
                &[NAME, "action"],
                "[ALPHA] Objects for which an initializer did not act in time, by what was done \
                 about it.",
            )?,
            repairs: counters(
                registry,
                "portcullis_initializer_read_repairs_total",
                &[NAME],
                "[ALPHA] Objects that were found waiting for an initializer long after its time, and \
                 no longer do.",
            )?,
        })
    }

    pub(crate) fn waited(&self, took: Duration) {
        self.wait.observe(took.as_secs_f64());
    }

    pub(crate) fn timed_out(&self, name: &str, action: TimeoutAction) {
        let name = self.names.label(name);
        self.timeouts.with_label_values(&[name, action.label()]).inc();
    }

    pub(crate) fn repaired(&self, name: &str) {
        self.repairs.with_label_values(&[self.names.label(name)]).inc();
    }

    /// Drops the series of initializers that are gone.
    pub(crate) fn retain(&self, is_kept: &dyn Fn(&str) -> bool) {
        self.names.retain(is_kept);
        retain(&self.timeouts, is_kept);
        retain(&self.repairs, is_kept);
    }
}
