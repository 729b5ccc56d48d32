//! Builds authorizers from a configuration.

mod abac_policies;
mod webhook;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use authz_chain::{AuthorizerConfiguration, AuthorizerSlot, Configuration, Member, SlotAuthorizer};
use authz_webhook::{Connection as ConnectionInfo, WebhookLimits, WebhookSettings};
use config::authorization_config::LoadOptions;
use document::Warning;
use https_client::{Limits, Resolve};
use kubeconfig::{Connection, HookConnection, LoadedConnections};

use crate::build_error::{BuildCause, BuildError, StartError};
use crate::files::{FileRecorder, FileSet};
use crate::flags::{AuthorizationModes, AuthorizationPlan, ConfigFilePlan};
use crate::generation::{AbacPolicyFile, ConfigSource, ConfiguredWebhook, Generation};
use crate::modes_to_configuration::FLAG_WEBHOOK_NAME;
use crate::observers::{AuthorizationObservers, NoObservers};
use crate::sha256_hash::sha256_hash;

/// Builds authorizers. The fields are the inputs that no configuration states.
#[derive(Clone)]
pub struct Assembler {
    /// The limits of one webhook.
    pub guards: WebhookLimits,
    /// The limits of the connections to webhooks.
    pub limits: Limits,
    /// Resolves the names of Services; without it DNS does.
    pub resolver: Option<Arc<dyn Resolve>>,
    /// Makes the observers of authorizers and connections, for metrics.
    pub observers: Arc<dyn AuthorizationObservers>,
    /// The absolute folder that relative paths of flags start from.
    pub directory: PathBuf,
}

impl Assembler {
    /// An assembler with default limits, DNS, no metrics, and paths from the working directory.
    ///
    /// # Errors
    /// The working directory does not exist or is not readable.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            guards: WebhookLimits::default(),
            limits: Limits::default(),
            resolver: None,
            observers: Arc::new(NoObservers),
            directory: std::env::current_dir()?,
        })
    }
}

/// The source of a configuration, and the inputs that a configuration can not state.
#[derive(Debug, Clone)]
pub struct ConfigOrigin {
    /// The configuration file or the flags.
    pub source: ConfigSource,
    /// The hash of the configuration file; `None` for flags.
    pub hash: Option<String>,
    /// The file of the ABAC policies: `--authorization-policy-file`.
    pub policy_file: Option<PathBuf>,
}

/// Finds the connection of a webhook; returns `None` for `InClusterConfig`.
type FindConnection<'a> =
    dyn FnMut(&str, &WebhookSettings, &FileRecorder) -> Result<Option<Connection>, BuildCause> + 'a;

impl Assembler {
    /// Builds the first generation of a server. Blocks, because it reads every file that the plan refers
    /// to.
    ///
    /// # Errors
    /// A file can not be read or is invalid; see [`StartError`].
    pub fn start(&self, plan: &AuthorizationPlan) -> Result<Generation, StartError> {
        match plan {
            AuthorizationPlan::File(plan) => self.start_file(plan),
            AuthorizationPlan::Modes(modes) => {
                self.build_from_modes(modes).map_err(StartError::Build)
            }
        }
    }

    /// Builds the authorizers of a configuration. Blocks, because it reads every file that the configuration
    /// refers to.
    ///
    /// A webhook with the name, the settings and the file contents of one in `previous` is reused with its
    /// cache. So are ABAC policies from an unchanged file.
    ///
    /// # Errors
    /// A file can not be read or used; see [`BuildCause`].
    pub fn build(
        &self,
        configuration: &Configuration,
        origin: ConfigOrigin,
        previous: Option<&Generation>,
    ) -> Result<Generation, BuildError> {
        self.build_with(configuration, origin, previous, &mut |name, settings, recorder| {
            let ConnectionInfo::KubeConfigFile(path) = &settings.connection else {
                return Ok(None);
            };
            let loaded = load_connections(name, path.as_path(), recorder)?;
            let one = loaded.into_single_connection();
            one.map(Some).map_err(|error| BuildCause::Connection { name: name.to_owned(), error })
        })
    }

    fn start_file(&self, plan: &ConfigFilePlan) -> Result<Generation, StartError> {
        let path = self.directory.join(&plan.path);
        let bytes = document::read_file(&path).map_err(StartError::Read)?;
        let name = path.display().to_string();
        let source = document::Source { name: &name, bytes: &bytes };
        let loaded = config::authorization_config::load(&source, &LoadOptions::default());
        let configuration = loaded.configuration.map_err(StartError::Load)?;
        let origin = self.origin(plan, &bytes);
        let mut generation = self.build(&configuration, origin, None).map_err(StartError::Build)?;
        generation.warnings.splice(0..0, loaded.warnings);
        Ok(generation)
    }

    /// The origin of a configuration file with these bytes.
    pub(crate) fn origin(&self, plan: &ConfigFilePlan, bytes: &[u8]) -> ConfigOrigin {
        ConfigOrigin {
            source: ConfigSource::File(self.directory.join(&plan.path)),
            hash: Some(sha256_hash(bytes)),
            policy_file: plan.policy_file.clone(),
        }
    }

    /// Builds the authorizers of the flags. The webhook file is read first, because it may contain several
    /// webhooks.
    fn build_from_modes(&self, modes: &AuthorizationModes) -> Result<Generation, BuildError> {
        let recorder = FileRecorder::default();
        let (names, mut connections) = match self.load_flag_connections(modes, &recorder) {
            Ok(connections) => connections,
            Err(cause) => return Err(BuildError { cause, files: recorder.into_files() }),
        };
        let files = recorder.into_files();
        let configuration =
            modes.to_configuration(&self.directory, names.as_deref()).map_err(|error| {
                BuildError { cause: BuildCause::Flags(error), files: files.clone() }
            })?;
        let policy_file = modes.policy_file.clone();
        let origin = ConfigOrigin { source: ConfigSource::Flags, hash: None, policy_file };
        // The configuration has one webhook for each connection, in the same order.
        let mut next = |_: &str, _: &WebhookSettings, recorder: &FileRecorder| {
            recorder.record_all(&files);
            Ok(connections.next())
        };
        self.build_with(&configuration, origin, None, &mut next)
    }

    /// Reads the webhook file of the flags: the names of its webhooks, if it has any, and a connection for each.
    fn load_flag_connections(
        &self,
        modes: &AuthorizationModes,
        recorder: &FileRecorder,
    ) -> Result<(Option<Vec<String>>, std::vec::IntoIter<Connection>), BuildCause> {
        let Some(flags) = &modes.webhook else { return Ok((None, Vec::new().into_iter())) };
        let path = flags.absolute_config_file(&self.directory);
        match load_connections(FLAG_WEBHOOK_NAME, &path, recorder)? {
            LoadedConnections::Kubeconfig(connection) => Ok((None, vec![*connection].into_iter())),
            LoadedConnections::Hooks(hooks) => {
                let hooks = hooks.into_iter();
                let pairs = hooks.map(|HookConnection { name, connection }| (name, connection));
                let (names, connections): (_, Vec<Connection>) = pairs.unzip();
                Ok((Some(names), connections.into_iter()))
            }
        }
    }

    fn build_with(
        &self,
        configuration: &Configuration,
        origin: ConfigOrigin,
        previous: Option<&Generation>,
        find_connection: &mut FindConnection<'_>,
    ) -> Result<Generation, BuildError> {
        let mut parts = PartialGeneration::default();
        for authorizer in configuration.authorizers() {
            match self.build_authorizer(authorizer, &origin, previous, find_connection, &mut parts)
            {
                Ok(active) => parts.slots.push(AuthorizerSlot {
                    authorizer: active,
                    observer: self
                        .observers
                        .authorizer_observer(authorizer.authorizer_type(), authorizer.name()),
                }),
                Err(cause) => return Err(BuildError { cause, files: parts.files }),
            }
        }
        Ok(Generation {
            number: previous.map_or(1, |previous| previous.number.saturating_add(1)),
            source: origin.source,
            hash: origin.hash,
            loaded_at: SystemTime::now(),
            configuration: configuration.clone(),
            slots: parts.slots.into(),
            hooks: parts.hooks,
            warnings: parts.warnings,
            abac: parts.abac,
            files: parts.files,
        })
    }

    fn build_authorizer(
        &self,
        authorizer: &AuthorizerConfiguration,
        origin: &ConfigOrigin,
        previous: Option<&Generation>,
        find_connection: &mut FindConnection<'_>,
        parts: &mut PartialGeneration,
    ) -> Result<SlotAuthorizer, BuildCause> {
        match authorizer {
            AuthorizerConfiguration::AlwaysAllow => Ok(SlotAuthorizer::Fixed(Member::AlwaysAllow)),
            AuthorizerConfiguration::AlwaysDeny => Ok(SlotAuthorizer::Fixed(Member::AlwaysDeny)),
            AuthorizerConfiguration::Node => Ok(SlotAuthorizer::Node),
            AuthorizerConfiguration::Rbac => Ok(SlotAuthorizer::Rbac),
            AuthorizerConfiguration::Abac => {
                let path = origin.policy_file.as_deref();
                let abac = abac_policies::load(&self.directory, path, previous, parts)?;
                let member = Member::Abac(Arc::clone(&abac.policies));
                parts.abac = Some(abac);
                Ok(SlotAuthorizer::Fixed(member))
            }
            AuthorizerConfiguration::Webhook(webhook) => {
                let (name, settings) = (webhook.name.as_str(), &webhook.settings);
                let hook = webhook::reuse_or_build(
                    self,
                    name,
                    settings,
                    previous,
                    find_connection,
                    parts,
                )?;
                let member = Member::Webhook(Arc::clone(&hook.webhook));
                parts.hooks.push(hook);
                Ok(SlotAuthorizer::Fixed(member))
            }
        }
    }
}

/// The parts of a generation that are built so far, and every file that was read, also without success.
#[derive(Default)]
struct PartialGeneration {
    slots: Vec<AuthorizerSlot>,
    hooks: Vec<Arc<ConfiguredWebhook>>,
    warnings: Vec<Warning>,
    abac: Option<AbacPolicyFile>,
    files: FileSet,
}

fn load_connections(
    name: &str,
    path: &Path,
    recorder: &FileRecorder,
) -> Result<LoadedConnections, BuildCause> {
    let read = |path: &Path| recorder.read(path, kubeconfig::FILE_BYTES_MAX);
    kubeconfig::load(path, &read)
        .map_err(|error| BuildCause::Connection { name: name.to_owned(), error })
}
