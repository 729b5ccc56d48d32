//! The status of the configuration and of its webhooks, as served to operators.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use authz_webhook::{LastFailedCall, WebhookHealth};
use jiff::Timestamp;
use serde::Serialize;

use crate::config_generation::{ConfigSource, ConfiguredWebhook, Generation};

/// The answer to `GET /portcullis/authorization/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizationStatus {
    /// The source of the configuration: `flags` or `file`.
    pub source: &'static str,
    /// The path of the configuration file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The hash of the file that is in effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The number of the generation in effect, counted from 1.
    pub generation: u64,
    /// The time when the generation was built.
    pub loaded_at: String,
    /// The last reload that applied a configuration or failed; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempt: Option<ReloadAttemptStatus>,
    /// The hash of the configuration file if the reloader rejected it. Another configuration is then in effect.
    #[serde(rename = "pending", skip_serializing_if = "Option::is_none")]
    pub rejected_config_hash: Option<String>,
    /// The status of each authorizer, in the order of the chain.
    pub authorizers: Vec<AuthorizerStatus>,
    /// Every file that the reloader watches.
    pub files: Vec<String>,
}

/// The result of a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadAttemptStatus {
    /// The time of the reload.
    pub at: String,
    /// Whether the new configuration went into effect.
    pub ok: bool,
    /// The error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The status of one authorizer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizerStatus {
    /// The type, such as `RBAC`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The name in the configuration.
    pub name: String,
    /// The state of the calls; only for webhooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookStatus>,
}

/// The state of the calls to a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookStatus {
    /// The URL of the webhook, without secrets.
    pub endpoint: String,
    /// The number of calls in flight.
    #[serde(rename = "inFlight")]
    pub n_calls_in_flight: usize,
    /// The time of the last call that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success: Option<String>,
    /// The last call that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<WebhookFailureStatus>,
    /// The number of cached answers.
    pub cache_entries: usize,
    /// The memory that the cached answers take, in bytes.
    pub cache_bytes: usize,
}

/// The last call of the webhook that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookFailureStatus {
    /// The time when the call ended.
    pub at: String,
    /// The error, without secrets.
    pub message: String,
}

/// The generation in effect and the result of the last reload. Each check replaces the whole value.
#[derive(Debug)]
pub(crate) struct ReloaderState {
    pub(crate) generation: Arc<Generation>,
    /// The hash of the configuration file when a check last found that it defines the generation; `None` for flags.
    pub(crate) config_file_hash: Option<String>,
    pub(crate) last_reload_attempt: Option<ReloadAttempt>,
    /// The hash of the configuration file, if it was rejected.
    pub(crate) rejected_config_hash: Option<String>,
    /// The files that the rejected configuration depends on.
    pub(crate) rejected_config_files: Vec<PathBuf>,
}

/// A reload that applied a configuration or failed.
#[derive(Debug, Clone)]
pub(crate) struct ReloadAttempt {
    pub(crate) at: SystemTime,
    /// The error of the reload; `None` if it succeeded.
    pub(crate) error: Option<String>,
}

impl ReloaderState {
    /// Creates the state of a reloader that has made no reload.
    pub(crate) fn new(generation: Arc<Generation>) -> Self {
        Self {
            config_file_hash: generation.hash.clone(),
            generation,
            last_reload_attempt: None,
            rejected_config_hash: None,
            rejected_config_files: Vec::new(),
        }
    }

    /// Lists every file to watch once, sorted by path.
    pub(crate) fn watched_files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = match &self.generation.source {
            ConfigSource::Flags => Vec::new(),
            ConfigSource::File(path) => vec![path.clone()],
        };
        files.extend(self.generation.file_paths().map(Path::to_owned));
        files.extend(self.rejected_config_files.iter().cloned());
        files.sort();
        files.dedup();
        files
    }

    pub(crate) fn status(&self) -> AuthorizationStatus {
        let generation = &self.generation;
        let file = match &generation.source {
            ConfigSource::Flags => None,
            ConfigSource::File(path) => Some(path.display().to_string()),
        };
        let is_file = file.is_some();
        let watched_files = if is_file { self.watched_files() } else { Vec::new() };
        AuthorizationStatus {
            source: if is_file { "file" } else { "flags" },
            file,
            hash: self.config_file_hash.clone(),
            generation: generation.generation_number,
            loaded_at: format_time(generation.loaded_at),
            last_attempt: self.last_reload_attempt.as_ref().map(|attempt| ReloadAttemptStatus {
                at: format_time(attempt.at),
                ok: attempt.error.is_none(),
                error: attempt.error.clone(),
            }),
            rejected_config_hash: self.rejected_config_hash.clone(),
            authorizers: authorizer_statuses(generation),
            files: watched_files.iter().map(|path| path.display().to_string()).collect(),
        }
    }
}

fn authorizer_statuses(generation: &Generation) -> Vec<AuthorizerStatus> {
    let status = |(kind, name): (authz_chain::AuthorizerType, &str)| {
        let hook = generation.configured_webhooks.iter().find(|hook| hook.webhook.name() == name);
        let webhook = hook.map(|hook| webhook_status(hook));
        AuthorizerStatus { kind: kind.name(), name: name.to_owned(), webhook }
    };
    generation.authorizer_types_and_names().into_iter().map(status).collect()
}

fn webhook_status(hook: &ConfiguredWebhook) -> WebhookStatus {
    let WebhookHealth {
        n_in_flight_calls: n_in_flight,
        last_successful_call_at: last_success_at,
        last_failed_call: last_failure,
        n_cached_answers,
        cache_bytes,
    } = hook.webhook.health();
    let failure = |LastFailedCall { at, message }: LastFailedCall| WebhookFailureStatus {
        at: format_time(at),
        message,
    };
    WebhookStatus {
        endpoint: hook.endpoint_url_without_secrets.clone(),
        n_calls_in_flight: n_in_flight,
        last_success: last_success_at.map(format_time),
        last_failure: last_failure.map(failure),
        cache_entries: n_cached_answers,
        cache_bytes,
    }
}

/// Formats a time as RFC 3339 with microseconds, like Kubernetes' MicroTime.
fn format_time(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or_else(|_| String::new(), |time| format!("{time:.6}"))
}
