//! Events of reloads that are worth a line in the log.

use std::fmt;
use std::path::Path;

use document::{Diagnostic, Warning};

use crate::config_generation::Generation;

/// An event of a reload that the operator should know. Displays as one line.
#[derive(Debug)]
pub enum ReloadNotice<'a> {
    /// A new configuration is in effect.
    Applied(&'a Generation),
    /// A reload failed, and the old configuration stays in effect.
    Failed {
        /// The configuration file that was read.
        file: &'a Path,
        /// The error of this file or of a file that it refers to.
        message: &'a str,
        /// The faults that have a position in a file.
        diagnostics: &'a [Diagnostic],
    },
    /// After a failure the files define the configuration in effect again.
    Reverted(&'a Generation),
    /// The operator should change a part of a configuration in effect.
    Warned(&'a Warning),
    /// The operating system cannot report changes of some files, so only polling finds them.
    Unwatched {
        /// The error of the operating system.
        message: &'a str,
    },
}

impl fmt::Display for ReloadNotice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied(generation) => {
                let hash = generation.hash.as_deref().unwrap_or("from flags");
                let number = generation.generation_number;
                write!(f, "authorization configuration reloaded: generation {number}, {hash}")
            }
            Self::Failed { file, message, diagnostics } => {
                f.write_str("authorization configuration not reloaded, the old one stays: ")?;
                match diagnostics.first() {
                    Some(Diagnostic { file_name: file, position, .. }) => {
                        write!(f, "{file}:{}:{}: ", position.line, position.column)?;
                    }
                    None => write!(f, "{}: ", file.display())?,
                }
                f.write_str(&replace_control_characters(message))
            }
            Self::Reverted(generation) => {
                let number = generation.generation_number;
                write!(f, "authorization configuration files define generation {number} again")
            }
            Self::Warned(Warning { file_name: file, position, field, message, .. }) => {
                let colon = if field.is_empty() { "" } else { ": " };
                write!(f, "{file}:{}:{}: ", position.line, position.column)?;
                write!(f, "{field}{colon}{}", replace_control_characters(message))
            }
            Self::Unwatched { message } => {
                let message = replace_control_characters(message);
                write!(
                    f,
                    "some files of authorization are only polled, for they cannot be watched: {message}"
                )
            }
        }
    }
}

/// Replaces control characters. Messages quote text from files, which must not start a new line in the log.
fn replace_control_characters(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
