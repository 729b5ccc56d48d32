//! What is worth a line in the log.

use std::fmt;
use std::path::Path;

use document::{Diagnostic, Warning};

use crate::generation::Generation;

/// Something that whoever runs the server should know. Displays as one line.
#[derive(Debug)]
pub enum Notice<'a> {
    /// A new configuration is in effect.
    Applied(&'a Generation),
    /// A new configuration is not in effect, and the old one stays.
    Failed {
        /// The configuration file.
        file: &'a Path,
        /// What is wrong with it, or with a file that it names.
        message: &'a str,
        /// The same with places, as far as there are any.
        diagnostics: &'a [Diagnostic],
    },
    /// A new configuration should be changed, but is in effect.
    Warned(&'a Warning),
    /// Changes of some files are only noticed once a minute.
    Unwatched {
        /// Why.
        message: &'a str,
    },
}

impl fmt::Display for Notice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied(generation) => {
                let hash = generation.hash.as_deref().unwrap_or("from flags");
                let number = generation.number;
                write!(f, "authorization configuration reloaded: generation {number}, {hash}")
            }
            Self::Failed { file, message, diagnostics } => {
                f.write_str("authorization configuration not reloaded, the old one stays: ")?;
                match diagnostics.first() {
                    Some(Diagnostic { file, position, .. }) => {
                        write!(f, "{file}:{}:{}: ", position.line, position.column)?;
                    }
                    None => write!(f, "{}: ", file.display())?,
                }
                f.write_str(&one_line(message))
            }
            Self::Warned(Warning { file, position, field, message, .. }) => {
                let colon = if field.is_empty() { "" } else { ": " };
                write!(f, "{file}:{}:{}: ", position.line, position.column)?;
                write!(f, "{field}{colon}{}", one_line(message))
            }
            Self::Unwatched { message } => {
                let message = one_line(message);
                write!(
                    f,
                    "some files of authorization are only polled, for they can not be watched: {message}"
                )
            }
        }
    }
}

/// Messages quote what stands in files, which must not begin lines of the log.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
