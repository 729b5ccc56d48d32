//! All numbers together.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use admission::{Operation, Snapshot};
use admission_hooks::{CallReport, ConditionReport, FailOpenCause, Phase};
use prometheus::Registry;

use crate::configuration::{ConfigRefusal, Configurations};
use crate::hook::Hooks;
use crate::initializer::{Initializers, TimeoutAction};
use crate::names::OTHER;
use crate::step::Steps;

/// The numbers of dynamic admission.
///
/// Give it to whoever asks hooks and to whoever connects to them, tell it which configuration is in
/// effect, and call the methods where something happens; the registry shows the rest.
pub struct Metrics {
    hooks: Hooks,
    steps: Steps,
    configurations: Configurations,
    initializers: Initializers,
    certificates: Arc<dyn https_client::Observe>,
    /// The configuration in effect; none before the first.
    snapshot: RwLock<Option<Arc<Snapshot>>>,
}

impl Metrics {
    /// All numbers at zero, to be seen in the registry.
    ///
    /// Kubernetes counts refused certificates of all its webhooks together, whatever they are for. So
    /// there is one place that does, which is that of the authorization chain, and `certificates` is
    /// told what this is told as [`https_client::Observe`].
    ///
    /// # Errors
    /// The registry has some of the families already.
    pub fn new(
        registry: &Registry,
        certificates: Arc<dyn https_client::Observe>,
    ) -> Result<Arc<Self>, prometheus::Error> {
        Ok(Arc::new(Self {
            hooks: Hooks::new(registry)?,
            steps: Steps::new(registry)?,
            configurations: Configurations::new(registry)?,
            initializers: Initializers::new(registry)?,
            certificates,
            snapshot: RwLock::default(),
        }))
    }

    /// These hooks and initializers are in effect from now on. The series of all others go.
    pub fn configured(&self, snapshot: &Arc<Snapshot>) {
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(snapshot));
        let lists = [snapshot.mutating(), snapshot.validating()].into_iter();
        let hooks: HashSet<&str> =
            lists.flat_map(|list| list.hooks()).map(|hook| hook.name.as_str()).collect();
        self.hooks.retain(&|name| name == OTHER || hooks.contains(name));
        self.initializers.retain(&|name| name == OTHER || snapshot.initializer(name).is_some());
    }

    /// The revision of the store up to which changes of the configuration are in effect, and how long
    /// ago it was confirmed that there are no others; before the first time, how long ago the server
    /// began to look for it. To be called before the registry is read.
    pub fn show_config(&self, revision: u64, age: Duration) {
        self.configurations.show(revision, age);
    }

    /// A request was refused for want of a configuration.
    pub fn config_refused(&self, reason: ConfigRefusal) {
        self.configurations.refused(reason);
    }

    /// A request was admitted with a configuration of which it could not be read whether it still is
    /// the newest.
    pub fn config_degraded(&self) {
        self.configurations.degraded.inc();
    }

    /// A member of a phase, such as `MutatingAdmissionWebhook`, is done with a request.
    pub fn controller(
        &self,
        name: &'static str,
        phase: Phase,
        operation: Operation,
        took: Duration,
        is_rejected: bool,
    ) {
        self.steps.controller(name, phase, operation, took, is_rejected);
    }

    /// A phase, with all its members, is done with a request.
    pub fn step(&self, phase: Phase, operation: Operation, took: Duration, is_rejected: bool) {
        self.steps.step(phase, operation, took, is_rejected);
    }

    /// A creator has waited for the initializers of an object, whatever came of it.
    pub fn initializers_waited(&self, took: Duration) {
        self.initializers.waited(took);
    }

    /// An initializer did not act in time.
    pub fn initializer_timed_out(&self, name: &str, action: TimeoutAction) {
        self.initializers.timed_out(self.configured_initializer(name), action);
    }

    /// An object no longer waits for an initializer, because somebody has read it long after.
    pub fn initializer_repaired(&self, name: &str) {
        self.initializers.repaired(self.configured_initializer(name));
    }

    /// The name of an initializer, if it is one of a configuration. Objects may name others.
    fn configured_initializer<'n>(&self, name: &'n str) -> &'n str {
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        let found = snapshot.as_ref().and_then(|snapshot| snapshot.initializer(name));
        if found.is_some() { name } else { OTHER }
    }
}

impl admission_hooks::Observer for Metrics {
    fn called(&self, report: &CallReport<'_>) {
        self.hooks.called(report);
    }

    fn conditions(&self, report: &ConditionReport<'_>) {
        self.hooks.conditions(report);
    }

    fn failed_open(&self, webhook: &str, phase: Phase, cause: FailOpenCause) {
        self.hooks.failed_open(webhook, phase, cause);
    }
}

impl https_client::Observe for Metrics {
    fn missing_san(&self) {
        self.certificates.missing_san();
    }

    fn sha1_signature(&self) {
        self.certificates.sha1_signature();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
