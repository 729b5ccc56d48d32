//! Admission of writes: the configuration in force, the hooks, and the checks of the server itself.
//!
//! A verb makes one [`WriteAttempt`] for each attempt to write, and takes it through these steps:
//! 1. [`establish_freshness`] finds the configuration that admits the write, and the hooks that match.
//! 2. [`admit_mutating`] checks the namespace, assigns initializers and calls the mutating hooks.
//! 3. [`run_built_in_checks`] runs the built-in checks of the object and returns it as a [`CheckedObject`].
//! 4. [`admit_object`] calls the validating hooks and returns the object as an [`Admitted`].
//! 5. `rest::persist` stores the [`Admitted`].
//! 6. [`WriteAttempt::conclude`] decides whether the result is final or the attempt is repeated.
//!
//! A deletion skips step 3, and [`admit_deletion`] takes the place of [`admit_object`]. For a
//! change of replicas alone, [`admit_scaled_object`] takes its place.
//!
//! `docs/admission-freshness.md` states the protocol behind steps 1, 5 and 6, and why it is correct.

mod admitted;
mod built_in_checks;
mod config_revision;
mod configuration_checks;
mod configuration_polling;
mod configured_hooks;
mod escalation;
mod freshness;
mod freshness_barrier;
mod freshness_error;
mod hook_object_converter;
mod namespace_lifecycle;
mod node_restriction;
mod node_taints;
mod owner_references;
mod pipeline;
mod plugins;
mod server_heartbeats;
mod write_attempt;
mod write_request;

pub use admitted::Admitted;
pub use configured_hooks::ConfiguredHooks;
pub use freshness_barrier::{ConfigSyncMode, ConfigSyncOptions};
pub use plugins::{AdmissionPlugin, AdmissionPlugins, AdmissionPluginsError};

pub(crate) use admitted::{
    AdmittedAction, AdmittedDeletion, DeletionStep, admit_action, admit_deletion, admit_object,
    admit_scaled_object, admit_without_storing,
};
pub(crate) use built_in_checks::{CheckedObject, run_built_in_checks};
pub(crate) use config_revision::{CONFIG_REVISION_PATH, config_revision_key};
pub(crate) use configuration_polling::{PolledConfiguration, PolledConfigurationSlot};
pub(crate) use configured_hooks::{ConfigurationChange, configuration_kind_at};
pub(crate) use escalation::check_grants_of_invalid_object;
pub(crate) use freshness::{
    ConfigurationFreshnessRequirement, confirm_configuration, establish_freshness,
    is_admission_configuration,
};
pub(crate) use freshness_barrier::FreshnessBarrier;
pub(crate) use freshness_error::FreshnessError;
pub(crate) use namespace_lifecycle::{check_namespace_is_usable, definition_terminating_status};
pub(crate) use node_restriction::{check_pod_is_on_own_node, check_sent_object};
pub(crate) use pipeline::admit_mutating;
pub(crate) use server_heartbeats::{ADMISSION_STATUS_PATH, parse_ack_timeout};
pub(crate) use write_attempt::{AttemptConclusion, WriteAttempt};
pub(crate) use write_request::WriteRequest;
