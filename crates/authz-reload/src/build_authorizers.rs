//! Builds authorizers from a configuration.

mod build_webhook;
mod load_abac_policies;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use authz_chain::{
    AuthorizerConfiguration, AuthorizerSlot, ChainMember, Configuration, SlotAuthorizer,
};
use authz_webhook::{ConnectionInfo, WebhookLimits, WebhookSettings};
use config::authorization_config::LoadOptions;
use document::Warning;
use https_client::{Limits, ServiceResolver};
use kubeconfig::{AuthorizationHookConnection, LoadedConnections, ServerConnection};
use manifests::abac;

use crate::build_error::{BuildError, BuildErrorCause, StartError};
use crate::config_generation::{AbacPolicyFile, ConfigSource, ConfiguredWebhook, Generation};
use crate::file_set::{FileRecorder, FileSet};
use crate::modes_to_configuration::FLAG_WEBHOOK_NAME;
use crate::observers::{AuthorizationObserverFactory, NoObservers};
use crate::plan_from_flags::{AuthorizationModes, AuthorizationPlan, ConfigFilePlan};
use crate::plugin_authorizers::PluginAuthorizers;
use crate::sha256_hash::sha256_hash;

/// Builds authorizers from configurations. The fields are the inputs that a configuration does not contain.
#[derive(Clone)]
pub struct AuthorizerBuilder {
    /// The limits of calls and caches, for each webhook.
    pub webhook_limits: WebhookLimits,
    /// The limits of the connections to webhooks.
    pub connection_limits: Limits,
    /// Resolves the names of Services. Without a resolver the builder uses DNS.
    pub service_resolver: Option<Arc<dyn ServiceResolver>>,
    /// Creates the observers of authorizers and connections, for metrics.
    pub observer_factory: Arc<dyn AuthorizationObserverFactory>,
    /// The authorizers that a configuration may name besides the built-in ones.
    pub plugin_authorizers: PluginAuthorizers,
    /// The options of reading the ABAC policy file.
    pub abac_options: abac::AbacPolicyLoadOptions,
    /// The absolute directory that relative paths in flags start from.
    pub base_directory: PathBuf,
}

impl AuthorizerBuilder {
    /// Creates a builder with default limits, DNS, no metrics, and paths relative to the working directory.
    ///
    /// # Errors
    /// The working directory does not exist or is not readable.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            webhook_limits: WebhookLimits::default(),
            connection_limits: Limits::default(),
            service_resolver: None,
            observer_factory: Arc::new(NoObservers),
            plugin_authorizers: PluginAuthorizers::default(),
            abac_options: abac::AbacPolicyLoadOptions::default(),
            base_directory: std::env::current_dir()?,
        })
    }
}

/// The source of a configuration, and the inputs that a configuration cannot contain.
#[derive(Debug, Clone)]
pub struct ConfigOrigin {
    /// The configuration file or the flags.
    pub source: ConfigSource,
    /// The hash of the configuration file; `None` for flags.
    pub hash: Option<String>,
    /// The file of the ABAC policies: `--authorization-policy-file`.
    pub abac_policy_file: Option<PathBuf>,
}

/// Finds the connection of a webhook; returns `None` for `InClusterConfig`.
type WebhookConnectionFinder<'a> = dyn FnMut(
        &str,
        &WebhookSettings,
        &FileRecorder,
    ) -> Result<Option<ServerConnection>, BuildErrorCause>
    + 'a;

impl AuthorizerBuilder {
    /// Builds the first generation of a server. It reads every file that the plan refers to, so it blocks.
    ///
    /// # Errors
    /// A file cannot be read or is invalid; see [`StartError`].
    pub fn build_first_generation(
        &self,
        plan: &AuthorizationPlan,
    ) -> Result<Generation, StartError> {
        match plan {
            AuthorizationPlan::File(plan) => self.build_generation_from_file(plan),
            AuthorizationPlan::Modes(modes) => {
                self.build_generation_from_modes(modes).map_err(StartError::Build)
            }
        }
    }

    /// Builds the authorizers of a configuration. It reads every file that the configuration refers to, so it blocks.
    ///
    /// It reuses a webhook of `previous` with the same name, settings and file contents, together with its cache, and
    /// it reuses ABAC policies from an unchanged file.
    ///
    /// # Errors
    /// A file cannot be read or used; see [`BuildErrorCause`].
    pub fn build_next_generation(
        &self,
        configuration: &Configuration,
        origin: ConfigOrigin,
        previous: Option<&Generation>,
    ) -> Result<Generation, BuildError> {
        self.build_generation(configuration, origin, previous, &mut |name, settings, recorder| {
            let ConnectionInfo::KubeConfigFile(path) = &settings.connection_info else {
                return Ok(None);
            };
            let loaded = load_webhook_connections(name, path.as_path(), recorder)?;
            let one = loaded.into_single_connection();
            one.map(Some)
                .map_err(|error| BuildErrorCause::Connection { name: name.to_owned(), error })
        })
    }

    fn build_generation_from_file(&self, plan: &ConfigFilePlan) -> Result<Generation, StartError> {
        let path = self.base_directory.join(&plan.path);
        let bytes = document::read_file(&path).map_err(StartError::Read)?;
        let name = path.display().to_string();
        let source = document::Source { name: &name, file_bytes: &bytes };
        let plugin_authorizer_types = self.plugin_authorizers.plugin_types();
        let options = LoadOptions {
            plugin_authorizer_types: &plugin_authorizer_types,
            has_abac_policy_file: plan.abac_policy_file.is_some(),
            ..LoadOptions::default()
        };
        let loaded =
            config::authorization_config::load_authorization_configuration(&source, &options);
        let configuration = loaded.configuration.map_err(StartError::Load)?;
        let origin = self.config_origin_of_file(plan, &bytes);
        let mut generation =
            self.build_next_generation(&configuration, origin, None).map_err(StartError::Build)?;
        generation.warnings.splice(0..0, loaded.warnings);
        Ok(generation)
    }

    /// Returns the origin of a configuration file with these bytes.
    pub(crate) fn config_origin_of_file(
        &self,
        plan: &ConfigFilePlan,
        bytes: &[u8],
    ) -> ConfigOrigin {
        ConfigOrigin {
            source: ConfigSource::File(self.base_directory.join(&plan.path)),
            hash: Some(sha256_hash(bytes)),
            abac_policy_file: plan.abac_policy_file.clone(),
        }
    }

    /// Builds the authorizers that the flags configure. It reads the webhook file first, because that file may contain
    /// several webhooks.
    fn build_generation_from_modes(
        &self,
        modes: &AuthorizationModes,
    ) -> Result<Generation, BuildError> {
        let recorder = FileRecorder::default();
        let (names, mut connections) =
            match self.load_webhook_connections_of_flags(modes, &recorder) {
                Ok(connections) => connections,
                Err(cause) => return Err(BuildError { cause, file_set: recorder.into_file_set() }),
            };
        let files = recorder.into_file_set();
        let configuration =
            modes.to_configuration(&self.base_directory, names.as_deref()).map_err(|error| {
                BuildError { cause: BuildErrorCause::Flags(error), file_set: files.clone() }
            })?;
        let policy_file = modes.abac_policy_file.clone();
        let origin =
            ConfigOrigin { source: ConfigSource::Flags, hash: None, abac_policy_file: policy_file };
        // The configuration has one webhook for each connection, in the same order.
        let mut next = |_: &str, _: &WebhookSettings, recorder: &FileRecorder| {
            recorder.record_files(&files);
            Ok(connections.next())
        };
        self.build_generation(&configuration, origin, None, &mut next)
    }

    /// Reads the webhook file that the flags name. Returns the names of its webhooks, if the file has names, and a
    /// connection for each webhook.
    fn load_webhook_connections_of_flags(
        &self,
        modes: &AuthorizationModes,
        recorder: &FileRecorder,
    ) -> Result<(Option<Vec<String>>, std::vec::IntoIter<ServerConnection>), BuildErrorCause> {
        let Some(flags) = &modes.webhook_flags else { return Ok((None, Vec::new().into_iter())) };
        let path = flags.absolute_webhook_config_file(&self.base_directory);
        match load_webhook_connections(FLAG_WEBHOOK_NAME, &path, recorder)? {
            LoadedConnections::Kubeconfig(connection) => Ok((None, vec![*connection].into_iter())),
            LoadedConnections::Hooks(hooks) => {
                let hooks = hooks.into_iter();
                let pairs = hooks.map(
                    |AuthorizationHookConnection { name, server_connection: connection }| {
                        (name, connection)
                    },
                );
                let (names, connections): (_, Vec<ServerConnection>) = pairs.unzip();
                Ok((Some(names), connections.into_iter()))
            }
        }
    }

    fn build_generation(
        &self,
        configuration: &Configuration,
        origin: ConfigOrigin,
        previous: Option<&Generation>,
        find_connection: &mut WebhookConnectionFinder<'_>,
    ) -> Result<Generation, BuildError> {
        let mut parts = PartialGeneration::default();
        for authorizer in configuration.authorizers() {
            match self.build_authorizer(authorizer, &origin, previous, find_connection, &mut parts)
            {
                Ok(active) => parts.authorizer_slots.push(AuthorizerSlot {
                    authorizer: active,
                    decision_observer: self
                        .observer_factory
                        .create_decision_observer(authorizer.authorizer_type(), authorizer.name()),
                }),
                Err(cause) => return Err(BuildError { cause, file_set: parts.files_read }),
            }
        }
        Ok(Generation {
            generation_number: previous
                .map_or(1, |previous| previous.generation_number.saturating_add(1)),
            source: origin.source,
            hash: origin.hash,
            loaded_at: SystemTime::now(),
            configuration: configuration.clone(),
            authorizer_slots: parts.authorizer_slots.into(),
            configured_webhooks: parts.configured_webhooks,
            warnings: parts.warnings,
            abac_policy_file: parts.abac_policy_file,
            file_set: parts.files_read,
        })
    }

    fn build_authorizer(
        &self,
        authorizer: &AuthorizerConfiguration,
        origin: &ConfigOrigin,
        previous: Option<&Generation>,
        find_connection: &mut WebhookConnectionFinder<'_>,
        parts: &mut PartialGeneration,
    ) -> Result<SlotAuthorizer, BuildErrorCause> {
        match authorizer {
            AuthorizerConfiguration::AlwaysAllow => {
                Ok(SlotAuthorizer::Fixed(ChainMember::AlwaysAllow))
            }
            AuthorizerConfiguration::AlwaysDeny => {
                Ok(SlotAuthorizer::Fixed(ChainMember::AlwaysDeny))
            }
            AuthorizerConfiguration::Node => Ok(SlotAuthorizer::Node),
            AuthorizerConfiguration::Rbac => Ok(SlotAuthorizer::Rbac),
            AuthorizerConfiguration::Abac => {
                let path = origin.abac_policy_file.as_deref();
                let abac =
                    load_abac_policies::load_or_reuse_abac_policies(self, path, previous, parts)?;
                let member = ChainMember::Abac(Arc::clone(&abac.abac_policies));
                parts.abac_policy_file = Some(abac);
                Ok(SlotAuthorizer::Fixed(member))
            }
            AuthorizerConfiguration::Plugin(plugin) => {
                let authorizer = self
                    .plugin_authorizers
                    .find_plugin(plugin.plugin_type)
                    .ok_or(BuildErrorCause::UnknownPlugin(plugin.plugin_type))?;
                Ok(SlotAuthorizer::Fixed(ChainMember::Plugin(plugin.name.clone(), authorizer)))
            }
            AuthorizerConfiguration::Webhook(webhook) => {
                let (name, settings) = (webhook.name.as_str(), &webhook.webhook_settings);
                let hook = build_webhook::reuse_or_build_webhook(
                    self,
                    name,
                    settings,
                    previous,
                    find_connection,
                    parts,
                )?;
                let member = ChainMember::Webhook(Arc::clone(&hook.webhook));
                parts.configured_webhooks.push(hook);
                Ok(SlotAuthorizer::Fixed(member))
            }
        }
    }
}

/// The parts of a generation that are built so far, and every file that the builder tried to read.
#[derive(Default)]
struct PartialGeneration {
    authorizer_slots: Vec<AuthorizerSlot>,
    configured_webhooks: Vec<Arc<ConfiguredWebhook>>,
    warnings: Vec<Warning>,
    abac_policy_file: Option<AbacPolicyFile>,
    files_read: FileSet,
}

fn load_webhook_connections(
    name: &str,
    path: &Path,
    recorder: &FileRecorder,
) -> Result<LoadedConnections, BuildErrorCause> {
    let read = |path: &Path| recorder.read(path, kubeconfig::FILE_BYTES_MAX);
    kubeconfig::load_connections(path, &read)
        .map_err(|error| BuildErrorCause::Connection { name: name.to_owned(), error })
}
