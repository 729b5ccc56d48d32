//! One configuration in effect, with everything that was made from it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use authz_abac::Snapshot;
use authz_chain::{AuthorizerSlot, AuthorizerType, Configuration};
use authz_webhook::Webhook;
use document::Warning;
use https_client::Client;

use crate::files::Files;
use crate::instruments::Applied;

/// One configuration in effect, with everything that was made from it.
///
/// Immutable: a request that begins with one ends with it, whatever is loaded meanwhile.
pub struct Generation {
    /// Counted from 1, the one of the start.
    pub number: u64,
    /// Where it comes from.
    pub source: Source,
    /// The hash of the file; `None` if it comes from flags.
    pub hash: Option<String>,
    /// When it was assembled.
    pub loaded_at: SystemTime,
    /// What it was assembled from.
    pub configuration: Configuration,
    /// The authorizers in order.
    pub slots: Arc<[AuthorizerSlot]>,
    /// The webhooks among them, in order. One that did not change is shared with the generation
    /// before, and so is its cache.
    pub hooks: Vec<Arc<Hook>>,
    /// What should be changed in the files, as far as the generation before did not say it.
    pub warnings: Vec<Warning>,
    pub(crate) abac: Option<Abac>,
    pub(crate) files: Files,
}

/// Where a configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// From flags: it stays as it is.
    Flags,
    /// From this file.
    File(PathBuf),
}

/// A webhook, and how it is reached.
pub struct Hook {
    /// The authorizer.
    pub webhook: Arc<Webhook>,
    /// Where it is called, without secrets.
    pub endpoint: String,
    pub(crate) client: Arc<Client>,
    pub(crate) files: Files,
}

/// The policies of type ABAC, and the file that they are from.
#[derive(Clone)]
pub(crate) struct Abac {
    pub(crate) policies: Arc<Snapshot>,
    pub(crate) files: Files,
}

impl Generation {
    /// Type and name of all authorizers in order.
    pub fn authorizers(&self) -> Vec<(AuthorizerType, &str)> {
        let authorizers = self.configuration.authorizers().iter();
        authorizers.map(|it| (it.authorizer_type(), it.name())).collect()
    }

    /// The webhooks in order.
    pub fn webhooks(&self) -> impl Iterator<Item = &Arc<Webhook>> {
        self.hooks.iter().map(|hook| &hook.webhook)
    }

    /// Every file that it depends on, sorted.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.paths()
    }

    /// Hands what went into effect to `tell`.
    pub(crate) fn tell(&self, tell: impl FnOnce(&Applied<'_>)) {
        let authorizers = self.authorizers();
        tell(&Applied {
            hash: self.hash.as_deref(),
            generation: self.number,
            authorizers: &authorizers,
        });
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generation")
            .field("number", &self.number)
            .field("hash", &self.hash)
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("name", &self.webhook.name())
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
