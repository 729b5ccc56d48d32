//! Findings as one JSON object, for programs.
//!
//! ```json
//! {
//!   "valid": false,
//!   "files": [{"file": "a.yaml", "valid": false, "kind": null, "apiVersion": null,
//!              "authorizers": [], "objects": {}, "policies": null, "message": "…"}],
//!   "errors": [{"file": "a.yaml", "type": "Required", "field": "authorizers[0].timeout",
//!               "message": "…", "line": 6, "column": 3, "endLine": 6, "endColumn": 10,
//!               "hint": null, "issues": []}],
//!   "warnings": []
//! }
//! ```
//!
//! The output is one object, regardless of the number of files; each finding names its file. Lines and
//! columns count from 1, columns in characters, and the end is the position after the last character.
//! These positions are null for a file that cannot be read. `issues` has one entry for each error inside an
//! expression, with its position in the file and in the expression. `message` of a file is the error text
//! of kube-apiserver for the whole file; manifests have none. A file without Kubernetes objects has a `note`.
//! Later versions may add fields, but do not remove these.

use std::io::{self, Write};

use document::{ExpressionIssue, SourcePosition};
use serde_json::{Map, Value, json};

use super::finding::{CheckOutcome, CheckedFile, ContentSummary, FileFindings, Finding};
use super::finding_rule::UNREADABLE_RULE_ID;
use super::human_output::NO_OBJECTS_NOTE;
use crate::output_helpers::write_pretty_json;

/// Writes the report as one JSON object.
///
/// # Errors
/// Fails if it cannot be written.
pub(super) fn write_json_report(out: &mut dyn Write, checked: &[CheckedFile]) -> io::Result<()> {
    write_pretty_json(out, &build_json_report(checked))
}

fn build_json_report(checked: &[CheckedFile]) -> Value {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    for CheckedFile { name, check_outcome: outcome } in checked {
        match outcome {
            CheckOutcome::Unreadable { message } => {
                errors.push(unreadable_file_json(name, message))
            }
            CheckOutcome::Read(file) => {
                let to_json = |finding| finding_json(name, &file.file_text, finding);
                errors.extend(file.errors.iter().map(to_json));
                warnings.extend(file.warnings.iter().map(to_json));
            }
        }
    }
    json!({
        "valid": errors.is_empty(),
        "files": checked.iter().map(file_result_json).collect::<Vec<_>>(),
        "errors": errors,
        "warnings": warnings,
    })
}

fn file_result_json(CheckedFile { name, check_outcome: outcome }: &CheckedFile) -> Value {
    let (is_valid, summary, message) = match outcome {
        CheckOutcome::Unreadable { message } => (false, None, Some(message)),
        CheckOutcome::Read(file) => {
            let FileFindings {
                content_summary: summary,
                kubernetes_error_message: kubernetes_message,
                errors,
                ..
            } = file.as_ref();
            (errors.is_empty(), summary.as_ref(), kubernetes_message.as_ref())
        }
    };
    let mut api_version = None;
    let mut authorizers: &[String] = &[];
    let mut objects = Map::new();
    let mut policies = None;
    match summary {
        Some(ContentSummary::Configuration { api_version: version, authorizers: names }) => {
            api_version = *version;
            authorizers = names;
        }
        Some(ContentSummary::Manifest { kinds, .. }) => {
            objects.extend(kinds.iter().map(|(kind, n)| (kind.clone(), json!(n))));
        }
        Some(ContentSummary::AbacPolicy { n_policies }) => policies = Some(n_policies),
        Some(ContentSummary::Hooks { names }) => authorizers = names,
        Some(ContentSummary::Kubeconfig | ContentSummary::NoObjects) | None => {}
    }
    let mut file = json!({
        "file": name,
        "valid": is_valid,
        "kind": summary.and_then(ContentSummary::file_kind_name),
        "apiVersion": api_version,
        "authorizers": authorizers,
        "objects": objects,
        "policies": policies,
        "message": message,
    });
    if let Some(ContentSummary::NoObjects) = summary {
        file["note"] = NO_OBJECTS_NOTE.into();
    }
    file
}

fn unreadable_file_json(name: &str, message: &str) -> Value {
    json!({
        "file": name,
        "type": UNREADABLE_RULE_ID,
        "field": "",
        "message": message,
        "line": null,
        "column": null,
        "endLine": null,
        "endColumn": null,
        "hint": null,
        "issues": [],
    })
}

fn finding_json(name: &str, text: &str, finding: &Finding) -> Value {
    let (end_line, end_column) = end_line_and_column(text, finding.source_position);
    json!({
        "file": name,
        "type": finding.rule.id,
        "field": finding.field,
        "message": finding.message,
        "line": finding.source_position.line,
        "column": finding.source_position.column,
        "endLine": end_line,
        "endColumn": end_column,
        "hint": finding.hint,
        "issues": finding.expression_issues.iter().map(expression_issue_json).collect::<Vec<_>>(),
    })
}

fn expression_issue_json(issue: &ExpressionIssue) -> Value {
    json!({
        "message": issue.message,
        "line": issue.position.line,
        "column": issue.position.column,
        "expressionLine": issue.line_in_expression,
        "expressionColumn": issue.column_in_expression,
        "hint": issue.hint,
    })
}

/// Returns the line and column after the last character of a position.
pub(super) fn end_line_and_column(text: &str, position: SourcePosition) -> (usize, usize) {
    let covered = text.get(position.start..position.end_offset).unwrap_or_default();
    let lines = super::source_excerpt::line_ranges(covered);
    let last = lines.last().cloned().unwrap_or_default();
    let width = covered.get(last).unwrap_or_default().chars().count();
    match lines.len() {
        0 | 1 => (position.line, position.column + width),
        n => (position.line + n - 1, width + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_count_lines_and_characters() {
        let text = "ab\r\ncäd\re";
        for (start, end_at, line, column, want) in [
            (0, 2, 1, 1, (1, 3)),
            (1, 1, 1, 2, (1, 2)),
            (1, 7, 1, 2, (2, 3)),
            (4, 10, 2, 1, (3, 2)),
            (9, 99, 3, 1, (3, 1)),
        ] {
            let position = SourcePosition { line, column, start, end_offset: end_at };
            assert_eq!(end_line_and_column(text, position), want, "{start}..{end_at}");
        }
    }
}
