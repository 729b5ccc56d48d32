//! Builds the authorizers of a server from flags or from a configuration file, and reloads them when a file changes.
//!
//! Owns: the authorization flags and their translation, building authorizers from every file that a configuration
//! refers to, reloading, status, and the interface to metrics.
//! Must not know: HTTP, how metrics are exposed, how an authorizer decides, the store.
//!
//! ```text
//! AuthorizationOptions -- plan_from_flags --> AuthorizationPlan -- AuthorizerBuilder::build_first_generation --> Generation
//!                                                  |                                                     |
//!                                       convert_flags_to_config           Reloader::start -- publishes later generations
//! ```

mod authorization_status;
mod build_authorizers;
mod build_error;
mod config_generation;
mod file_set;
mod flags_to_config;
mod modes_to_configuration;
mod observers;
mod plan_from_flags;
mod plugin_authorizers;
mod reload;
mod reload_notice;
mod service_transport;
mod sha256_hash;
mod webhook_transport;

pub use authorization_status::{
    AuthorizationStatus, AuthorizerStatus, ReloadAttemptStatus, WebhookFailureStatus, WebhookStatus,
};
pub use build_authorizers::{AuthorizerBuilder, ConfigOrigin};
pub use build_error::{BuildError, BuildErrorCause, StartError};
pub use config_generation::{ConfigSource, ConfiguredWebhook, Generation};
pub use flags_to_config::{ConversionContext, ConvertedConfig, convert_flags_to_config};
pub use modes_to_configuration::{FLAG_WEBHOOK_NAME, FlagTranslationError};
pub use observers::{AppliedConfig, AuthorizationObserverFactory, NoObservers, ReloadStatus};
pub use plan_from_flags::{
    ANONYMOUS_AUTH_DISABLED, AuthorizationModes, AuthorizationOptions, AuthorizationPlan,
    ConfigFilePlan, DEFAULT_AUTHORIZED_TTL_NS, DEFAULT_MODES, DEFAULT_RETRY_STEPS,
    DEFAULT_UNAUTHORIZED_TTL_NS, DEFAULT_WEBHOOK_VERSION, UPSTREAM_DEFAULT_MODES, WebhookFlags,
    plan_from_flags,
};
pub use plugin_authorizers::{AddPluginError, PluginAuthorizers};
pub use reload::{
    FileCheckResult, PublishError, PublishGenerationFn, ReloadLogFn, ReloadOptions, Reloader,
};
pub use reload_notice::ReloadNotice;
pub use sha256_hash::sha256_hash;
pub use webhook_transport::{WebhookTransport, url_without_credentials};
