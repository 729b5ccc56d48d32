//! What hooks were asked, and what came of it.

use admission_hooks::{CallReport, ConditionOutcome, ConditionReport, FailOpenCause, Phase};
use prometheus::{HistogramVec, IntCounterVec, Registry};

use crate::family::{NAME, counters, histograms, retain};
use crate::names::Names;

/// Classes of times of a call.
const CALL_SECONDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];

/// Classes of times of all conditions of one hook.
const CONDITION_SECONDS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/// Whose match conditions they are, of those who have some in Kubernetes.
const KIND: &str = "webhook";

/// The numbers of all hooks.
#[derive(Debug)]
pub(crate) struct Hooks {
    names: Names,
    seconds: HistogramVec,
    requests: IntCounterVec,
    rejections: IntCounterVec,
    fail_open: IntCounterVec,
    fail_open_causes: IntCounterVec,
    condition_errors: IntCounterVec,
    condition_exclusions: IntCounterVec,
    condition_seconds: HistogramVec,
}

impl Hooks {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let condition_labels = &[NAME, "kind", "type", "operation"];
        Ok(Self {
            names: Names::default(),
            seconds: histograms(
                registry,
                "apiserver_admission_webhook_admission_duration_seconds",
                &[NAME, "type", "operation", "rejected"],
                &CALL_SECONDS,
                "[STABLE] Time of one call of an admission webhook.",
            )?,
            requests: counters(
                registry,
                "apiserver_admission_webhook_request_total",
                &[NAME, "type", "operation", "code", "rejected"],
                "[ALPHA] Calls of an admission webhook, by the status code of what came of them.",
            )?,
            rejections: counters(
                registry,
                "apiserver_admission_webhook_rejection_count",
                &[NAME, "type", "operation", "error_type", "rejection_code"],
                "[ALPHA] Requests that were refused because of an admission webhook, by whose fault \
                 that is.",
            )?,
            fail_open: counters(
                registry,
                "apiserver_admission_webhook_fail_open_count",
                &[NAME, "type"],
                "[ALPHA] Calls of an admission webhook that failed and were ignored.",
            )?,
            fail_open_causes: counters(
                registry,
                "portcullis_admission_webhook_failed_open_total",
                &[NAME, "type", "cause"],
                "[ALPHA] Requests that an admission webhook has no say in because its failure is \
                 ignored, by what failed.",
            )?,
            condition_errors: counters(
                registry,
                "apiserver_admission_match_condition_evaluation_errors_total",
                condition_labels,
                "[ALPHA] Requests for which the match conditions of an admission webhook could not \
                 be evaluated.",
            )?,
            condition_exclusions: counters(
                registry,
                "apiserver_admission_match_condition_exclusions_total",
                condition_labels,
                "[ALPHA] Requests that an admission webhook was not asked about because a match \
                 condition is false.",
            )?,
            condition_seconds: histograms(
                registry,
                "apiserver_admission_match_condition_evaluation_seconds",
                condition_labels,
                &CONDITION_SECONDS,
                "[ALPHA] Time to evaluate all match conditions of an admission webhook for one \
                 request.",
            )?,
        })
    }

    pub(crate) fn called(&self, report: &CallReport<'_>) {
        let name = self.names.label(report.webhook);
        let (phase, operation) = (report.phase.label(), report.operation.name());
        // The answer of a hook may say anything; those above are bounded by who reports.
        let code = report.code.max(0).to_string();
        let rejected = if report.rejection.is_some() { "true" } else { "false" };
        self.requests.with_label_values(&[name, phase, operation, &code, rejected]).inc();
        self.seconds
            .with_label_values(&[name, phase, operation, rejected])
            .observe(report.duration.as_secs_f64());
        if let Some(cause) = report.rejection {
            let labels = [name, phase, operation, cause.label(), &code];
            self.rejections.with_label_values(&labels).inc();
        }
    }

    pub(crate) fn failed_open(&self, webhook: &str, phase: Phase, cause: FailOpenCause) {
        let (name, phase) = (self.names.label(webhook), phase.label());
        self.fail_open_causes.with_label_values(&[name, phase, cause.name()]).inc();
        // Kubernetes counts hooks that were called.
        if cause != FailOpenCause::MatchCondition {
            self.fail_open.with_label_values(&[name, phase]).inc();
        }
    }

    pub(crate) fn conditions(&self, report: &ConditionReport<'_>) {
        let name = self.names.label(report.webhook);
        let labels = [name, KIND, report.phase.condition_label(), report.operation.name()];
        self.condition_seconds.with_label_values(&labels).observe(report.duration.as_secs_f64());
        match report.outcome {
            ConditionOutcome::Hold => {}
            ConditionOutcome::Exclude => self.condition_exclusions.with_label_values(&labels).inc(),
            ConditionOutcome::Fail => self.condition_errors.with_label_values(&labels).inc(),
        }
    }

    /// Drops the series of hooks that are gone.
    pub(crate) fn retain(&self, is_kept: &dyn Fn(&str) -> bool) {
        self.names.retain(is_kept);
        retain(&self.seconds, is_kept);
        retain(&self.condition_seconds, is_kept);
        for family in [
            &self.requests,
            &self.rejections,
            &self.fail_open,
            &self.fail_open_causes,
            &self.condition_errors,
            &self.condition_exclusions,
        ] {
            retain(family, is_kept);
        }
    }
}
