//! The metrics of dynamic admission.

mod config_freshness;
mod hook_calls;
mod initializer_waits;
mod phase_durations;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use admission::{Operation, Snapshot};
use admission_hooks::{CallReport, ConditionReport, HookFailureCause, Phase};
use prometheus::Registry;

use self::config_freshness::ConfigFreshness;
pub use self::config_freshness::StaleConfigRefusal;
use self::hook_calls::HookCalls;
pub use self::initializer_waits::InitializerTimeoutAction;
use self::initializer_waits::InitializerWaits;
use self::phase_durations::PhaseDurations;
use crate::bounded_names::OTHER_NAMES;

/// The metrics of dynamic admission.
///
/// It observes the calls of hooks and the connections to them. The server sets the configuration in effect and calls
/// the other methods where the events happen.
pub struct AdmissionMetrics {
    hook_calls: HookCalls,
    phase_durations: PhaseDurations,
    config_freshness: ConfigFreshness,
    initializer_waits: InitializerWaits,
    certificate_observer: Arc<dyn https_client::CertificateObserver>,
    /// The configuration in effect; `None` before the first.
    admission_config_in_effect: RwLock<Option<Arc<Snapshot>>>,
}

impl AdmissionMetrics {
    /// Registers the metrics in a registry.
    ///
    /// Kubernetes counts insecure certificates of authorization and admission webhooks together, so `certificates` is
    /// the observer of [`AuthorizationMetrics`](crate::AuthorizationMetrics); this type forwards to it.
    ///
    /// # Errors
    /// The registry has some of the families already.
    pub fn new(
        registry: &Registry,
        certificates: Arc<dyn https_client::CertificateObserver>,
    ) -> Result<Arc<Self>, prometheus::Error> {
        Ok(Arc::new(Self {
            hook_calls: HookCalls::new(registry)?,
            phase_durations: PhaseDurations::new(registry)?,
            config_freshness: ConfigFreshness::new(registry)?,
            initializer_waits: InitializerWaits::new(registry)?,
            certificate_observer: certificates,
            admission_config_in_effect: RwLock::default(),
        }))
    }

    /// Sets the hooks and initializers in effect, and removes the series of all others.
    pub fn set_config_in_effect(&self, snapshot: &Arc<Snapshot>) {
        *self.admission_config_in_effect.write().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::clone(snapshot));
        let lists = [snapshot.mutating_hooks(), snapshot.validating_hooks()].into_iter();
        let hooks: HashSet<&str> =
            lists.flat_map(|list| list.hooks()).map(|hook| hook.name.as_str()).collect();
        self.hook_calls.retain_hook_series(&|name| name == OTHER_NAMES || hooks.contains(name));
        let is_kept = |name: &str| name == OTHER_NAMES || snapshot.find_initializer(name).is_some();
        self.initializer_waits.retain_initializer_series(&is_kept);
    }

    /// Sets the revision of the store up to which the configuration is in effect, and the time since the store last
    /// confirmed that it is the newest (before the first confirmation, since the start of the server). The server calls
    /// this before it reads the registry.
    pub fn set_admission_config_freshness(&self, revision: u64, age: Duration) {
        self.config_freshness.set_admission_config_freshness(revision, age);
    }

    /// Counts a request that is refused because the configuration is not known to be current.
    pub fn count_stale_config_refusal(&self, reason: StaleConfigRefusal) {
        self.config_freshness.count_stale_config_refusal(reason);
    }

    /// Counts a request that is admitted although the store could not confirm that the configuration is the newest.
    pub fn count_unconfirmed_config_admission(&self) {
        self.config_freshness.unconfirmed_config_admissions.inc();
    }

    /// Records how long an admission controller, such as `MutatingAdmissionWebhook`, took for a request.
    pub fn record_controller_duration(
        &self,
        name: &'static str,
        phase: Phase,
        operation: Operation,
        took: Duration,
        is_rejected: bool,
    ) {
        self.phase_durations.record_controller_duration(name, phase, operation, took, is_rejected);
    }

    /// Records how long a phase, with all its controllers, took for a request.
    pub fn record_phase_duration(
        &self,
        phase: Phase,
        operation: Operation,
        took: Duration,
        is_rejected: bool,
    ) {
        self.phase_durations.record_phase_duration(phase, operation, took, is_rejected);
    }

    /// Records how long a create request waited for the initializers of its object.
    pub fn record_initializer_wait(&self, took: Duration) {
        self.initializer_waits.record_initializer_wait(took);
    }

    /// Counts an initializer that did not act in time.
    pub fn count_initializer_timeout(&self, name: &str, action: InitializerTimeoutAction) {
        self.initializer_waits
            .count_initializer_timeout(self.initializer_label_value(name), action);
    }

    /// Counts a read that removed an initializer which was pending long after its timeout.
    pub fn count_read_repair(&self, name: &str) {
        self.initializer_waits.count_read_repair(self.initializer_label_value(name));
    }

    /// Returns the name if a configuration has such an initializer, otherwise [`OTHER_NAMES`], because users can write
    /// any name into an object.
    fn initializer_label_value<'n>(&self, name: &'n str) -> &'n str {
        let snapshot =
            self.admission_config_in_effect.read().unwrap_or_else(PoisonError::into_inner);
        let found = snapshot.as_ref().and_then(|snapshot| snapshot.find_initializer(name));
        if found.is_some() { name } else { OTHER_NAMES }
    }
}

impl admission_hooks::HookObserver for AdmissionMetrics {
    fn on_call(&self, report: &CallReport<'_>) {
        self.hook_calls.record_hook_call(report);
    }

    fn on_conditions(&self, report: &ConditionReport<'_>) {
        self.hook_calls.record_match_conditions(report);
    }

    fn on_fail_open(&self, webhook: &str, phase: Phase, cause: HookFailureCause) {
        self.hook_calls.count_fail_open(webhook, phase, cause);
    }
}

impl https_client::CertificateObserver for AdmissionMetrics {
    fn on_missing_san(&self) {
        self.certificate_observer.on_missing_san();
    }

    fn on_sha1_signature(&self) {
        self.certificate_observer.on_sha1_signature();
    }
}

impl fmt::Debug for AdmissionMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionMetrics").finish_non_exhaustive()
    }
}
