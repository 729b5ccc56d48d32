//! The names of the webhooks that `--authorization-webhook-config-file` leads to.

use std::path::Path;

use authz_reload::AuthorizationModes;
use config::authorization_hooks;
use document::{DOCUMENT_BYTES_MAX, ReadError, Source};

use crate::files::read_up_to;
use crate::offline::Trouble;

/// The names in the file of mode Webhook if it is one of hooks. A kubeconfig names none, and neither
/// does a file that is not here: its webhook has the name that flags give it.
///
/// # Errors
/// It is a file of hooks, and it is wrong.
pub(crate) fn hook_names(
    modes: &AuthorizationModes,
    directory: &Path,
) -> Result<HookNames, Trouble> {
    let Some(flags) = &modes.webhook else { return Ok(HookNames::Flag) };
    let path = flags.absolute_config_file(directory);
    let bytes = match read_up_to(&path, DOCUMENT_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(HookNames::Unreadable(ReadError::new(&path, &error))),
    };
    let name = flags.config_file.to_string_lossy();
    let source = Source { name: &name, bytes: &bytes };
    if !authorization_hooks::is_hook_configuration(&source) {
        return Ok(HookNames::Flag);
    }
    match authorization_hooks::load(&source).hooks {
        Ok(hooks) => Ok(HookNames::File(hooks.into_iter().map(|hook| hook.name).collect())),
        Err(error) => Err(Trouble::faulty(&source, error.diagnostics().to_vec())),
    }
}

/// Who names the webhooks of flags.
#[derive(Debug)]
pub(crate) enum HookNames {
    /// The flag: there is one, and its name is always the same.
    Flag,
    /// The file, in its order.
    File(Vec<String>),
    /// The file can not be read here.
    Unreadable(ReadError),
}

impl HookNames {
    /// The names in the file, if they are known to be there.
    pub(crate) fn of_file(&self) -> Option<&[String]> {
        match self {
            Self::Flag | Self::Unreadable(_) => None,
            Self::File(names) => Some(names),
        }
    }
}
