//! `AuthorizationConfiguration`: the file that lists the authorizers of a server in order.

mod api_version;
mod configuration_to_json;
mod defaults;
mod file_state;
mod load_configuration;
mod normalize_kep_forms;
mod schema;
mod server_rules;
#[cfg(test)]
mod tests;
mod unvalidated_config;
mod validate;
mod webhook;

pub use configuration_to_json::configuration_to_json;
pub use file_state::{FileState, assume_regular_file, stat_file};
pub use load_configuration::{
    CONFIG_FILE_WITHOUT_GATE_ERROR, LoadError, LoadOptions, LoadedConfiguration, ServerRole,
    load_configuration,
};
pub(crate) use schema::{AUTHORIZATION_CONFIGURATION, GROUP, KIND};
