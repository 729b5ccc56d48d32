//! Errors of flags and input files, and how they are printed.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use authz_reload::{BuildError, BuildErrorCause, StartError};
use document::{Diagnostic, Source};
use kubeconfig::LoadError;

use crate::check;
use crate::exit::Exit;
use crate::file_arguments::read_file_up_to;

pub(crate) use crate::check::replace_control_characters;

/// Why a command cannot load its input.
#[derive(Debug)]
pub(crate) enum LoadFailure {
    /// The flags contradict each other.
    Usage(Vec<String>),
    /// Files are missing or invalid.
    Files(Vec<FileProblem>),
}

/// A problem with one file.
#[derive(Debug)]
pub(crate) enum FileProblem {
    /// The file cannot be read.
    Unreadable(String),
    /// The file has errors.
    Invalid { name: String, text: String, errors: Vec<Diagnostic> },
}

impl FileProblem {
    /// Creates the problem of a file with errors, and keeps its text for excerpts.
    pub(crate) fn from_errors(source: &Source<'_>, errors: Vec<Diagnostic>) -> Self {
        let (name, text) = (source.name.to_owned(), source.text().into_owned());
        Self::Invalid { name, text, errors }
    }
}

impl From<StartError> for LoadFailure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Build(error) => error.into(),
            error @ (StartError::Read(_) | StartError::Load(_)) => {
                Self::from_diagnostics(error.diagnostics(), &error.to_string())
            }
        }
    }
}

impl From<LoadError> for LoadFailure {
    fn from(error: LoadError) -> Self {
        Self::from_diagnostics(error.diagnostics(), &error.to_string())
    }
}

impl From<BuildError> for LoadFailure {
    fn from(error: BuildError) -> Self {
        match &error.cause {
            BuildErrorCause::Flags(fault) => Self::Usage(vec![fault.to_string()]),
            BuildErrorCause::Connection { .. }
            | BuildErrorCause::Client { .. }
            | BuildErrorCause::InClusterConfig { .. }
            | BuildErrorCause::UnknownPlugin(_)
            | BuildErrorCause::PolicyRead(_)
            | BuildErrorCause::Policy(_) => {
                Self::from_diagnostics(error.diagnostics(), &error.to_string())
            }
        }
    }
}

/// Writes notes and warnings, one per line.
///
/// # Errors
/// Fails if they cannot be written.
pub(crate) fn print_remarks(err: &mut dyn Write, remarks: &[String]) -> io::Result<()> {
    remarks.iter().try_for_each(|remark| writeln!(err, "{}", replace_control_characters(remark)))
}

/// Writes the disagreements between answers and a cluster, and returns the exit of the command.
///
/// # Errors
/// Fails if they cannot be written.
pub(crate) fn write_cluster_disagreements(
    err: &mut dyn Write,
    disagreements: &[String],
    exit: Exit,
) -> io::Result<Exit> {
    print_remarks(err, disagreements)?;
    Ok(if disagreements.is_empty() { exit } else { exit.max(Exit::Undecided) })
}

/// Maximum size of an invalid file that is read again to show source lines. Configuration files are
/// smaller.
const EXCERPT_FILE_BYTES_MAX: usize = 64 << 20;

impl LoadFailure {
    /// Creates a failure with one problem.
    pub(crate) fn from_problem(problem: FileProblem) -> Self {
        Self::Files(vec![problem])
    }

    /// Creates a failure with a message and no source lines.
    pub(crate) fn from_message(error: impl std::fmt::Display) -> Self {
        Self::from_problem(FileProblem::Unreadable(error.to_string()))
    }

    /// Creates a failure with source lines, or only with the message if there is no diagnostic.
    fn from_diagnostics(diagnostics: &[Diagnostic], message: &str) -> Self {
        let mut files: BTreeMap<&str, Vec<Diagnostic>> = BTreeMap::new();
        for diagnostic in diagnostics {
            files.entry(&diagnostic.file_name).or_default().push(diagnostic.clone());
        }
        if files.is_empty() {
            return Self::from_message(message);
        }
        let problem = |(name, errors): (&str, Vec<Diagnostic>)| {
            // A file that was removed in the meantime has no lines to show.
            let bytes =
                read_file_up_to(Path::new(name), EXCERPT_FILE_BYTES_MAX).unwrap_or_default();
            FileProblem::from_errors(&Source { name, file_bytes: &bytes }, errors)
        };
        Self::Files(files.into_iter().map(problem).collect())
    }

    /// Prints all errors; errors in files look as in `portcullis check`.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub(crate) fn print_errors(self, err: &mut dyn Write, colour: bool) -> io::Result<Exit> {
        match self {
            Self::Usage(messages) => {
                for message in messages {
                    writeln!(err, "error: {}", replace_control_characters(&message))?;
                }
                Ok(Exit::Usage)
            }
            Self::Files(problems) => {
                for problem in problems {
                    match problem {
                        FileProblem::Unreadable(message) => {
                            writeln!(err, "error: {}", replace_control_characters(&message))?;
                        }
                        FileProblem::Invalid { name, text, errors } => {
                            check::write_file_errors(err, &name, text, errors, colour)?;
                        }
                    }
                }
                Ok(Exit::Unreadable)
            }
        }
    }
}
