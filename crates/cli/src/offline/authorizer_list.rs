//! Loads the ordered list of authorizers that the flags configure.

use std::path::{Path, PathBuf};

use authz_chain::{AuthorizerConfiguration, Configuration};
use authz_reload::{AuthorizationModes, AuthorizationPlan};
use config::authorization_config;
use config::authorization_config::{LoadOptions, assume_regular_file};
use document::{ReadError, Source};
use manifests::abac;

use super::load_failure::{FileProblem, LoadFailure};
use crate::authorization_settings::{
    AuthorizationFlags, AuthorizationHookNames, read_authorization_hook_names,
};
use crate::check::is_missing_file_fault;
use crate::file_arguments::read_file_up_to;
use crate::program::plugin_authorizers;

/// The authorizers in order, and the loaded ABAC policies.
#[derive(Debug, Default)]
pub(super) struct AuthorizerList {
    pub(super) authorizer_configurations: Vec<AuthorizerConfiguration>,
    /// The policies of the ABAC authorizer; empty if the list has none.
    pub(super) abac_policies: abac::LoadedAbacPolicies,
}

/// Whether the connection files of webhooks must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionFileRequirement {
    /// The command calls webhooks.
    Required,
    /// The files may exist only on the server.
    Optional,
}

impl AuthorizerList {
    /// Reads the configuration and policy files of a plan.
    ///
    /// # Errors
    /// Every error in these files.
    pub(super) fn load_from_flags(
        flags: &AuthorizationFlags,
        plan: &AuthorizationPlan,
        files: ConnectionFileRequirement,
        directory: &Path,
    ) -> Result<Self, LoadFailure> {
        let configuration = match plan {
            AuthorizationPlan::File(file) => {
                load_authorization_config_file(&file.path, files).map_err(LoadFailure::from_problem)
            }
            AuthorizationPlan::Modes(modes) => {
                configuration_from_authorization_modes(modes, files, directory)
            }
        };
        let (authorizers, mut problems) = match configuration {
            Ok(configuration) => (configuration.authorizers().to_vec(), Vec::new()),
            Err(LoadFailure::Files(problems)) => (Vec::new(), problems),
            Err(usage @ LoadFailure::Usage(_)) => return Err(usage),
        };
        let policy_file = flags.authorization_policy_file.as_ref();
        let has_abac = authorizers.contains(&AuthorizerConfiguration::Abac);
        let abac_policies = match has_abac
            .then(|| load_abac_policies(policy_file, &flags.abac_load_options()))
            .transpose()
        {
            Ok(policies) => policies.unwrap_or_default(),
            Err(problem) => {
                problems.push(problem);
                abac::LoadedAbacPolicies::default()
            }
        };
        match problems.is_empty() {
            true => Ok(Self { authorizer_configurations: authorizers, abac_policies }),
            false => Err(LoadFailure::Files(problems)),
        }
    }
}

fn load_authorization_config_file(
    path: &Path,
    files: ConnectionFileRequirement,
) -> Result<Configuration, FileProblem> {
    let bytes =
        document::read_file(path).map_err(|error| FileProblem::Unreadable(error.to_string()))?;
    let name = path.to_string_lossy();
    let source = Source { name: &name, file_bytes: &bytes };
    let stat_file = match files {
        ConnectionFileRequirement::Required => &authorization_config::stat_file,
        ConnectionFileRequirement::Optional => &assume_regular_file as &dyn Fn(&Path) -> _,
    };
    let plugin_authorizer_types = plugin_authorizers().plugin_types();
    let options = LoadOptions {
        stat_file,
        plugin_authorizer_types: &plugin_authorizer_types,
        ..LoadOptions::default()
    };
    let loaded = authorization_config::load_authorization_configuration(&source, &options);
    loaded.configuration.map_err(|error| {
        let mut diagnostics = error.diagnostics().to_vec();
        for diagnostic in &mut diagnostics {
            if is_missing_file_fault(&diagnostic.fault) && diagnostic.hint.is_none() {
                let hint =
                    "use `--no-webhooks`, or `--webhook NAME=ANSWER`, if the file is not available";
                diagnostic.hint = Some(hint.to_owned());
            }
        }
        FileProblem::from_errors(&source, diagnostics)
    })
}

/// Converts the mode flags to a configuration.
fn configuration_from_authorization_modes(
    modes: &AuthorizationModes,
    files: ConnectionFileRequirement,
    directory: &Path,
) -> Result<Configuration, LoadFailure> {
    let names =
        read_authorization_hook_names(modes, directory).map_err(LoadFailure::from_problem)?;
    match (&names, files) {
        (AuthorizationHookNames::Unreadable(error), ConnectionFileRequirement::Required) => {
            Err(LoadFailure::from_message(error))
        }
        (AuthorizationHookNames::Unreadable(_), ConnectionFileRequirement::Optional)
        | (AuthorizationHookNames::DefaultName | AuthorizationHookNames::FromFile(_), _) => modes
            .to_configuration(directory, names.hook_names_from_file())
            .map_err(|error| LoadFailure::Usage(vec![error.to_string()])),
    }
}

fn load_abac_policies(
    path: Option<&PathBuf>,
    options: &abac::AbacPolicyLoadOptions,
) -> Result<abac::LoadedAbacPolicies, FileProblem> {
    let Some(path) = path else {
        let message = "authorizer ABAC needs --authorization-policy-file".to_owned();
        return Err(FileProblem::Unreadable(message));
    };
    let bytes = read_file_up_to(path, abac::POLICY_FILE_BYTES_MAX)
        .map_err(|error| FileProblem::Unreadable(ReadError::new(path, &error).to_string()))?;
    let name = path.to_string_lossy();
    let source = Source { name: &name, file_bytes: &bytes };
    let loaded = abac::load_abac_policies(&source, options);
    loaded.map_err(|error| FileProblem::from_errors(&source, vec![*error.diagnostic]))
}
