//! Detects ABAC policy files.

use document::{Node, Value, json};

use super::load_abac_policies::LINE_BYTES_MAX;
use super::policy_line::{GROUP, SPEC_FIELDS, V0_FIELDS};

/// The maximum number of lines that detection reads. A file whose first hundred lines are all
/// malformed is not a policy file in use.
const LINES_MAX: usize = 100;

/// Reports whether a text looks like a policy file: it begins with a brace, and one of its first
/// lines is a policy. JSON objects begin with a brace too, but none of their lines alone is a
/// policy.
pub fn looks_like_abac_policy_file(text: &str) -> bool {
    let is_content = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let mut lines =
        text.lines().map(|line| line.trim_matches('\u{feff}').trim()).filter(is_content).peekable();
    let begins_with_brace =
        lines.peek().is_some_and(|line| line.starts_with('{') && line.len() > 1);
    begins_with_brace && lines.take(LINES_MAX).any(is_policy_line)
}

fn is_policy_line(line: &str) -> bool {
    if line.len() > LINE_BYTES_MAX {
        return false;
    }
    let Ok(Node { value: Value::Object(entries), .. }) = json::parse_json(line) else {
        return false;
    };
    let text = |name: &str| {
        let entry = entries.iter().rev().find(|entry| entry.key == name);
        match entry.map(|entry| &entry.value.value) {
            Some(Value::Text(text)) => text.as_str(),
            _ => "",
        }
    };
    if !text("apiVersion").is_empty() {
        return text("apiVersion").split('/').next() == Some(GROUP);
    }
    let is_known =
        |name: &str| V0_FIELDS.contains(&name) || SPEC_FIELDS.contains(&name) || name == "spec";
    // Objects of other kinds have these fields too, so they do not identify a policy.
    let is_distinctive = |name: &str| !matches!(name, "apiVersion" | "kind" | "namespace" | "spec");
    entries.iter().all(|entry| is_known(&entry.key))
        && (text("kind") == "Policy" || entries.iter().any(|entry| is_distinctive(&entry.key)))
}
