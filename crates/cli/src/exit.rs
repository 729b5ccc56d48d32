//! The exit codes of the program.

use std::process::ExitCode;

/// The result of a command. Variants are ordered from best to worst, which is not the order of the
/// codes: invalid input is worse than an undecided question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// The check found no error, or the request is allowed.
    Clean,
    /// The check found an error, or the request is not allowed.
    Findings,
    /// The decision depends on a webhook or an object that is not available offline.
    Undecided,
    /// The arguments contradict each other. clap checks single arguments and exits with the same code.
    Usage,
    /// A file cannot be read or is invalid, or the result cannot be written.
    Unreadable,
}

impl Exit {
    /// Returns the exit code. Scripts rely on these numbers.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Usage => 2,
            Self::Unreadable => 3,
            Self::Undecided => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
