//! Issues that the compiler reports about a source text, rendered as cel-go renders them.

use std::fmt;

/// The maximum number of issues of one expression that are kept; further ones are only counted.
const ISSUES_MAX: usize = 100;

/// The longest message in bytes. Messages about nested types can be long.
const MESSAGE_BYTES_MAX: usize = 16_384;

/// The longest source line in bytes that is shown below an issue.
const SNIPPET_BYTES_MAX: usize = 16_384;

/// One error that the parser or the type checker reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// The line of the issue, from 1. `None` if the issue is about the expression as a whole, such as its size.
    pub line: Option<u32>,
    /// The column of the issue in code points, from 1. 0 if the issue has no column.
    pub column: u32,
    /// The message without line and column.
    pub message: String,
}

/// All issues of one expression in source order, with the source text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issues {
    source: String,
    issues: Vec<Issue>,
    n_omitted_issues: usize,
}

/// The location of an issue in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IssueLocation {
    /// The code point at this offset.
    Offset(u32),
    /// A node that has no source text.
    NoSource,
    /// The expression as a whole.
    WholeExpression,
}

impl Issues {
    /// Sorts issues given as (code point offset, message) into source order. Issues at the same
    /// offset keep the order of their report. Repetitions are kept, as in cel-go: the checker
    /// reports an issue twice if a macro copies the node.
    pub(crate) fn new(source: &str, found: Vec<(u32, String)>) -> Self {
        let found =
            found.into_iter().map(|(offset, message)| (IssueLocation::Offset(offset), message));
        Self::from_located_messages(source, found.collect())
    }

    /// As [`Issues::new`], for issues of which some have no offset.
    pub(crate) fn from_located_messages(
        source: &str,
        mut found: Vec<(IssueLocation, String)>,
    ) -> Self {
        let lines = LineIndex::new(source);
        let n_truncated = found.len().saturating_sub(ISSUES_MAX);
        found.truncate(ISSUES_MAX);
        let mut issues: Vec<Issue> = Vec::with_capacity(found.len());
        for (place, message) in found {
            let (line, column) = match place {
                IssueLocation::WholeExpression => (None, 0),
                IssueLocation::NoSource => (Some(1), 0),
                // A source without characters has no first column.
                IssueLocation::Offset(_) if source.is_empty() => (Some(1), 0),
                IssueLocation::Offset(offset) => lines.line_and_column(offset),
            };
            issues.push(Issue { line, column, message: truncate_message(message) });
        }
        issues.sort_by_key(|issue| (issue.line, issue.column));
        Self { source: source.to_owned(), issues, n_omitted_issues: n_truncated }
    }

    /// The issues in source order.
    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.issues.iter()
    }
}

/// Renders `ERROR: <input>:L:C: message`, the source line and a caret, for each issue.
impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, issue) in self.issues.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            self.format_issue(issue, f)?;
        }
        if self.n_omitted_issues > 0 {
            write!(f, "\n{} more errors were truncated", self.n_omitted_issues)?;
        }
        Ok(())
    }
}

impl Issues {
    fn format_issue(&self, issue: &Issue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Issue { line, column, message } = issue;
        let Some(line) = *line else {
            return write!(f, "ERROR: <input>:-1:0: {message}");
        };
        write!(f, "ERROR: <input>:{line}:{column}: {message}")?;
        let Some(text) = self.source.split('\n').nth(line.saturating_sub(1) as usize) else {
            return Ok(());
        };
        if self.source.is_empty() || text.len() > SNIPPET_BYTES_MAX {
            return Ok(());
        }
        // A tab in the source line becomes a space, because a tab would move the caret. The caret
        // line has a wide dot below each character that is not ASCII.
        let text = text.replace('\t', " ");
        write!(f, "\n | {text}\n | ")?;
        let mut before = text.chars();
        for c in before.by_ref().take(column.saturating_sub(1) as usize) {
            f.write_str(if c.is_ascii() { "." } else { "．" })?;
        }
        let under = before.next();
        f.write_str(if under.is_none_or(|c| c.is_ascii()) { "^" } else { "＾" })
    }
}

fn truncate_message(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        message.push_str("...");
    }
    message
}

/// The starts of lines, to convert code point offsets to lines and columns.
struct LineIndex {
    /// Code point offset of the first character of each line.
    line_starts: Vec<u32>,
}

impl LineIndex {
    fn new(source: &str) -> Self {
        let mut starts = vec![0];
        for (n, c) in source.chars().enumerate() {
            if c == '\n' {
                starts.push(n as u32 + 1);
            }
        }
        Self { line_starts: starts }
    }

    /// The 1-based line and column of an offset.
    fn line_and_column(&self, offset: u32) -> (Option<u32>, u32) {
        let line = self.line_starts.partition_point(|&start| start <= offset).max(1);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        (Some(line as u32), offset - start + 1)
    }
}
