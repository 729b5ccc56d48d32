//! A configuration and the authorizers that were built from it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use authz_abac::Snapshot;
use authz_chain::{AuthorizerSlot, AuthorizerType, Configuration};
use authz_webhook::Webhook;
use document::Warning;

use crate::file_set::FileSet;
use crate::observers::AppliedConfig;

/// A configuration and the authorizers that were built from it.
///
/// It never changes: a request uses one generation from beginning to end, even if a reload ends in between.
pub struct Generation {
    /// The number of this generation. The generation that the server starts with has number 1.
    pub generation_number: u64,
    /// The file or the flags that define the configuration.
    pub source: ConfigSource,
    /// The hash of the configuration file; `None` if it comes from flags.
    pub hash: Option<String>,
    /// The time when it was built.
    pub loaded_at: SystemTime,
    /// The configuration that it was built from.
    pub configuration: Configuration,
    /// The authorizer slots in the order in which the chain consults them.
    pub authorizer_slots: Arc<[AuthorizerSlot]>,
    /// The webhooks among the authorizers, in order. Consecutive generations share a webhook that did not change,
    /// together with its cache.
    pub configured_webhooks: Vec<Arc<ConfiguredWebhook>>,
    /// Warnings about the files, without those about parts that the previous generation also has.
    pub warnings: Vec<Warning>,
    pub(crate) abac_policy_file: Option<AbacPolicyFile>,
    pub(crate) file_set: FileSet,
}

/// The origin of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigSource {
    /// The flags, which do not change while the server runs.
    Flags,
    /// The configuration comes from this file.
    File(PathBuf),
}

/// A webhook authorizer and the files that its connection comes from.
pub struct ConfiguredWebhook {
    /// The webhook authorizer itself.
    pub webhook: Arc<Webhook>,
    /// The URL that is called, without secrets.
    pub endpoint_url_without_secrets: String,
    pub(crate) file_set: FileSet,
}

/// The ABAC policies and the file that contains them.
#[derive(Clone)]
pub(crate) struct AbacPolicyFile {
    pub(crate) abac_policies: Arc<Snapshot>,
    pub(crate) file_set: FileSet,
}

impl Generation {
    /// The type and the name of each authorizer, in order.
    pub fn authorizer_types_and_names(&self) -> Vec<(AuthorizerType, &str)> {
        let authorizers = self.configuration.authorizers().iter();
        authorizers.map(|it| (it.authorizer_type(), it.name())).collect()
    }

    /// The webhook authorizers in the order of the chain.
    pub fn webhooks(&self) -> impl Iterator<Item = &Arc<Webhook>> {
        self.configured_webhooks.iter().map(|hook| &hook.webhook)
    }

    /// Every file that the generation depends on, sorted by path.
    pub fn file_paths(&self) -> impl Iterator<Item = &Path> {
        self.file_set.file_paths()
    }

    /// Passes the facts about this configuration that metrics show to `observe`. `hash` is that of the file now: it
    /// differs from the hash of the generation if only a comment has changed since.
    pub(crate) fn report_applied_config(
        &self,
        hash: Option<&str>,
        observe: impl FnOnce(&AppliedConfig<'_>),
    ) {
        let authorizers = self.authorizer_types_and_names();
        observe(&AppliedConfig {
            hash,
            generation: self.generation_number,
            authorizer_types_and_names: &authorizers,
        });
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generation")
            .field("number", &self.generation_number)
            .field("hash", &self.hash)
            .field("slots", &self.authorizer_slots)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ConfiguredWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("name", &self.webhook.name())
            .field("endpoint", &self.endpoint_url_without_secrets)
            .finish_non_exhaustive()
    }
}
