//! Reads the names of the webhooks in the file of `--authorization-webhook-config-file`.

use std::path::Path;

use authz_reload::AuthorizationModes;
use config::authorization_hooks;
use document::{DOCUMENT_BYTES_MAX, ReadError, Source};

use crate::file_arguments::read_file_up_to;
use crate::offline::FileProblem;

/// Reads the hook names of the file of mode Webhook if it is a hook configuration. For a kubeconfig, or
/// if the file does not exist here, the webhook has its default name.
///
/// # Errors
/// The hook configuration is invalid.
pub(crate) fn read_authorization_hook_names(
    modes: &AuthorizationModes,
    directory: &Path,
) -> Result<AuthorizationHookNames, FileProblem> {
    let Some(flags) = &modes.webhook_flags else { return Ok(AuthorizationHookNames::DefaultName) };
    let path = flags.absolute_webhook_config_file(directory);
    let bytes = match read_file_up_to(&path, DOCUMENT_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(AuthorizationHookNames::Unreadable(ReadError::new(&path, &error))),
    };
    let name = flags.webhook_config_file.to_string_lossy();
    let source = Source { name: &name, file_bytes: &bytes };
    if !authorization_hooks::is_authorization_hook_configuration(&source) {
        return Ok(AuthorizationHookNames::DefaultName);
    }
    match authorization_hooks::load_authorization_hooks(&source).authorization_hooks {
        Ok(hooks) => {
            Ok(AuthorizationHookNames::FromFile(hooks.into_iter().map(|hook| hook.name).collect()))
        }
        Err(error) => Err(FileProblem::from_errors(&source, error.diagnostics().to_vec())),
    }
}

/// The names of the webhooks that mode Webhook configures.
#[derive(Debug)]
pub(crate) enum AuthorizationHookNames {
    /// There is one webhook with the default name, because the file is a kubeconfig.
    DefaultName,
    /// The names in the hook configuration, in order.
    FromFile(Vec<String>),
    /// The file cannot be read on this machine.
    Unreadable(ReadError),
}

impl AuthorizationHookNames {
    /// Returns the names in the file, if the file is a hook configuration.
    pub(crate) fn hook_names_from_file(&self) -> Option<&[String]> {
        match self {
            Self::DefaultName | Self::Unreadable(_) => None,
            AuthorizationHookNames::FromFile(names) => Some(names),
        }
    }
}
