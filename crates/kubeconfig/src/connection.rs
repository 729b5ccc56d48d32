//! The connections that a file describes.

use std::path::PathBuf;

use document::Warning;
use https_client::Target;

use crate::error::LoadError;

/// The loaded content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadedConnections {
    /// A kubeconfig: one service.
    Kubeconfig(Box<Connection>),
    /// An `ExternalAuthorizationHookConfiguration`: one service or more, in their order.
    Hooks(Vec<HookConnection>),
}

/// The connection to one service.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    /// The service, ready to be called.
    pub target: Target,
    /// Every file that this depends on, the one that was loaded first. Their contents were read
    /// through the function that was passed, and belong to the next connection when they change.
    pub files: Vec<PathBuf>,
    /// Warnings about accepted settings.
    pub warnings: Vec<Warning>,
}

/// The connection to one authorization hook.
#[derive(Debug, Clone, PartialEq)]
pub struct HookConnection {
    /// Its name, which becomes that of the authorizer when the file is given by flag.
    pub name: String,
    /// The connection to the hook.
    pub connection: Connection,
}

impl LoadedConnections {
    /// The one service of a file that is named where only one can be.
    ///
    /// # Errors
    ///
    /// The file has several hooks.
    pub fn into_single_connection(self) -> Result<Connection, LoadError> {
        match self {
            Self::Kubeconfig(connection) => Ok(*connection),
            Self::Hooks(mut hooks) => match (hooks.pop(), hooks.len()) {
                (Some(hook), 0) => Ok(hook.connection),
                (_, n_others) => Err(LoadError::NotOneHook { n_hooks: n_others + 1 }),
            },
        }
    }
}
