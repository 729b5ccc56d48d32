//! A server to which everything has happened once, so that every series exists.

use std::sync::Arc;
use std::time::Duration;

use admission::{Configuration, ConfigurationKind, Operation, Snapshot};
use admission_hooks::{
    CallReport, ConditionOutcome, ConditionReport, HookFailureCause, HookObserver as _, Phase,
    RejectionCause,
};
use metrics::{AdmissionMetrics, InitializerTimeoutAction, StaleConfigRefusal};
use prometheus::Registry;
use serde_json::json;

/// How long everything takes.
pub(crate) const TOOK: Duration = Duration::from_millis(7);

/// No numbers yet, and nobody who counts certificates.
pub(crate) fn nothing() -> (Registry, Arc<AdmissionMetrics>) {
    let registry = Registry::new();
    let metrics =
        AdmissionMetrics::new(&registry, Arc::new(https_client::NoCertificateObserver)).unwrap();
    (registry, metrics)
}

/// A configuration with these mutating hooks and initializers.
pub(crate) fn snapshot(hooks: &[&str], initializers: &[&str]) -> Arc<Snapshot> {
    let configuration = |kind: ConfigurationKind, names: &[&str]| {
        let entries: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        let object = json!({ "metadata": {"name": "c"}, (kind.entries_member_name()): entries });
        Arc::new(Configuration::compile_configuration(kind, object.as_object().unwrap()))
    };
    Arc::new(Snapshot::new(&[
        configuration(ConfigurationKind::Mutating, hooks),
        configuration(ConfigurationKind::Initializer, initializers),
    ]))
}

/// A call of a hook.
pub(crate) fn call(webhook: &str, code: i32, rejection: Option<RejectionCause>) -> CallReport<'_> {
    let (phase, operation) = (Phase::Validating, Operation::Create);
    CallReport {
        webhook_name: webhook,
        phase,
        operation,
        call_duration: TOOK,
        code,
        rejection_cause: rejection,
    }
}

/// Numbers after everything has happened.
pub(crate) fn happened() -> (Registry, Arc<AdmissionMetrics>) {
    let (registry, metrics) = nothing();
    metrics.set_config_in_effect(&snapshot(&["guard.example.com"], &["sidecar.example.com"]));
    metrics.set_admission_config_freshness(42, Duration::from_millis(1500));
    StaleConfigRefusal::ALL
        .into_iter()
        .for_each(|reason| metrics.count_stale_config_refusal(reason));
    metrics.count_unconfirmed_config_admission();

    let webhook = "guard.example.com";
    for phase in [Phase::Mutating, Phase::Validating] {
        for (code, rejection) in [
            (200, None),
            (403, Some(RejectionCause::Denial)),
            (503, Some(RejectionCause::Call)),
            (0, Some(RejectionCause::Server)),
        ] {
            metrics.on_call(&CallReport { phase, ..call(webhook, code, rejection) });
        }
        for cause in HookFailureCause::ALL {
            metrics.on_fail_open(webhook, phase, cause);
        }
        for outcome in [ConditionOutcome::Hold, ConditionOutcome::Exclude, ConditionOutcome::Fail] {
            let operation = Operation::Update;
            let report = ConditionReport {
                webhook_name: webhook,
                phase,
                operation,
                evaluation_duration: TOOK,
                condition_outcome: outcome,
            };
            metrics.on_conditions(&report);
        }
        for is_rejected in [false, true] {
            metrics.record_controller_duration(
                phase.plugin_name(),
                phase,
                Operation::Delete,
                TOOK,
                is_rejected,
            );
            metrics.record_phase_duration(phase, Operation::Connect, TOOK, is_rejected);
        }
    }

    metrics.record_initializer_wait(Duration::from_secs(5));
    for name in ["sidecar.example.com", "stray.example.com"] {
        InitializerTimeoutAction::ALL
            .into_iter()
            .for_each(|action| metrics.count_initializer_timeout(name, action));
        metrics.count_read_repair(name);
    }
    (registry, metrics)
}
