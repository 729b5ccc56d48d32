//! Writes trees as YAML in the style of Kubernetes: keys are sorted, lists are not indented, strings are
//! quoted only where a reader would take them for another type, and texts of several lines are blocks.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Longer keys are written with `? `, because readers limit how far they look ahead for `:`.
const SIMPLE_KEY_BYTES_MAX: usize = 128;

/// Writes a YAML document.
pub(crate) fn write_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(members) if !members.is_empty() => {
            write_mapping(&mut out, members, 0, FirstLinePosition::NewLine);
        }
        Value::Array(items) if !items.is_empty() => {
            write_sequence(&mut out, items, 0, FirstLinePosition::NewLine)
        }
        _ => write_scalar(&mut out, value, 0),
    }
    out
}

/// The position of the first line of a collection.
#[derive(Clone, Copy, PartialEq)]
enum FirstLinePosition {
    NewLine,
    AfterDash,
}

fn write_mapping(
    out: &mut String,
    members: &Map<String, Value>,
    indent: usize,
    first_line: FirstLinePosition,
) {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    for (idx, (name, value)) in sorted.into_iter().enumerate() {
        begin_line(out, indent, idx, first_line);
        let key = if can_be_plain_scalar(name) { name.clone() } else { quote_string(name) };
        if key.len() > SIMPLE_KEY_BYTES_MAX {
            out.push_str("? ");
            out.push_str(&key);
            out.push('\n');
            push_indent(out, indent);
        } else {
            out.push_str(&key);
        }
        out.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push('\n');
                write_mapping(out, inner, indent + 2, FirstLinePosition::NewLine);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                write_sequence(out, items, indent, FirstLinePosition::NewLine);
            }
            _ => {
                out.push(' ');
                write_scalar(out, value, indent + 2);
            }
        }
    }
}

fn write_sequence(out: &mut String, items: &[Value], indent: usize, first_line: FirstLinePosition) {
    for (idx, item) in items.iter().enumerate() {
        begin_line(out, indent, idx, first_line);
        out.push_str("- ");
        match item {
            Value::Object(inner) if !inner.is_empty() => {
                write_mapping(out, inner, indent + 2, FirstLinePosition::AfterDash);
            }
            Value::Array(inner) if !inner.is_empty() => {
                write_sequence(out, inner, indent + 2, FirstLinePosition::AfterDash);
            }
            _ => write_scalar(out, item, indent + 2),
        }
    }
}

fn begin_line(out: &mut String, indent: usize, idx: usize, first_line: FirstLinePosition) {
    if idx > 0 || first_line == FirstLinePosition::NewLine {
        push_indent(out, indent);
    }
}

fn push_indent(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Writes a scalar or an empty collection; `indent` is that of the lines of a block.
fn write_scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) if can_be_plain_scalar(text) => out.push_str(text),
        Value::String(text) if can_be_block_scalar(text) => {
            return write_block_scalar(out, text, indent);
        }
        Value::String(text) => out.push_str(&quote_string(text)),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
    out.push('\n');
}

/// Reports whether a text can be written without quotes. In doubt it is quoted: `10.0.0.1` gets quotes
/// that it does not need.
fn can_be_plain_scalar(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let is_start = first.is_ascii_alphanumeric() || matches!(first, '_' | '/' | '.' | '-' | '+');
    let is_body = |c: char| (' '..='~').contains(&c) && !matches!(c, '"' | '\'' | '`');
    is_start
        && text.chars().all(is_body)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !is_number_like(text)
        && !is_yaml_keyword(text)
        && !matches!(text.as_bytes(), [b'-'] | [b'-', b' ', ..] | [b'-', b'-', b'-', ..])
        && !text.starts_with("...")
}

/// Reports whether a text starts like a number or a date and has only characters that these have.
fn is_number_like(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        && text.chars().all(|c| c.is_ascii_hexdigit() || "xXoO_+-.:TtZz ".contains(c))
        || [".inf", ".nan"].iter().any(|name| text.to_ascii_lowercase().ends_with(name))
}

/// Reports whether YAML 1.1 reads a text as null or a boolean.
fn is_yaml_keyword(text: &str) -> bool {
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

/// Reports whether a text can be written as a block: it has several lines and no characters that need
/// escapes, and the first line does not begin with whitespace, which would hide the indentation.
fn can_be_block_scalar(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(|c| c == '\n' || c == '\t' || is_printable(c))
}

fn write_block_scalar(out: &mut String, text: &str, indent: usize) {
    let (lines, chomping) = match text.strip_suffix('\n') {
        None => (text, "-"),
        Some(lines) if lines.ends_with('\n') => (lines, "+"),
        Some(lines) => (lines, ""),
    };
    out.push('|');
    out.push_str(chomping);
    out.push('\n');
    for line in lines.split('\n') {
        if !line.is_empty() {
            push_indent(out, indent.max(2));
            out.push_str(line);
        }
        out.push('\n');
    }
}

/// Reports whether YAML allows the character in a file.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

fn quote_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_printable(c) => out.push(c),
            // Writing to a string cannot fail.
            c => drop(write!(out, "\\U{:08X}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::testing::tree;

    #[test]
    fn output_matches_kubernetes() {
        let value = json!({
            "kind": "Role",
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "metadata": {"name": "a", "annotations": {}, "creationTimestamp": "2026-11-15T18:02:38Z"},
            "rules": [
                {"verbs": ["get", "*"], "apiGroups": [""]},
                {"c": 1, "b": true, "t": "true", "x": "1Gi", "z": null, "l": [], "s": "it's"},
                [["a"], "b"],
            ],
            "data": {"f": "a\n  b\n", "g": "a\nb", "h": "a\n\n", "i": "\na", "j": "a: b"},
        });
        let want = r#"apiVersion: rbac.authorization.k8s.io/v1
data:
  f: |
    a
      b
  g: |-
    a
    b
  h: |+
    a

  i: "\na"
  j: "a: b"
kind: Role
metadata:
  annotations: {}
  creationTimestamp: "2026-11-15T18:02:38Z"
  name: a
rules:
- apiGroups:
  - ""
  verbs:
  - get
  - "*"
- b: true
  c: 1
  l: []
  s: "it's"
  t: "true"
  x: 1Gi
  z: null
- - - a
  - b
"#;
        assert_eq!(write_yaml(&value), want);
        assert_eq!(document::yaml_to_json(want.as_bytes()).unwrap().value, value);
    }

    #[test]
    fn long_keys_are_read_back() {
        let value =
            json!({"k".repeat(2000): {"a": ["b"]}, "é".repeat(100): "v", "l".repeat(200): [1]});
        assert_eq!(document::yaml_to_json(write_yaml(&value).as_bytes()).unwrap().value, value);
    }

    #[test]
    fn a_document_can_be_a_scalar() {
        for (value, want) in [(json!(null), "null\n"), (json!({}), "{}\n"), (json!(["a"]), "- a\n")]
        {
            assert_eq!(write_yaml(&value), want);
        }
        let block = json!("a\nb");
        assert_eq!(document::yaml_to_json(write_yaml(&block).as_bytes()).unwrap().value, block);
    }

    proptest! {
        #[test]
        fn written_documents_parse_back(tree in tree()) {
            let text = write_yaml(&tree);
            let back = document::yaml_to_json(text.as_bytes());
            prop_assert_eq!(back.map(|read| read.value), Ok(tree), "{}", text);
        }
    }
}
