//! What is wrong with the files that answers are made from, for people.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use authz_reload::{BuildCause, BuildError, StartError};
use document::{Diagnostic, Source};
use kubeconfig::LoadError;

use crate::check;
use crate::exit::Exit;
use crate::files::read_up_to;

pub(crate) use crate::check::printable;

/// Why there is nothing to answer from.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// The flags make no sense together.
    Usage(Vec<String>),
    /// Files are missing or wrong.
    Invalid(Vec<Trouble>),
}

/// What is wrong with one file.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It can not be read.
    Unreadable(String),
    /// It can be read, and it is wrong.
    Faulty { name: String, text: String, errors: Vec<Diagnostic> },
}

impl Trouble {
    /// What is wrong with a file whose content is at hand.
    pub(crate) fn faulty(source: &Source<'_>, errors: Vec<Diagnostic>) -> Self {
        let (name, text) = (source.name.to_owned(), source.text().into_owned());
        Self::Faulty { name, text, errors }
    }
}

impl From<StartError> for Unusable {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Build(error) => error.into(),
            error @ (StartError::Read(_) | StartError::Load(_)) => {
                Self::placed(error.diagnostics(), &error.to_string())
            }
        }
    }
}

impl From<LoadError> for Unusable {
    fn from(error: LoadError) -> Self {
        Self::placed(error.diagnostics(), &error.to_string())
    }
}

impl From<BuildError> for Unusable {
    fn from(error: BuildError) -> Self {
        match &error.cause {
            BuildCause::Flags(fault) => Self::Usage(vec![fault.to_string()]),
            BuildCause::Connection { .. }
            | BuildCause::Client { .. }
            | BuildCause::InClusterConfig { .. }
            | BuildCause::PolicyRead(_)
            | BuildCause::Policy(_) => Self::placed(error.diagnostics(), &error.to_string()),
        }
    }
}

/// The most bytes of a faulty file that are read again to show its lines. It is more than any file
/// of a configuration may have.
const SHOWN_BYTES_MAX: usize = 64 << 20;

impl Unusable {
    /// One file is wrong.
    pub(crate) fn one(trouble: Trouble) -> Self {
        Self::Invalid(vec![trouble])
    }

    /// What can not happen with files that were accepted is still told and not a panic.
    pub(crate) fn broken(error: impl std::fmt::Display) -> Self {
        Self::one(Trouble::Unreadable(error.to_string()))
    }

    /// Faults with the lines that they are about, or without any the message alone.
    fn placed(diagnostics: &[Diagnostic], message: &str) -> Self {
        let mut files: BTreeMap<&str, Vec<Diagnostic>> = BTreeMap::new();
        for diagnostic in diagnostics {
            files.entry(&diagnostic.file).or_default().push(diagnostic.clone());
        }
        if files.is_empty() {
            return Self::broken(message);
        }
        let trouble = |(name, errors): (&str, Vec<Diagnostic>)| {
            // A file that is gone by now has no lines to show.
            let bytes = read_up_to(Path::new(name), SHOWN_BYTES_MAX).unwrap_or_default();
            Trouble::faulty(&Source { name, bytes: &bytes }, errors)
        };
        Self::Invalid(files.into_iter().map(trouble).collect())
    }

    /// Writes everything that is wrong, files as `portcullis check` does.
    ///
    /// # Errors
    /// Fails if it can not be written.
    pub(crate) fn show(self, err: &mut dyn Write, colour: bool) -> io::Result<Exit> {
        match self {
            Self::Usage(messages) => {
                for message in messages {
                    writeln!(err, "error: {}", printable(&message))?;
                }
                Ok(Exit::Usage)
            }
            Self::Invalid(troubles) => {
                for trouble in troubles {
                    match trouble {
                        Trouble::Unreadable(message) => {
                            writeln!(err, "error: {}", printable(&message))?;
                        }
                        Trouble::Faulty { name, text, errors } => {
                            check::write_errors(err, &name, text, errors, colour)?;
                        }
                    }
                }
                Ok(Exit::Unreadable)
            }
        }
    }
}
