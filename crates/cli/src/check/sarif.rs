//! Findings as SARIF 2.1.0, for code scanning.

use std::io::{self, Write};

use document::SourcePosition;
use serde_json::{Value, json};

use super::finding::{Checked, Finding, Outcome, ReadFile};
use super::human::brief;
use super::json::end;
use super::rule::{Level, Rule};
use crate::output::write_json;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The most results of one run. Code scanning shows no more and refuses a file with many more.
const RESULTS_MAX: usize = 5000;

/// Writes the log.
///
/// # Errors
/// Fails if it can not be written.
pub(super) fn write(out: &mut dyn Write, checked: &[Checked]) -> io::Result<()> {
    write_json(out, &log(checked))
}

fn log(checked: &[Checked]) -> Value {
    let mut rules: Vec<Rule> = Vec::new();
    let mut results = Vec::new();
    let mut n_left_out = 0;
    let mut notifications = Vec::new();
    for Checked { name, outcome } in checked {
        match outcome {
            Outcome::Unreadable { message } => notifications.push(notification(name, message)),
            Outcome::Read(file) => {
                for (level, finding) in findings(file) {
                    if results.len() == RESULTS_MAX {
                        n_left_out += 1;
                        continue;
                    }
                    let idx = index_of(finding.rule, &mut rules);
                    results.push(result(name, &file.text, level, idx, finding));
                }
            }
        }
    }
    let is_successful = notifications.is_empty();
    if n_left_out > 0 {
        let text = format!("{n_left_out} more findings are left out");
        notifications.push(json!({ "level": "warning", "message": { "text": text } }));
    }
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "portcullis",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_iter().map(rule_json).collect::<Vec<_>>(),
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

fn findings(file: &ReadFile) -> impl Iterator<Item = (Level, &Finding)> {
    let errors = file.errors.iter().map(|finding| (Level::Error, finding));
    errors.chain(file.warnings.iter().map(|finding| (Level::Warning, finding)))
}

/// The position of a rule in the list, to which it is added if it is new.
fn index_of(rule: Rule, rules: &mut Vec<Rule>) -> usize {
    rules.iter().position(|known| known.id == rule.id).unwrap_or_else(|| {
        rules.push(rule);
        rules.len() - 1
    })
}

fn rule_json(rule: Rule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.summary },
        "fullDescription": { "text": rule.summary },
        "help": { "text": rule.help },
        "defaultConfiguration": { "level": rule.level.name() },
    })
}

fn result(name: &str, text: &str, level: Level, rule_idx: usize, finding: &Finding) -> Value {
    // A reader replaces `{0}` only where there are arguments, so that braces need no escape here.
    let message = match &finding.hint {
        Some(hint) => format!("{} ({hint})", brief(&finding.message)),
        None => brief(&finding.message),
    };
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(name) },
            "region": region(text, finding.position),
        },
    });
    if !finding.field.is_empty() {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": finding.field }]);
    }
    let related = finding.issues.iter().enumerate().map(|(idx, issue)| {
        json!({
            "id": idx,
            "message": { "text": issue.message },
            "physicalLocation": {
                "artifactLocation": { "uri": uri(name) },
                "region": region(text, issue.position),
            },
        })
    });
    json!({
        "ruleId": finding.rule.id,
        "ruleIndex": rule_idx,
        "level": level.name(),
        "message": { "text": message },
        "locations": [location],
        "relatedLocations": related.collect::<Vec<_>>(),
    })
}

/// A position; one without width has no end, since a region that ends where it begins is taken for a
/// mistake by some readers.
fn region(text: &str, position: SourcePosition) -> Value {
    let mut region = json!({ "startLine": position.line, "startColumn": position.column });
    let (line, column) = end(text, position);
    if (line, column) != (position.line, position.column) {
        region["endLine"] = json!(line);
        region["endColumn"] = json!(column);
    }
    region
}

fn notification(name: &str, message: &str) -> Value {
    json!({
        "level": "error",
        "message": { "text": message },
        "locations": [{ "physicalLocation": { "artifactLocation": { "uri": uri(name) } } }],
    })
}

/// The name of a file as a URI: relative to where the program runs, which in CI is the root of
/// the repository, unless the path is absolute.
fn uri(name: &str) -> String {
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
            assert_eq!(uri(name), want);
        }
    }
}
