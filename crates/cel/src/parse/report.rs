//! What was found wrong while parsing.

use crate::issue::{Issues, Place};

use super::SYNTAX_ERRORS_MAX;

/// The text is given up. Why is among the reports already.
#[derive(Debug)]
pub(super) struct Abort;

/// The complaints so far, in the order in which they were found.
#[derive(Debug, Default)]
pub(super) struct Reports {
    found: Vec<(Place, String)>,
    n_syntax_errors: usize,
}

impl Reports {
    /// A violation of the grammar. Too many of them end the parse.
    pub(super) fn syntax(&mut self, offset: u32, message: &str) -> Result<(), Abort> {
        let place = Place::Offset(offset);
        if self.n_syntax_errors == SYNTAX_ERRORS_MAX {
            let message = format!("Syntax error: More than {SYNTAX_ERRORS_MAX} syntax errors");
            self.found.push((place, message));
            return Err(Abort);
        }
        self.n_syntax_errors += 1;
        self.found.push((place, format!("Syntax error: {message}")));
        Ok(())
    }

    /// Something that the grammar allows and the language does not.
    pub(super) fn misuse(&mut self, place: Place, message: String) {
        self.found.push((place, message));
    }

    /// A limit of the whole text is passed.
    pub(super) fn limit(&mut self, message: String) -> Abort {
        self.found.push((Place::Whole, message));
        Abort
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn into_issues(self, source: &str) -> Issues {
        Issues::at_places(source, self.found)
    }
}
