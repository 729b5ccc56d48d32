//! Why a file is of no use.

use std::fmt;

use document::{Diagnostic, Fault, Place};

/// Why a file is of no use. Displays as Kubernetes' message, without any secret of the file.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadError {
    /// The file itself can not be read.
    Read {
        /// Such as `open /etc/guard.yaml: no such file or directory`.
        message: String,
    },
    /// The file can not be decoded, or what it says can not be used.
    Unusable {
        /// What Kubernetes says, which is often only the first fault.
        message: String,
        /// Every fault with its place. INVARIANT: at least one.
        diagnostics: Vec<Diagnostic>,
    },
    /// A file of hooks is named where one service is meant.
    NotOneHook {
        /// How many it has.
        n_hooks: usize,
    },
}

impl LoadError {
    /// Every fault that has a place.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Unusable { diagnostics, .. } => diagnostics,
            Self::Read { .. } | Self::NotOneHook { .. } => &[],
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { message } | Self::Unusable { message, .. } => f.write_str(message),
            Self::NotOneHook { n_hooks } => {
                write!(f, "expected exactly one external authorization hook, got {n_hooks}")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// One reason why a decoded file can not be used.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The field, such as `clusters[0].cluster.server`.
    pub(crate) field: String,
    pub(crate) place: Place,
    pub(crate) message: String,
}

impl Problem {
    /// A problem of a field of an object.
    pub(crate) fn new(object: &str, field: &str, place: Place, message: String) -> Self {
        let field = match (object, field) {
            ("", field) => field.to_owned(),
            (object, "") => object.to_owned(),
            (object, field) => format!("{object}.{field}"),
        };
        Self { field, place, message }
    }

    fn diagnose(self, file: &str) -> Diagnostic {
        Diagnostic {
            fault: Fault::Server { field: self.field, message: self.message },
            file: file.to_owned(),
            place: self.place,
            hint: None,
            notes: Vec::new(),
        }
    }
}

/// Several problems that are told together, behind the words that Kubernetes has for that.
pub(crate) fn invalid_configuration(file: &str, problems: Vec<Problem>) -> LoadError {
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    let message = format!("invalid configuration: {}", field_errors::aggregate(&messages));
    let diagnostics = problems.into_iter().map(|problem| problem.diagnose(file)).collect();
    LoadError::Unusable { message, diagnostics }
}

/// The one problem that ended everything.
pub(crate) fn unusable(file: &str, problem: Problem) -> LoadError {
    LoadError::Unusable {
        message: problem.message.clone(),
        diagnostics: vec![problem.diagnose(file)],
    }
}
