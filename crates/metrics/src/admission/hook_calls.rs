//! The calls of admission hooks and the evaluation of their match conditions.

use admission_hooks::{CallReport, ConditionOutcome, ConditionReport, HookFailureCause, Phase};
use prometheus::{HistogramVec, IntCounterVec, Registry};

use crate::bounded_names::BoundedNames;
use crate::register_metrics::{
    NAME_LABEL, register_counter_vec, register_histogram_vec, retain_series_by_name,
};

/// Buckets for the duration of one call, in seconds.
const CALL_BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];

/// Buckets for the evaluation of all match conditions of one hook, in seconds.
const CONDITION_BUCKETS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/// The value of the label `kind`: Kubernetes uses it for webhooks and for policies; Portcullis only has webhooks.
const CONDITION_KIND: &str = "webhook";

#[derive(Debug)]
pub(crate) struct HookCalls {
    hook_names: BoundedNames,
    hook_call_durations: HistogramVec,
    hook_call_counts: IntCounterVec,
    rejection_counts: IntCounterVec,
    fail_open_counts: IntCounterVec,
    fail_open_counts_by_cause: IntCounterVec,
    match_condition_error_counts: IntCounterVec,
    match_condition_exclusion_counts: IntCounterVec,
    match_condition_durations: HistogramVec,
}

impl HookCalls {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let condition_labels = &[NAME_LABEL, "kind", "type", "operation"];
        Ok(Self {
            hook_names: BoundedNames::default(),
            hook_call_durations: register_histogram_vec(
                registry,
                "apiserver_admission_webhook_admission_duration_seconds",
                &[NAME_LABEL, "type", "operation", "rejected"],
                &CALL_BUCKETS,
                "[STABLE] Duration of one call of an admission webhook.",
            )?,
            hook_call_counts: register_counter_vec(
                registry,
                "apiserver_admission_webhook_request_total",
                &[NAME_LABEL, "type", "operation", "code", "rejected"],
                "[ALPHA] Calls of an admission webhook, by the status code of the result.",
            )?,
            rejection_counts: register_counter_vec(
                registry,
                "apiserver_admission_webhook_rejection_count",
                &[NAME_LABEL, "type", "operation", "error_type", "rejection_code"],
                "[ALPHA] Requests that were refused because of an admission webhook, by the type of the error.",
            )?,
            fail_open_counts: register_counter_vec(
                registry,
                "apiserver_admission_webhook_fail_open_count",
                &[NAME_LABEL, "type"],
                "[ALPHA] Failed calls of an admission webhook whose failure policy is Ignore.",
            )?,
            fail_open_counts_by_cause: register_counter_vec(
                registry,
                "portcullis_admission_webhook_failed_open_total",
                &[NAME_LABEL, "type", "cause"],
                "[ALPHA] Requests for which the failure of an admission webhook was ignored, by the cause of \
                 the failure.",
            )?,
            match_condition_error_counts: register_counter_vec(
                registry,
                "apiserver_admission_match_condition_evaluation_errors_total",
                condition_labels,
                "[ALPHA] Requests for which the match conditions of an admission webhook could not \
                 be evaluated.",
            )?,
            match_condition_exclusion_counts: register_counter_vec(
                registry,
                "apiserver_admission_match_condition_exclusions_total",
                condition_labels,
                "[ALPHA] Requests for which an admission webhook was skipped because a match condition is \
                 false.",
            )?,
            match_condition_durations: register_histogram_vec(
                registry,
                "apiserver_admission_match_condition_evaluation_seconds",
                condition_labels,
                &CONDITION_BUCKETS,
                "[ALPHA] Time to evaluate all match conditions of an admission webhook for one \
                 request.",
            )?,
        })
    }

    pub(crate) fn record_hook_call(&self, report: &CallReport<'_>) {
        let name = self.hook_names.label_value_for(report.webhook_name);
        let (phase, operation) = (report.phase.metric_label(), report.operation.name());
        // The code comes from the response of the hook. The crate admission-hooks limits its maximum.
        let code = report.code.max(0).to_string();
        let rejected = if report.rejection_cause.is_some() { "true" } else { "false" };
        self.hook_call_counts.with_label_values(&[name, phase, operation, &code, rejected]).inc();
        self.hook_call_durations
            .with_label_values(&[name, phase, operation, rejected])
            .observe(report.call_duration.as_secs_f64());
        if let Some(cause) = report.rejection_cause {
            let labels = [name, phase, operation, cause.metric_label(), &code];
            self.rejection_counts.with_label_values(&labels).inc();
        }
    }

    pub(crate) fn count_fail_open(&self, webhook: &str, phase: Phase, cause: HookFailureCause) {
        let (name, phase) = (self.hook_names.label_value_for(webhook), phase.metric_label());
        self.fail_open_counts_by_cause.with_label_values(&[name, phase, cause.name()]).inc();
        // Kubernetes counts only hooks that were called.
        if cause != HookFailureCause::MatchCondition {
            self.fail_open_counts.with_label_values(&[name, phase]).inc();
        }
    }

    pub(crate) fn record_match_conditions(&self, report: &ConditionReport<'_>) {
        let name = self.hook_names.label_value_for(report.webhook_name);
        let labels =
            [name, CONDITION_KIND, report.phase.condition_metric_label(), report.operation.name()];
        self.match_condition_durations
            .with_label_values(&labels)
            .observe(report.evaluation_duration.as_secs_f64());
        match report.condition_outcome {
            ConditionOutcome::Hold => {}
            ConditionOutcome::Exclude => {
                self.match_condition_exclusion_counts.with_label_values(&labels).inc()
            }
            ConditionOutcome::Fail => {
                self.match_condition_error_counts.with_label_values(&labels).inc()
            }
        }
    }

    /// Removes the series of hooks for which `is_kept` is false.
    pub(crate) fn retain_hook_series(&self, is_kept: &dyn Fn(&str) -> bool) {
        self.hook_names.retain_labelled_names(is_kept);
        retain_series_by_name(&self.hook_call_durations, is_kept);
        retain_series_by_name(&self.match_condition_durations, is_kept);
        for family in [
            &self.hook_call_counts,
            &self.rejection_counts,
            &self.fail_open_counts,
            &self.fail_open_counts_by_cause,
            &self.match_condition_error_counts,
            &self.match_condition_exclusion_counts,
        ] {
            retain_series_by_name(family, is_kept);
        }
    }
}
