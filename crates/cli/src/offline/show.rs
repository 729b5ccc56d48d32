//! What is wrong with the files that answers are made from, for people.

use std::io::{self, Write};

use api::Diagnostic;

use crate::check;
use crate::exit::Exit;

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

impl Unusable {
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
