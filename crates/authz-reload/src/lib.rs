//! Builds the authorizers of a server from flags or from a configuration file, and reloads them when a file changes.
//!
//! Owns: the authorization flags and their translation, building authorizers from every file that a configuration
//! refers to, reloading, status, and the interface to metrics.
//! Must not know: HTTP, how metrics are exposed, how an authorizer decides, the store.
//!
//! ```text
//! AuthorizationOptions -- plan_from_flags --> AuthorizationPlan -- Assembler::start --> Generation
//!                                                  |                                       |
//!                                       convert_flags_to_config               Reloader::start -- publishes more
//! ```

mod assemble;
mod build_error;
mod files;
mod flags;
mod flags_to_config;
mod generation;
mod modes_to_configuration;
mod notice;
mod observers;
mod reload;
mod sha256_hash;
mod status;
mod webhook_transport;

pub use assemble::{Assembler, ConfigOrigin};
pub use build_error::{BuildCause, BuildError, StartError};
pub use flags::{
    ANONYMOUS_AUTH_DISABLED, AuthorizationModes, AuthorizationOptions, AuthorizationPlan,
    ConfigFilePlan, DEFAULT_AUTHORIZED_TTL_NS, DEFAULT_MODES, DEFAULT_RETRY_STEPS,
    DEFAULT_UNAUTHORIZED_TTL_NS, DEFAULT_WEBHOOK_VERSION, UPSTREAM_DEFAULT_MODES, WebhookFlags,
    plan_from_flags,
};
pub use flags_to_config::{ConversionContext, ConvertedConfig, convert_flags_to_config};
pub use generation::{ConfigSource, ConfiguredWebhook, Generation};
pub use modes_to_configuration::{FLAG_WEBHOOK_NAME, FlagTranslationError};
pub use notice::ReloadNotice;
pub use observers::{AppliedConfig, AuthorizationObservers, NoObservers, ReloadStatus};
pub use reload::{CheckResult, Log, Publish, PublishError, ReloadOptions, Reloader};
pub use sha256_hash::sha256_hash;
pub use status::{
    AuthorizerStatus, LastReloadAttempt, Status, WebhookFailureStatus, WebhookStatus,
};
pub use webhook_transport::{WebhookTransport, endpoint_url};
