//! How long the phases of admission take, and each of their members.

use std::time::Duration;

use admission::Operation;
use admission_hooks::Phase;
use prometheus::{HistogramVec, Registry};

use crate::family::{NAME, histograms};

/// Classes of times.
const SECONDS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

/// The numbers of all phases.
#[derive(Debug)]
pub(crate) struct Steps {
    controllers: HistogramVec,
    steps: HistogramVec,
}

impl Steps {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            controllers: histograms(
                registry,
                "apiserver_admission_controller_admission_duration_seconds",
                &[NAME, "type", "operation", "rejected"],
                &SECONDS,
                "[STABLE] Time that an admission controller took for one request.",
            )?,
            steps: histograms(
                registry,
                "apiserver_admission_step_admission_duration_seconds",
                &["type", "operation", "rejected"],
                &SECONDS,
                "[STABLE] Time that a phase of admission, with all its controllers, took for one \
                 request.",
            )?,
        })
    }

    pub(crate) fn controller(
        &self,
        name: &'static str,
        phase: Phase,
        operation: Operation,
        took: Duration,
        is_rejected: bool,
    ) {
        let labels = [name, phase.condition_label(), operation.name(), word(is_rejected)];
        self.controllers.with_label_values(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn step(
        &self,
        phase: Phase,
        operation: Operation,
        took: Duration,
        is_rejected: bool,
    ) {
        let labels = [phase.condition_label(), operation.name(), word(is_rejected)];
        self.steps.with_label_values(&labels).observe(took.as_secs_f64());
    }
}

fn word(is_rejected: bool) -> &'static str {
    if is_rejected { "true" } else { "false" }
}
