//! Errors of loading a file.

use std::fmt;

use document::{Diagnostic, Fault, SourcePosition};
use https_client::{CaBundleError, ClientCertificateError};

use crate::referenced_files::FileError;

/// A kubeconfig or hook file cannot be used. Displays as Kubernetes' message, without the secrets of
/// the file.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadError {
    /// The file itself cannot be read.
    Read {
        /// The message, such as `open /etc/guard.yaml: no such file or directory`.
        message: String,
    },
    /// The file cannot be decoded, or its settings cannot be used.
    Unusable {
        /// The message that Kubernetes prints, often only the first fault.
        message: String,
        /// Every fault with its position. INVARIANT: at least one.
        diagnostics: Vec<Diagnostic>,
    },
    /// A name that was given stands for no entry of the kubeconfig.
    NoEntry {
        /// The message, with the names that exist.
        message: String,
    },
    /// A hook file with several hooks is used where exactly one is expected.
    NotExactlyOneHook {
        /// The number of hooks in the file.
        n_hooks: usize,
    },
}

impl LoadError {
    /// Every fault that has a position.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Unusable { diagnostics, .. } => diagnostics,
            Self::Read { .. } | Self::NoEntry { .. } | Self::NotExactlyOneHook { .. } => &[],
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { message } | Self::NoEntry { message } | Self::Unusable { message, .. } => {
                f.write_str(message)
            }
            Self::NotExactlyOneHook { n_hooks } => {
                write!(f, "expected exactly one external authorization hook, got {n_hooks}")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// A certificate, a key or a CA bundle cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The PEM text holds no usable CA certificates.
    #[error("unable to load root certificates: {0}")]
    CaBundle(CaBundleError),
    /// Certificate and key cannot be used together.
    #[error(transparent)]
    Identity(#[from] ClientCertificateError),
}

/// One reason why a decoded file cannot be used.
#[derive(Debug)]
pub(crate) struct ConfigProblem {
    /// The field path, such as `clusters[0].cluster.server`.
    pub(crate) field: String,
    pub(crate) position: SourcePosition,
    pub(crate) message: String,
}

impl ConfigProblem {
    /// Creates a problem of one field of an object.
    pub(crate) fn new(
        object: &str,
        field: &str,
        position: SourcePosition,
        message: impl fmt::Display,
    ) -> Self {
        let field = match (object, field) {
            ("", field) => field.to_owned(),
            (object, "") => object.to_owned(),
            (object, field) => format!("{object}.{field}"),
        };
        Self { field, position, message: message.to_string() }
    }

    fn into_diagnostic(self, file: &str) -> Diagnostic {
        Diagnostic {
            fault: Fault::Server { field: self.field, message: self.message },
            file_name: file.to_owned(),
            position: self.position,
            hint: None,
            expression_issues: Vec::new(),
        }
    }
}

/// Combines several problems into one error, with Kubernetes' prefix for invalid configurations.
pub(crate) fn invalid_configuration_error(file: &str, problems: Vec<ConfigProblem>) -> LoadError {
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    let message = format!("invalid configuration: {}", field_errors::aggregate_messages(&messages));
    let diagnostics = problems.into_iter().map(|problem| problem.into_diagnostic(file)).collect();
    LoadError::Unusable { message, diagnostics }
}

/// Converts the first problem, after which loading stopped, into an error.
pub(crate) fn single_problem_error(file: &str, problem: ConfigProblem) -> LoadError {
    LoadError::Unusable {
        message: problem.message.clone(),
        diagnostics: vec![problem.into_diagnostic(file)],
    }
}
