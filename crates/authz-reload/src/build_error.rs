//! Errors of building authorizers.

use std::fmt;

use authz_chain::PluginType;
use config::authorization_config::LoadError;
use document::{Diagnostic, ReadError};
use manifests::abac;

use crate::file_set::FileSet;
use crate::modes_to_configuration::FlagTranslationError;

/// Authorizers cannot be built from a configuration. Displays as its cause.
#[derive(Debug)]
pub struct BuildError {
    /// The reason why the authorizer could not be built.
    pub cause: BuildErrorCause,
    /// The files that were read before the error. If one of them changes, another attempt may succeed.
    pub(crate) file_set: FileSet,
}

/// The part of a configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BuildErrorCause {
    /// The file with the connection of a webhook cannot be used.
    #[error("webhook {name}: {error}")]
    Connection {
        /// The name of the webhook.
        name: String,
        /// The cause, which the text contains.
        error: kubeconfig::LoadError,
    },
    /// The client of a webhook cannot be built from its files.
    #[error("webhook {name}: {error}")]
    Client {
        /// The name of the webhook.
        name: String,
        /// The cause, which the text contains.
        error: https_client::BuildError,
    },
    /// A webhook has the connection type `InClusterConfig`, which uses the service account of a pod. This server
    /// does not run in a pod.
    #[error("webhook {name}: connection type InClusterConfig is not allowed in this server")]
    InClusterConfig {
        /// The name of the webhook.
        name: String,
    },
    /// The program has no authorizer of this type.
    #[error("this program has no authorizer of type {0}")]
    UnknownPlugin(PluginType),
    /// The ABAC policy file cannot be read.
    #[error("{0}")]
    PolicyRead(ReadError),
    /// The ABAC policy file is invalid.
    #[error("{0}")]
    Policy(abac::AbacPolicyLoadError),
    /// The flags cannot be converted to a configuration.
    #[error("{0}")]
    Flags(FlagTranslationError),
}

/// A server cannot start with its authorization configuration. Displays as one line.
#[derive(Debug)]
pub enum StartError {
    /// The configuration file cannot be read.
    Read(ReadError),
    /// The configuration file is invalid.
    Load(LoadError),
    /// The authorizers cannot be built.
    Build(BuildError),
}

impl BuildError {
    /// Every fault that has a position in a file.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match &self.cause {
            BuildErrorCause::Connection { error, .. } => error.diagnostics(),
            BuildErrorCause::Policy(error) => std::slice::from_ref(&*error.diagnostic),
            BuildErrorCause::Client { .. }
            | BuildErrorCause::InClusterConfig { .. }
            | BuildErrorCause::UnknownPlugin(_)
            | BuildErrorCause::PolicyRead(_)
            | BuildErrorCause::Flags(_) => &[],
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
    /// Every fault that has a position in a file.
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
