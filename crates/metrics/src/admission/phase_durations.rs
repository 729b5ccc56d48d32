//! The durations of the two phases of admission, and of each admission controller in them.

use std::time::Duration;

use admission::Operation;
use admission_hooks::Phase;
use prometheus::{HistogramVec, Registry};

use crate::register_metrics::{NAME_LABEL, register_histogram_vec};

/// The upper bounds of the buckets, in seconds.
const BUCKETS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

#[derive(Debug)]
pub(crate) struct PhaseDurations {
    controller_durations: HistogramVec,
    phase_durations: HistogramVec,
}

impl PhaseDurations {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            controller_durations: register_histogram_vec(
                registry,
                "apiserver_admission_controller_admission_duration_seconds",
                &[NAME_LABEL, "type", "operation", "rejected"],
                &BUCKETS,
                "[STABLE] Time that an admission controller took for one request.",
            )?,
            phase_durations: register_histogram_vec(
                registry,
                "apiserver_admission_step_admission_duration_seconds",
                &["type", "operation", "rejected"],
                &BUCKETS,
                "[STABLE] Time that a phase of admission, with all its controllers, took for one \
                 request.",
            )?,
        })
    }

    pub(crate) fn record_controller_duration(
        &self,
        name: &'static str,
        phase: Phase,
        operation: Operation,
        took: Duration,
        is_rejected: bool,
    ) {
        let labels =
            [name, phase.condition_metric_label(), operation.name(), bool_label_value(is_rejected)];
        self.controller_durations.with_label_values(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn record_phase_duration(
        &self,
        phase: Phase,
        operation: Operation,
        took: Duration,
        is_rejected: bool,
    ) {
        let labels =
            [phase.condition_metric_label(), operation.name(), bool_label_value(is_rejected)];
        self.phase_durations.with_label_values(&labels).observe(took.as_secs_f64());
    }
}

fn bool_label_value(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
