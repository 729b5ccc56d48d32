//! Why there are no authorizers.

use std::fmt;

use config::authorization_config::LoadError;
use document::{Diagnostic, ReadError};
use manifests::abac;

use crate::files::Files;
use crate::translate::TranslateError;

/// Why a configuration could not be assembled.
#[derive(Debug)]
pub struct BuildError {
    /// What went wrong.
    pub cause: BuildCause,
    /// What was read before it did. When any of it changes, another attempt may succeed.
    pub(crate) files: Files,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum BuildCause {
    /// The file that says how a webhook is reached can not be used.
    #[error("webhook {name}: {error}")]
    Connection {
        /// The webhook.
        name: String,
        /// Why.
        error: kubeconfig::LoadError,
    },
    /// A webhook can not be called the way that its files say.
    #[error("webhook {name}: {error}")]
    Client {
        /// The webhook.
        name: String,
        /// Why.
        error: https_client::BuildError,
    },
    /// A webhook would be called with the service account of a pod, which is not for this server.
    #[error("webhook {name}: connection type InClusterConfig is not allowed in this server")]
    InClusterConfig {
        /// The webhook.
        name: String,
    },
    /// The policies of type ABAC can not be read.
    #[error("{0}")]
    PolicyRead(ReadError),
    /// The policies of type ABAC are at fault.
    #[error("{0}")]
    Policy(abac::LoadError),
    /// The flags mean no configuration.
    #[error("{0}")]
    Flags(TranslateError),
}

/// Why a server can not start with the authorizers that it is told to have. Displays as one line.
#[derive(Debug)]
pub enum StartError {
    /// The configuration file can not be read.
    Read(ReadError),
    /// The configuration file is at fault.
    Load(LoadError),
    /// The authorizers can not be made.
    Build(BuildError),
}

impl BuildError {
    /// Every fault that has a place.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match &self.cause {
            BuildCause::Connection { error, .. } => error.diagnostics(),
            BuildCause::Policy(error) => std::slice::from_ref(&*error.diagnostic),
            BuildCause::Client { .. }
            | BuildCause::InClusterConfig { .. }
            | BuildCause::PolicyRead(_)
            | BuildCause::Flags(_) => &[],
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl std::error::Error for BuildError {}

impl StartError {
    /// Every fault that has a place.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Read(_) => &[],
            Self::Load(error) => error.diagnostics(),
            Self::Build(error) => error.diagnostics(),
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Load(error) => error.fmt(f),
            Self::Build(error) => write!(f, "invalid authorization config: {error}"),
        }
    }
}

impl std::error::Error for StartError {}
