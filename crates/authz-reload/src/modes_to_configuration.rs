//! Converts legacy flags to a configuration.

use std::path::{Path, PathBuf};
use std::time::Duration;

use authz_chain::{
    AuthorizerConfiguration, AuthorizerName, AuthorizerNameError, Configuration,
    ConfigurationError, WebhookConfiguration,
};
use authz_webhook::{
    AbsolutePath, CacheSettings, ConnectionInfo, FailurePolicy, MatchConditions, ReviewVersion,
    Timeout, WebhookSettings,
};

use crate::plan_from_flags::{AuthorizationModes, WebhookFlags};

/// The name of the webhook that the flags configure, if its file is a kubeconfig.
pub const FLAG_WEBHOOK_NAME: &str = "default";

/// The flags cannot be converted to a configuration. Displays as Kubernetes' message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagTranslationError {
    /// SubjectAccessReview does not have this version.
    #[error(
        "unsupported webhook authorizer version {}, supported versions are \"v1\", \"v1beta1\"",
        go_compat::quote(.version)
    )]
    Version {
        /// The value of the flag.
        version: String,
    },
    /// The flag `--authorization-mode` names a mode twice.
    #[error(
        "failed to build authorization config: modes should not be repeated in --authorization-mode"
    )]
    RepeatedMode,
    /// A hook has the name of a built-in authorizer or of another hook.
    #[error("failed to build authorization config: {0}")]
    Names(ConfigurationError),
    /// The name of a hook is not a valid name for an authorizer.
    #[error("failed to build authorization config: {0}")]
    Name(AuthorizerNameError),
    /// A path is not UTF-8, so that a configuration cannot contain it.
    #[error("path {} is not UTF-8", .0.display())]
    Path(PathBuf),
}

impl AuthorizationModes {
    /// Converts these flags to a configuration.
    ///
    /// Relative paths start from `directory`. `hook_names` are the names in the webhook file if it is a file of external
    /// hooks: each of them becomes an authorizer at the position of mode Webhook, in order. A kubeconfig has no names
    /// and becomes one authorizer.
    ///
    /// # Errors
    /// The flags cannot be converted; see [`FlagTranslationError`].
    pub fn to_configuration(
        &self,
        directory: &Path,
        hook_names: Option<&[String]>,
    ) -> Result<Configuration, FlagTranslationError> {
        let mut authorizers = Vec::new();
        for &mode in &self.modes {
            match (AuthorizerConfiguration::from_built_in_type(mode), &self.webhook_flags) {
                (Some(built_in), _) => authorizers.push(built_in),
                (None, Some(flags)) => {
                    authorizers
                        .extend(webhook_authorizer_configurations(flags, directory, hook_names)?);
                }
                (None, None) => {}
            }
        }
        Configuration::new(authorizers).map_err(|error| match error {
            ConfigurationError::RepeatedType(_) => FlagTranslationError::RepeatedMode,
            ConfigurationError::Empty | ConfigurationError::RepeatedName(_) => {
                FlagTranslationError::Names(error)
            }
        })
    }
}

impl WebhookFlags {
    /// Returns the absolute path of the webhook file.
    pub fn absolute_webhook_config_file(&self, directory: &Path) -> PathBuf {
        directory.join(&self.webhook_config_file)
    }

    /// Returns the settings that all webhooks of the flags share.
    fn to_webhook_settings(
        &self,
        directory: &Path,
    ) -> Result<WebhookSettings, FlagTranslationError> {
        let path = self.absolute_webhook_config_file(directory);
        let path = path
            .to_str()
            .and_then(AbsolutePath::new)
            .ok_or_else(|| FlagTranslationError::Path(path.clone()))?;
        let version = ReviewVersion::from_version_name(&self.version)
            .ok_or_else(|| FlagTranslationError::Version { version: self.version.clone() })?;
        Ok(WebhookSettings {
            timeout: longest_webhook_timeout(),
            authorized_cache_settings: to_cache_settings(self.authorized_ttl_ns),
            unauthorized_cache_settings: to_cache_settings(self.unauthorized_ttl_ns),
            subject_access_review_version: version,
            failure_policy: FailurePolicy::NoOpinion,
            connection_info: ConnectionInfo::KubeConfigFile(path),
            match_conditions: MatchConditions::Unversioned,
        })
    }
}

fn webhook_authorizer_configurations(
    flags: &WebhookFlags,
    directory: &Path,
    hook_names: Option<&[String]>,
) -> Result<Vec<AuthorizerConfiguration>, FlagTranslationError> {
    let settings = flags.to_webhook_settings(directory)?;
    let default = [FLAG_WEBHOOK_NAME.to_owned()];
    let webhook = |name: &String| {
        let (name, settings) =
            (AuthorizerName::new(name).map_err(FlagTranslationError::Name)?, settings.clone());
        Ok(AuthorizerConfiguration::Webhook(Box::new(WebhookConfiguration {
            name,
            webhook_settings: settings,
        })))
    };
    hook_names.unwrap_or(&default).iter().map(webhook).collect()
}

/// No flag sets the timeout, so a webhook of the flags has the longest one.
#[expect(clippy::expect_used, reason = "INVARIANT on Timeout: its largest value is one")]
fn longest_webhook_timeout() -> Timeout {
    Timeout::new(Timeout::MAX).expect("the longest timeout is a timeout")
}

/// Enables the cache unless the lifetime is zero. Answers with a negative lifetime have expired when they are stored,
/// which has the same effect as no cache.
fn to_cache_settings(ttl_ns: i64) -> CacheSettings {
    let ttl = Duration::from_nanos(u64::try_from(ttl_ns).unwrap_or(0));
    CacheSettings::new(ttl, ttl_ns != 0)
}
