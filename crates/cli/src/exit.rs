//! How the program ends.

use std::process::ExitCode;

/// What the exit code says. The worst of several is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Nothing is wrong.
    Clean,
    /// Something that was checked is wrong.
    Findings,
    /// The arguments make no sense together. What they are alone is judged by `clap`, which ends
    /// the program with the same code.
    Usage,
    /// A file can not be read, or the result can not be written.
    Unreadable,
}

impl Exit {
    /// The number, which scripts rely on.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Usage => 2,
            Self::Unreadable => 3,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
