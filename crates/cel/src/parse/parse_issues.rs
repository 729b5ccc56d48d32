//! The issues that the parser collects.

use crate::issues::{IssueLocation, Issues};

use super::SYNTAX_ERRORS_MAX;

/// The signal that parsing stops. The issues already include the reason.
#[derive(Debug)]
pub(super) struct ParseAborted;

/// The issues of one source text, in the order in which the parser found them.
#[derive(Debug, Default)]
pub(super) struct ParseIssues {
    issues: Vec<(IssueLocation, String)>,
    n_syntax_errors: usize,
}

impl ParseIssues {
    /// Reports a violation of the grammar. After too many of them, parsing stops.
    pub(super) fn report_syntax_error(
        &mut self,
        offset: u32,
        message: &str,
    ) -> Result<(), ParseAborted> {
        let location = IssueLocation::Offset(offset);
        if self.n_syntax_errors == SYNTAX_ERRORS_MAX {
            let message = format!("Syntax error: More than {SYNTAX_ERRORS_MAX} syntax errors");
            self.issues.push((location, message));
            return Err(ParseAborted);
        }
        self.n_syntax_errors += 1;
        self.issues.push((location, format!("Syntax error: {message}")));
        Ok(())
    }

    /// Reports text that the grammar accepts but the language does not.
    pub(super) fn report_semantic_error(&mut self, location: IssueLocation, message: String) {
        self.issues.push((location, message));
    }

    /// Reports that the expression exceeds a limit. Parsing stops.
    pub(super) fn report_limit_exceeded(&mut self, message: String) -> ParseAborted {
        self.issues.push((IssueLocation::WholeExpression, message));
        ParseAborted
    }

    pub(super) fn is_empty(&self) -> bool {
        self.issues.is_empty()
    }

    pub(super) fn into_issues(self, source: &str) -> Issues {
        Issues::from_located_messages(source, self.issues)
    }
}
