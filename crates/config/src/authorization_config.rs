//! `AuthorizationConfiguration`: the file that lists the authorizers of a server in order.

mod api_version;
mod authorization_configuration_to_json;
mod defaults;
mod file_state;
mod load_authorization_configuration;
mod normalize_kep_forms;
mod schema;
mod server_authorizer_rules;
#[cfg(test)]
mod tests;
mod unvalidated_config;
mod validate_authorization_webhook;
mod validate_authorizers;

pub use authorization_configuration_to_json::authorization_configuration_to_json;
pub use file_state::{FileState, assume_regular_file, stat_file};
pub use load_authorization_configuration::{
    CONFIG_FILE_WITHOUT_GATE_ERROR, LoadError, LoadOptions, LoadedAuthorizationConfiguration,
    ServerRole, load_authorization_configuration,
};
pub(crate) use schema::{AUTHORIZATION_CONFIGURATION, GROUP, KIND};
