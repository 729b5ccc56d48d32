//! Admission of writes: the configuration in force, the hooks, and the checks of the server itself.
//!
//! A verb makes one [`WriteAttempt`] for each attempt to write, and takes it through these steps:
//! 1. [`establish_admission_config_freshness`] finds the configuration that admits the write, and the hooks that match.
//! 2. [`admit_mutating`] checks the namespace, assigns initializers and calls the mutating hooks.
//! 3. [`run_built_in_checks`] runs the built-in checks of the object and returns it as a [`CheckedObject`].
//! 4. [`admit_object`] calls the validating hooks and returns the object as an [`AdmittedObject`].
//! 5. `rest::persist` stores the [`AdmittedObject`].
//! 6. [`WriteAttempt::conclude_attempt`] decides whether the result is final or the attempt is repeated.
//!
//! A deletion skips step 3, and [`admit_deletion`] takes the place of [`admit_object`]. For a
//! change of replicas alone, [`admit_scaled_object`] takes its place.
//!
//! `docs/admission-freshness.md` states the protocol behind steps 1, 5 and 6, and why it is correct.

mod admission_config_checks;
mod admission_config_freshness;
mod admission_config_polling;
mod admission_config_revision;
mod admission_phases;
mod admission_plugins;
mod admitted_object;
mod built_in_checks;
mod configured_hooks;
mod device_admin_access;
mod freshness_barrier;
mod freshness_error;
mod hook_object_converter;
mod namespace_lifecycle;
mod node_restriction;
mod node_taints;
mod owner_references;
mod rbac_escalation;
mod server_heartbeats;
mod write_attempt;
mod write_request;

pub use admission_plugins::{AdmissionPlugin, AdmissionPlugins, AdmissionPluginsError};
pub use admitted_object::AdmittedObject;
pub use configured_hooks::ConfiguredHooks;
pub use freshness_barrier::{AdmissionConfigSyncMode, AdmissionConfigSyncOptions};

pub(crate) use admission_config_freshness::{
    AdmissionFreshnessRequirement, confirm_admission_configuration,
    establish_admission_config_freshness, is_admission_configuration,
};
pub(crate) use admission_config_polling::{PolledAdmissionConfig, PolledAdmissionConfigSlot};
pub(crate) use admission_config_revision::{CONFIG_REVISION_PATH, admission_config_revision_key};
pub(crate) use admission_phases::admit_mutating;
pub(crate) use admitted_object::{
    AdmittedDeletion, AdmittedPodAction, RemovableOrPendingDeletion, admit_deletion, admit_object,
    admit_pod_action, admit_scaled_object, admit_without_storing,
};
pub(crate) use built_in_checks::{CheckedObject, run_built_in_checks};
pub(crate) use configured_hooks::{AdmissionConfigChange, configuration_kind_at_path};
pub(crate) use freshness_barrier::FreshnessBarrier;
pub(crate) use freshness_error::FreshnessError;
pub(crate) use namespace_lifecycle::{check_namespace_is_usable, crd_terminating_status};
pub(crate) use node_restriction::{
    check_object_sent_by_node, check_pod_is_on_own_node, check_target_of_node_write,
};
pub(crate) use rbac_escalation::check_grants_of_invalid_object;
pub(crate) use server_heartbeats::{ADMISSION_STATUS_PATH, parse_config_ack_timeout};
pub(crate) use write_attempt::{FinalOrRetry, WriteAttempt};
pub(crate) use write_request::WriteRequest;
