//! From legacy flags to the configuration that they mean.

use std::path::{Path, PathBuf};
use std::time::Duration;

use authz_chain::{
    Authorizer, AuthorizerName, Configuration, ConfigurationError, NameError, Webhook,
};
use authz_webhook::{
    AbsolutePath, Caching, Connection, FailurePolicy, MatchConditions, ReviewVersion, Timeout,
    WebhookSettings,
};

use crate::flags::{Modes, WebhookFlags};

/// How a webhook is named whose file does not name it.
pub const WEBHOOK_OF_FLAGS: &str = "default";

/// Why flags make no configuration. Displays as Kubernetes' message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    /// No review has this version.
    #[error(
        "unsupported webhook authorizer version {}, supported versions are \"v1\", \"v1beta1\"",
        go_compat::quote(.version)
    )]
    Version {
        /// What the flag says.
        version: String,
    },
    /// A mode is named twice.
    #[error(
        "failed to build authorization config: modes should not be repeated in --authorization-mode"
    )]
    RepeatedMode,
    /// The names of hooks and of built-in authorizers do not go together.
    #[error("failed to build authorization config: {0}")]
    Names(ConfigurationError),
    /// A hook has a name that no authorizer can bear.
    #[error("failed to build authorization config: {0}")]
    Name(#[from] NameError),
    /// A path that a configuration can not hold.
    #[error("path {} is not UTF-8", .0.display())]
    Path(PathBuf),
}

impl Modes {
    /// The configuration that these flags mean.
    ///
    /// `directory` is where relative paths begin. `hooks` are the names in the file of the webhooks
    /// if it is a file of external hooks: then each of them becomes an authorizer, in order, where
    /// the mode stands. A kubeconfig has none and becomes one authorizer.
    ///
    /// # Errors
    /// See [`TranslateError`].
    pub fn configuration(
        &self,
        directory: &Path,
        hooks: Option<&[String]>,
    ) -> Result<Configuration, TranslateError> {
        let mut authorizers = Vec::new();
        for &mode in &self.modes {
            match (Authorizer::built_in(mode), &self.webhook) {
                (Some(built_in), _) => authorizers.push(built_in),
                (None, Some(flags)) => {
                    authorizers.extend(webhooks(flags, directory, hooks)?);
                }
                (None, None) => {}
            }
        }
        Configuration::new(authorizers).map_err(|error| match error {
            ConfigurationError::RepeatedType(_) => TranslateError::RepeatedMode,
            other => TranslateError::Names(other),
        })
    }
}

impl WebhookFlags {
    /// The path of the file from everywhere.
    pub fn absolute_config_file(&self, directory: &Path) -> PathBuf {
        directory.join(&self.config_file)
    }

    /// What is configured for each webhook of the flags.
    fn settings(&self, directory: &Path) -> Result<WebhookSettings, TranslateError> {
        let path = self.absolute_config_file(directory);
        let path = path
            .to_str()
            .and_then(AbsolutePath::new)
            .ok_or_else(|| TranslateError::Path(path.clone()))?;
        let version = ReviewVersion::from_name(&self.version)
            .ok_or_else(|| TranslateError::Version { version: self.version.clone() })?;
        Ok(WebhookSettings {
            timeout: longest_timeout(),
            authorized_caching: caching(self.authorized_ttl_ns),
            unauthorized_caching: caching(self.unauthorized_ttl_ns),
            subject_access_review_version: version,
            failure_policy: FailurePolicy::NoOpinion,
            connection: Connection::KubeConfigFile(path),
            match_conditions: MatchConditions::Unversioned,
        })
    }
}

fn webhooks(
    flags: &WebhookFlags,
    directory: &Path,
    hooks: Option<&[String]>,
) -> Result<Vec<Authorizer>, TranslateError> {
    let settings = flags.settings(directory)?;
    let default = [WEBHOOK_OF_FLAGS.to_owned()];
    let webhook = |name: &String| {
        let (name, settings) = (AuthorizerName::new(name)?, settings.clone());
        Ok(Authorizer::Webhook(Box::new(Webhook { name, settings })))
    };
    hooks.unwrap_or(&default).iter().map(webhook).collect()
}

/// Flags can not name a time, so a webhook of flags has the longest.
#[expect(clippy::expect_used, reason = "INVARIANT on Timeout: its largest value is one")]
fn longest_timeout() -> Timeout {
    Timeout::new(Timeout::MAX).expect("the longest timeout is a timeout")
}

/// Answers are cached unless the time is zero. What has a negative time is kept and has already
/// expired, so it is as good as not kept.
fn caching(ttl_ns: i64) -> Caching {
    let ttl = Duration::from_nanos(u64::try_from(ttl_ns).unwrap_or(0));
    Caching::new(ttl, ttl_ns != 0)
}
