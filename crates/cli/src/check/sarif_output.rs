//! Findings as SARIF 2.1.0, for code scanning.

use std::io::{self, Write};

use document::SourcePosition;
use serde_json::{Value, json};

use super::finding::{CheckOutcome, CheckedFile, FileFindings, Finding};
use super::finding_rule::{FindingRule, Severity};
use super::human_output::shorten_message;
use super::json_output::end_line_and_column;
use crate::output_helpers::write_pretty_json;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Maximum number of results. Code scanning shows no more and refuses a file with many more.
const RESULTS_MAX: usize = 5000;

/// Writes the findings as a SARIF log.
///
/// # Errors
/// Fails if it cannot be written.
pub(super) fn write_sarif_report(out: &mut dyn Write, checked: &[CheckedFile]) -> io::Result<()> {
    write_pretty_json(out, &build_sarif_log(checked))
}

fn build_sarif_log(checked: &[CheckedFile]) -> Value {
    let mut rules: Vec<FindingRule> = Vec::new();
    let mut results = Vec::new();
    let mut n_suppressed_events = 0;
    let mut notifications = Vec::new();
    for CheckedFile { name, check_outcome: outcome } in checked {
        match outcome {
            CheckOutcome::Unreadable { message } => {
                notifications.push(unreadable_file_notification(name, message))
            }
            CheckOutcome::Read(file) => {
                for (severity, finding) in findings_with_severity(file) {
                    if results.len() == RESULTS_MAX {
                        n_suppressed_events += 1;
                        continue;
                    }
                    let idx = find_or_add_rule(finding.rule, &mut rules);
                    results.push(finding_json(name, &file.file_text, severity, idx, finding));
                }
            }
        }
    }
    let is_successful = notifications.is_empty();
    if n_suppressed_events > 0 {
        let text = format!("{n_suppressed_events} more findings are left out");
        notifications.push(json!({ "level": "warning", "message": { "text": text } }));
    }
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "portcullis",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_iter().map(sarif_rule_json).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": is_successful,
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    })
}

fn findings_with_severity(file: &FileFindings) -> impl Iterator<Item = (Severity, &Finding)> {
    let errors = file.errors.iter().map(|finding| (Severity::Error, finding));
    errors.chain(file.warnings.iter().map(|finding| (Severity::Warning, finding)))
}

/// Returns the index of a rule in the list, and adds a new rule to the list.
fn find_or_add_rule(rule: FindingRule, rules: &mut Vec<FindingRule>) -> usize {
    rules.iter().position(|known| known.id == rule.id).unwrap_or_else(|| {
        rules.push(rule);
        rules.len() - 1
    })
}

fn sarif_rule_json(rule: FindingRule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.rule_summary },
        "fullDescription": { "text": rule.rule_summary },
        "help": { "text": rule.fix_advice },
        "defaultConfiguration": { "level": rule.severity.name() },
    })
}

fn finding_json(
    name: &str,
    text: &str,
    severity: Severity,
    rule_idx: usize,
    finding: &Finding,
) -> Value {
    // A reader replaces `{0}` only if the message has arguments, so braces need no escape here.
    let message = match &finding.hint {
        Some(hint) => format!("{} ({hint})", shorten_message(&finding.message)),
        None => shorten_message(&finding.message),
    };
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": file_uri(name) },
            "region": sarif_region_json(text, finding.source_position),
        },
    });
    if !finding.field.is_empty() {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": finding.field }]);
    }
    let related = finding.expression_issues.iter().enumerate().map(|(idx, issue)| {
        json!({
            "id": idx,
            "message": { "text": issue.message },
            "physicalLocation": {
                "artifactLocation": { "uri": file_uri(name) },
                "region": sarif_region_json(text, issue.position),
            },
        })
    });
    json!({
        "ruleId": finding.rule.id,
        "ruleIndex": rule_idx,
        "level": severity.name(),
        "message": { "text": message },
        "locations": [location],
        "relatedLocations": related.collect::<Vec<_>>(),
    })
}

/// Formats a position. An empty position has no end, because some readers reject a region that ends where
/// it begins.
fn sarif_region_json(text: &str, position: SourcePosition) -> Value {
    let mut region = json!({ "startLine": position.line, "startColumn": position.column });
    let (line, column) = end_line_and_column(text, position);
    if (line, column) != (position.line, position.column) {
        region["endLine"] = json!(line);
        region["endColumn"] = json!(column);
    }
    region
}

fn unreadable_file_notification(name: &str, message: &str) -> Value {
    json!({
        "level": "error",
        "message": { "text": message },
        "locations": [{ "physicalLocation": { "artifactLocation": { "uri": file_uri(name) } } }],
    })
}

/// Converts the name of a file to a URI. A relative path stays relative to the working directory, which in
/// CI is the root of the repository.
fn file_uri(name: &str) -> String {
    let path = name.strip_prefix("./").unwrap_or(name);
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => uri.push(char::from(byte)),
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_uris() {
        for (name, want) in [
            ("config/a.yaml", "config/a.yaml"),
            ("./a b.yaml", "a%20b.yaml"),
            ("../ä.yaml", "../%C3%A4.yaml"),
            ("/etc/a.yaml", "file:///etc/a.yaml"),
            ("<stdin>", "%3Cstdin%3E"),
            ("a:b", "a%3Ab"),
        ] {
            assert_eq!(file_uri(name), want);
        }
    }
}
