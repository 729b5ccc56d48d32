//! How the program ends.

use std::process::ExitCode;

/// What the exit code says. The worst of several is the greatest, which is not the greatest code:
/// input that is wrong is worse than a question that stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Nothing is wrong; what was asked is allowed.
    Clean,
    /// Something that was checked is wrong; what was asked is not allowed.
    Findings,
    /// What was asked can not be answered without a server.
    Undecided,
    /// The arguments make no sense together. What they are alone is judged by `clap`, which ends
    /// the program with the same code.
    Usage,
    /// A file can not be read, something that is needed for an answer is invalid, or the result can
    /// not be written.
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
            Self::Undecided => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
