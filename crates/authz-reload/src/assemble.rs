//! From a configuration to authorizers that can be asked.

mod hook;
mod policies;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use authz_chain::{ActiveAuthorizer, Authorizer, AuthorizerSlot, Configuration, Member};
use authz_webhook::{Connection as HowTo, Guards, WebhookSettings};
use config::authorization_config::LoadOptions;
use document::Warning;
use https_client::{Limits, Resolve};
use kubeconfig::{Connection, HookConnection, Loaded};

use crate::build_error::{BuildCause, BuildError, StartError};
use crate::files::{Files, Recording};
use crate::flags::{FilePlan, Modes, Plan};
use crate::generation::{Abac, Generation, Hook, Source};
use crate::hash::hash_of;
use crate::instruments::{Instruments, Uninstrumented};
use crate::translate::WEBHOOK_OF_FLAGS;

/// What authorizers are made with, besides their configuration.
#[derive(Clone)]
pub struct Assembler {
    /// The limits of one webhook.
    pub guards: Guards,
    /// What bounds the connections to webhooks.
    pub limits: Limits,
    /// Who knows where services are; without it the name service does.
    pub resolver: Option<Arc<dyn Resolve>>,
    /// Who counts.
    pub instruments: Arc<dyn Instruments>,
    /// Where relative paths of flags begin; absolute itself.
    pub directory: PathBuf,
}

impl Assembler {
    /// Safe guards, services by name, nobody who counts, paths from the working directory.
    ///
    /// # Errors
    /// The working directory is gone or must not be looked at.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            guards: Guards::default(),
            limits: Limits::default(),
            resolver: None,
            instruments: Arc::new(Uninstrumented),
            directory: std::env::current_dir()?,
        })
    }
}

/// Where a configuration comes from, and what no configuration says.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Where it comes from.
    pub source: Source,
    /// The hash of the file.
    pub hash: Option<String>,
    /// The policies of type ABAC.
    pub policy_file: Option<PathBuf>,
}

/// Finds out how a webhook is reached; `None` if only a pod could tell.
type Connect<'a> =
    dyn FnMut(&str, &WebhookSettings, &Recording) -> Result<Option<Connection>, BuildCause> + 'a;

impl Assembler {
    /// The authorizers of a plan, for the start of a server. Reads every file that the plan leads
    /// to, so it blocks.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(&self, plan: &Plan) -> Result<Generation, StartError> {
        match plan {
            Plan::File(plan) => self.start_file(plan),
            Plan::Modes(modes) => self.start_modes(modes).map_err(StartError::Build),
        }
    }

    /// Makes the authorizers of a configuration. Reads every file that it leads to, so it blocks.
    ///
    /// A webhook that `previous` has with the same name, the same settings and the same content of
    /// all files stays the one it is, with its cache. So do the policies of ABAC.
    ///
    /// # Errors
    /// See [`BuildCause`].
    pub fn build(
        &self,
        configuration: &Configuration,
        origin: Origin,
        previous: Option<&Generation>,
    ) -> Result<Generation, BuildError> {
        self.build_with(configuration, origin, previous, &mut |name, settings, recording| {
            let HowTo::KubeConfigFile(path) = &settings.connection else { return Ok(None) };
            let loaded = load_connections(name, path.as_path(), recording)?;
            let one = loaded.into_single_connection();
            one.map(Some).map_err(|error| BuildCause::Connection { name: name.to_owned(), error })
        })
    }

    fn start_file(&self, plan: &FilePlan) -> Result<Generation, StartError> {
        let path = self.directory.join(&plan.path);
        let bytes = document::read_file(&path).map_err(StartError::Read)?;
        let name = path.display().to_string();
        let source = document::Source { name: &name, bytes: &bytes };
        let loaded = config::authorization_config::load(&source, &LoadOptions::default());
        let configuration = loaded.outcome.map_err(StartError::Load)?;
        let origin = self.origin(plan, &bytes);
        let mut generation = self.build(&configuration, origin, None).map_err(StartError::Build)?;
        generation.warnings.splice(0..0, loaded.warnings);
        Ok(generation)
    }

    /// Where the configuration of a file with these bytes comes from.
    pub(crate) fn origin(&self, plan: &FilePlan, bytes: &[u8]) -> Origin {
        Origin {
            source: Source::File(self.directory.join(&plan.path)),
            hash: Some(hash_of(bytes)),
            policy_file: plan.policy_file.clone(),
        }
    }

    /// The file of webhooks is read first, for it may name several.
    fn start_modes(&self, modes: &Modes) -> Result<Generation, BuildError> {
        let recording = Recording::default();
        let (names, mut connections) = match self.connections_of_flags(modes, &recording) {
            Ok(connections) => connections,
            Err(cause) => return Err(BuildError { cause, files: recording.into_files() }),
        };
        let files = recording.into_files();
        let configuration =
            modes.configuration(&self.directory, names.as_deref()).map_err(|error| BuildError {
                cause: BuildCause::Flags(error),
                files: files.clone(),
            })?;
        let policy_file = modes.policy_file.clone();
        let origin = Origin { source: Source::Flags, hash: None, policy_file };
        // The configuration has one webhook for each connection, in the same order.
        let mut next = |_: &str, _: &WebhookSettings, recording: &Recording| {
            recording.note_all(&files);
            Ok(connections.next())
        };
        self.build_with(&configuration, origin, None, &mut next)
    }

    /// The names of hooks, if the file of the flags has any, and how all its services are reached.
    fn connections_of_flags(
        &self,
        modes: &Modes,
        recording: &Recording,
    ) -> Result<(Option<Vec<String>>, std::vec::IntoIter<Connection>), BuildCause> {
        let Some(flags) = &modes.webhook else { return Ok((None, Vec::new().into_iter())) };
        let path = flags.absolute_config_file(&self.directory);
        match load_connections(WEBHOOK_OF_FLAGS, &path, recording)? {
            Loaded::Kubeconfig(connection) => Ok((None, vec![*connection].into_iter())),
            Loaded::Hooks(hooks) => {
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
        origin: Origin,
        previous: Option<&Generation>,
        connect: &mut Connect<'_>,
    ) -> Result<Generation, BuildError> {
        let mut parts = Parts::default();
        for authorizer in configuration.authorizers() {
            match self.slot(authorizer, &origin, previous, connect, &mut parts) {
                Ok(seated) => parts.slots.push(AuthorizerSlot {
                    authorizer: seated,
                    observe: self
                        .instruments
                        .member(authorizer.authorizer_type(), authorizer.name()),
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

    fn slot(
        &self,
        authorizer: &Authorizer,
        origin: &Origin,
        previous: Option<&Generation>,
        connect: &mut Connect<'_>,
        parts: &mut Parts,
    ) -> Result<ActiveAuthorizer, BuildCause> {
        match authorizer {
            Authorizer::AlwaysAllow => Ok(ActiveAuthorizer::Fixed(Member::AlwaysAllow)),
            Authorizer::AlwaysDeny => Ok(ActiveAuthorizer::Fixed(Member::AlwaysDeny)),
            Authorizer::Node => Ok(ActiveAuthorizer::Node),
            Authorizer::Rbac => Ok(ActiveAuthorizer::Rbac),
            Authorizer::Abac => {
                let path = origin.policy_file.as_deref();
                let abac = policies::load(&self.directory, path, previous, parts)?;
                let member = Member::Abac(Arc::clone(&abac.policies));
                parts.abac = Some(abac);
                Ok(ActiveAuthorizer::Fixed(member))
            }
            Authorizer::Webhook(webhook) => {
                let (name, settings) = (webhook.name.as_str(), &webhook.settings);
                let hook = hook::make(self, name, settings, previous, connect, parts)?;
                let member = Member::Webhook(Arc::clone(&hook.webhook));
                parts.hooks.push(hook);
                Ok(ActiveAuthorizer::Fixed(member))
            }
        }
    }
}

/// What is made so far, and every file that was read for it, also in vain.
#[derive(Default)]
struct Parts {
    slots: Vec<AuthorizerSlot>,
    hooks: Vec<Arc<Hook>>,
    warnings: Vec<Warning>,
    abac: Option<Abac>,
    files: Files,
}

fn load_connections(name: &str, path: &Path, recording: &Recording) -> Result<Loaded, BuildCause> {
    let read = |path: &Path| recording.read(path, kubeconfig::FILE_BYTES_MAX);
    kubeconfig::load(path, &read)
        .map_err(|error| BuildCause::Connection { name: name.to_owned(), error })
}
