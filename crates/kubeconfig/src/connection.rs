//! The connections that a file describes.

use std::path::PathBuf;

use document::Warning;
use https_client::Target;

use crate::load_error::LoadError;

/// The loaded content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadedConnections {
    /// A kubeconfig: one service.
    Kubeconfig(Box<ServerConnection>),
    /// An `ExternalAuthorizationHookConfiguration`: one service or more, in their order.
    Hooks(Vec<AuthorizationHookConnection>),
}

/// The connection to one service.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConnection {
    /// The address of the service, and how a client connects to it.
    pub client_target: Target,
    /// Every file that the connection depends on; the kubeconfig or hook file comes first. If one of
    /// them changes, the caller must load the connection again.
    pub source_files: Vec<PathBuf>,
    /// Warnings about accepted settings.
    pub warnings: Vec<Warning>,
}

/// The connection to one authorization hook.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorizationHookConnection {
    /// The name of the hook. If a flag names the file, the authorizer has the same name.
    pub name: String,
    /// The connection to the hook.
    pub server_connection: ServerConnection,
}

impl LoadedConnections {
    /// Returns the connection of a file that must contain exactly one.
    ///
    /// # Errors
    ///
    /// The file has several hooks.
    pub fn into_single_connection(self) -> Result<ServerConnection, LoadError> {
        match self {
            Self::Kubeconfig(connection) => Ok(*connection),
            Self::Hooks(mut hooks) => match (hooks.pop(), hooks.len()) {
                (Some(hook), 0) => Ok(hook.server_connection),
                (_, n_others) => Err(LoadError::NotExactlyOneHook { n_hooks: n_others + 1 }),
            },
        }
    }
}
