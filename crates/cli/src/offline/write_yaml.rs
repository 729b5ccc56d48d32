//! Writes a JSON value as block-style YAML.

use std::io::{self, Write};

use serde_json::Value;

/// Writes a value in block style. It quotes a string unless YAML can only read it as a string.
///
/// # Errors
/// Fails if it cannot be written.
pub(crate) fn write_yaml(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => append_yaml_block(&mut text, value, 0),
        Value::Array(items) if !items.is_empty() => append_yaml_block(&mut text, value, 0),
        scalar => {
            text.push_str(&to_inline_yaml(scalar));
            text.push('\n');
        }
    }
    out.write_all(text.as_bytes())
}

/// Appends a map or list that is not empty. Each entry starts a line with the given indentation.
fn append_yaml_block(text: &mut String, value: &Value, indentation: usize) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                text.extend(std::iter::repeat_n(' ', indentation));
                text.push_str(&to_yaml_scalar(key));
                text.push(':');
                // A list may start at the column of its key.
                let deeper = indentation + if value.is_array() { 0 } else { 2 };
                append_yaml_value(text, value, deeper);
            }
        }
        Value::Array(items) => {
            for item in items {
                text.extend(std::iter::repeat_n(' ', indentation));
                text.push('-');
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        let mut inner = String::new();
                        append_yaml_block(&mut inner, item, indentation + 2);
                        text.push(' ');
                        text.push_str(inner.trim_start_matches(' '));
                    }
                    item => append_yaml_value(text, item, indentation + 2),
                }
            }
        }
        scalar => text.push_str(&to_inline_yaml(scalar)),
    }
}

/// Appends a value after its key or dash.
fn append_yaml_value(text: &mut String, value: &Value, indentation: usize) {
    let is_block = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        text.push('\n');
        append_yaml_block(text, value, indentation);
    } else {
        text.push(' ');
        text.push_str(&to_inline_yaml(value));
        text.push('\n');
    }
}

fn to_inline_yaml(value: &Value) -> String {
    match value {
        Value::String(text) => to_yaml_scalar(text),
        // Numbers, booleans, null, empty lists and empty maps look the same in JSON and YAML.
        other => other.to_string(),
    }
}

/// Formats a text without quotes if YAML reads it as text, otherwise as a JSON string, which YAML also reads.
fn to_yaml_scalar(text: &str) -> String {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let is_word = matches!(
        text.to_ascii_lowercase().as_str(),
        "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    if begins && text.chars().all(is_inner) && !text.ends_with(':') && !is_word {
        return text.to_owned();
    }
    let json = Value::from(text).to_string();
    json.chars().fold(String::with_capacity(json.len()), |mut quoted, c| {
        // JSON does not escape these characters, but YAML does not accept all of them.
        match c {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'..='\u{ffff}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
        quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;

    fn yaml(value: &Value) -> String {
        let mut text = Vec::new();
        write_yaml(&mut text, value).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn blocks_are_indented() {
        let value = json!({
            "users": ["ana", "system:serviceaccount:ns:ci"],
            "groups": [],
            "rules": [{"verbs": ["get"], "names": {"a": 1}}, {"verbs": []}, ["x", ["y"]]],
            "empty": {},
            "deep": {"er": {"is": true}},
        });
        assert_eq!(
            yaml(&value),
            "users:\n- ana\n- system:serviceaccount:ns:ci\ngroups: []\nrules:\n- verbs:\n  - get\n  \
             names:\n    a: 1\n- verbs: []\n-\n  - x\n  -\n    - \"y\"\nempty: {}\ndeep:\n  er:\n    is: \
             true\n"
        );
        assert_eq!(yaml(&json!([])), "[]\n");
        assert_eq!(yaml(&json!("a")), "a\n");
    }

    #[test]
    fn doubtful_texts_are_quoted() {
        for (text, want) in [
            ("ana", "ana"),
            ("/healthz", "/healthz"),
            ("*", "\"*\""),
            ("", "\"\""),
            ("true", "\"true\""),
            ("No", "\"No\""),
            ("1e3", "\"1e3\""),
            ("a: b", "\"a: b\""),
            ("a:", "\"a:\""),
            ("-", "\"-\""),
            ("~", "\"~\""),
            ("größe", "\"größe\""),
            ("a\nb\u{1b}\u{9b}", "\"a\\nb\\u001b\\u009b\""),
            ("ana #1", "\"ana #1\""),
        ] {
            assert_eq!(yaml(&json!(text)), format!("{want}\n"));
        }
    }
}
