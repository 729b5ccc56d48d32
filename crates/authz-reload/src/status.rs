//! What is in effect and how it is doing, for people and programs to read.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use authz_webhook::{Health, LastFailure};
use jiff::Timestamp;
use serde::Serialize;

use crate::generation::{Generation, Hook, Source};

/// The answer to `GET /portcullis/authorization/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// `flags` or `file`.
    pub source: &'static str,
    /// The configuration file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The hash of the file that is in effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The number of the configuration in effect, from 1.
    pub generation: u64,
    /// Since when it is in effect.
    pub loaded_at: String,
    /// The last reload that came to anything; none before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempt: Option<LastAttempt>,
    /// The hash of the file that should be in effect and can not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
    /// The authorizers in order.
    pub authorizers: Vec<AuthorizerStatus>,
    /// Every file whose change is noticed.
    pub files: Vec<String>,
}

/// How a reload ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastAttempt {
    /// When.
    pub at: String,
    /// Whether the new configuration went into effect.
    pub ok: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One authorizer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizerStatus {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// How it is doing; only webhooks can do badly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookStatus>,
}

/// How a webhook is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookStatus {
    /// Where it is called, without secrets.
    pub endpoint: String,
    /// How many calls are in flight.
    pub in_flight: usize,
    /// When a call last succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success: Option<String>,
    /// When and why a call last failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<FailureStatus>,
    /// How many answers are kept.
    pub cache_entries: usize,
    /// How much memory they take, in bytes.
    pub cache_bytes: usize,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureStatus {
    /// When.
    pub at: String,
    /// Why.
    pub message: String,
}

/// What is in effect, and what a reload came to last. Replaced whole.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) generation: Arc<Generation>,
    pub(crate) last_attempt: Option<Attempt>,
    /// The hash of the file that should be in effect and can not be.
    pub(crate) pending: Option<String>,
    /// Files that it depends on.
    pub(crate) awaited: Vec<PathBuf>,
}

/// A reload that came to something.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) at: SystemTime,
    /// `None` if it succeeded.
    pub(crate) error: Option<String>,
}

impl Progress {
    /// A generation in effect, and nothing else that should be.
    pub(crate) fn new(generation: Arc<Generation>) -> Self {
        Self { generation, last_attempt: None, pending: None, awaited: Vec::new() }
    }

    /// Every file whose change matters, each once, sorted.
    pub(crate) fn followed(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = match &self.generation.source {
            Source::Flags => Vec::new(),
            Source::File(path) => vec![path.clone()],
        };
        files.extend(self.generation.files().map(Path::to_owned));
        files.extend(self.awaited.iter().cloned());
        files.sort();
        files.dedup();
        files
    }

    pub(crate) fn status(&self) -> Status {
        let generation = &self.generation;
        let file = match &generation.source {
            Source::Flags => None,
            Source::File(path) => Some(path.display().to_string()),
        };
        let is_followed = file.is_some();
        let followed = if is_followed { self.followed() } else { Vec::new() };
        Status {
            source: if is_followed { "file" } else { "flags" },
            file,
            hash: generation.hash.clone(),
            generation: generation.number,
            loaded_at: time(generation.loaded_at),
            last_attempt: self.last_attempt.as_ref().map(|attempt| LastAttempt {
                at: time(attempt.at),
                ok: attempt.error.is_none(),
                error: attempt.error.clone(),
            }),
            pending: self.pending.clone(),
            authorizers: authorizers(generation),
            files: followed.iter().map(|path| path.display().to_string()).collect(),
        }
    }
}

fn authorizers(generation: &Generation) -> Vec<AuthorizerStatus> {
    let status = |(kind, name): (authz_chain::AuthorizerType, &str)| {
        let hook = generation.hooks.iter().find(|hook| hook.webhook.name() == name);
        let webhook = hook.map(|hook| webhook_status(hook));
        AuthorizerStatus { kind: kind.name(), name: name.to_owned(), webhook }
    };
    generation.authorizers().into_iter().map(status).collect()
}

fn webhook_status(hook: &Hook) -> WebhookStatus {
    let Health { in_flight, last_success, last_failure, cache_entries, cache_bytes } =
        hook.webhook.health();
    let failure =
        |LastFailure { at, message }: LastFailure| FailureStatus { at: time(at), message };
    WebhookStatus {
        endpoint: hook.endpoint.clone(),
        in_flight,
        last_success: last_success.map(time),
        last_failure: last_failure.map(failure),
        cache_entries,
        cache_bytes,
    }
}

/// RFC 3339 with microseconds, as Kubernetes writes exact times.
fn time(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or_else(|_| String::new(), |time| format!("{time:.6}"))
}
