//! From flags to the authorizers that a server with these flags would ask, in order.

use std::path::{Path, PathBuf};

use authz_chain::{Authorizer, Configuration};
use authz_reload::{AuthorizationModes, AuthorizationPlan};
use config::authorization_config;
use config::authorization_config::{LoadOptions, assume_regular_file};
use document::{ReadError, Source};
use manifests::abac;

use super::show::{Trouble, Unusable};
use crate::authorization::{AuthorizationFlags, HookNames, hook_names};
use crate::check::is_missing_file;
use crate::files::read_up_to;

/// The authorizers in order, and what the files say that they decide from.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) authorizers: Vec<Authorizer>,
    /// Empty without an authorizer of type ABAC.
    pub(super) abac: abac::LoadedPolicies,
}

/// Whether the files have to be here that say how webhooks are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionFiles {
    /// They are used.
    Needed,
    /// They may be on the server only.
    Elsewhere,
}

impl Order {
    /// Reads the files that a plan names.
    ///
    /// # Errors
    /// Everything that is wrong in any file.
    pub(super) fn load(
        flags: &AuthorizationFlags,
        plan: &AuthorizationPlan,
        files: ConnectionFiles,
        directory: &Path,
    ) -> Result<Self, Unusable> {
        let configuration = match plan {
            AuthorizationPlan::File(file) => {
                configuration(&file.path, files).map_err(Unusable::one)
            }
            AuthorizationPlan::Modes(modes) => translated(modes, files, directory),
        };
        let (authorizers, mut troubles) = match configuration {
            Ok(configuration) => (configuration.authorizers().to_vec(), Vec::new()),
            Err(Unusable::Invalid(troubles)) => (Vec::new(), troubles),
            Err(usage @ Unusable::Usage(_)) => return Err(usage),
        };
        let policy_file = flags.authorization_policy_file.as_ref();
        let has_abac = authorizers.contains(&Authorizer::Abac);
        let abac = match has_abac.then(|| policies(policy_file)).transpose() {
            Ok(abac) => abac.unwrap_or_default(),
            Err(trouble) => {
                troubles.push(trouble);
                abac::LoadedPolicies::default()
            }
        };
        match troubles.is_empty() {
            true => Ok(Self { authorizers, abac }),
            false => Err(Unusable::Invalid(troubles)),
        }
    }
}

fn configuration(path: &Path, files: ConnectionFiles) -> Result<Configuration, Trouble> {
    let bytes =
        document::read_file(path).map_err(|error| Trouble::Unreadable(error.to_string()))?;
    let name = path.to_string_lossy();
    let source = Source { name: &name, bytes: &bytes };
    let stat_file = match files {
        ConnectionFiles::Needed => &authorization_config::stat_file,
        ConnectionFiles::Elsewhere => &assume_regular_file as &dyn Fn(&Path) -> _,
    };
    let options = LoadOptions { stat_file, ..LoadOptions::default() };
    let loaded = authorization_config::load(&source, &options);
    loaded.configuration.map_err(|error| {
        let mut diagnostics = error.diagnostics().to_vec();
        for diagnostic in &mut diagnostics {
            if is_missing_file(&diagnostic.fault) && diagnostic.hint.is_none() {
                let hint = "`--no-webhooks` does without it; `--webhook NAME=ANSWER` stands in";
                diagnostic.hint = Some(hint.to_owned());
            }
        }
        Trouble::faulty(&source, diagnostics)
    })
}

/// The configuration that flags mean.
fn translated(
    modes: &AuthorizationModes,
    files: ConnectionFiles,
    directory: &Path,
) -> Result<Configuration, Unusable> {
    let names = hook_names(modes, directory).map_err(Unusable::one)?;
    match (&names, files) {
        (HookNames::Unreadable(error), ConnectionFiles::Needed) => Err(Unusable::broken(error)),
        (HookNames::Unreadable(_), ConnectionFiles::Elsewhere)
        | (HookNames::Flag | HookNames::File(_), _) => modes
            .to_configuration(directory, names.of_file())
            .map_err(|error| Unusable::Usage(vec![error.to_string()])),
    }
}

fn policies(path: Option<&PathBuf>) -> Result<abac::LoadedPolicies, Trouble> {
    let Some(path) = path else {
        let message = "authorizer ABAC needs --authorization-policy-file".to_owned();
        return Err(Trouble::Unreadable(message));
    };
    let bytes = read_up_to(path, abac::POLICY_FILE_BYTES_MAX)
        .map_err(|error| Trouble::Unreadable(ReadError::new(path, &error).to_string()))?;
    let name = path.to_string_lossy();
    let source = Source { name: &name, bytes: &bytes };
    let loaded = abac::load(&source, &abac::LoadOptions::default());
    loaded.map_err(|error| Trouble::faulty(&source, vec![*error.diagnostic]))
}
