//! What comes of a file.

use std::path::PathBuf;

use document::Warning;
use https_client::Target;

use crate::error::LoadError;

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Loaded {
    /// A kubeconfig: one service.
    Kubeconfig(Box<Connection>),
    /// An `ExternalAuthorizationHookConfiguration`: one service or more, in their order.
    Hooks(Vec<HookConnection>),
}

/// How one service is reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    /// The service, ready to be called.
    pub target: Target,
    /// Every file that this depends on, the one that was loaded first. Their contents were read
    /// through the function that was passed, and belong to the next connection when they change.
    pub files: Vec<PathBuf>,
    /// What is accepted but should be changed.
    pub warnings: Vec<Warning>,
}

/// One hook.
#[derive(Debug, Clone, PartialEq)]
pub struct HookConnection {
    /// Its name, which becomes that of the authorizer when the file is given by flag.
    pub name: String,
    /// How it is reached.
    pub connection: Connection,
}

impl Loaded {
    /// The one service of a file that is named where only one can be.
    ///
    /// # Errors
    ///
    /// The file has several hooks.
    pub fn into_one(self) -> Result<Connection, LoadError> {
        match self {
            Self::Kubeconfig(connection) => Ok(*connection),
            Self::Hooks(mut hooks) => match (hooks.pop(), hooks.len()) {
                (Some(hook), 0) => Ok(hook.connection),
                (_, n_others) => Err(LoadError::NotOneHook { n_hooks: n_others + 1 }),
            },
        }
    }
}
