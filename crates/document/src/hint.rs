//! Hints: the likely intention of an author who made a mistake.

use crate::node::{Node, Value};
use crate::schema::{FieldType, ObjectSchema};

/// The hint for a value that has a YAML tag, or for a syntax error near a tag.
pub const LEADING_BANG_HINT: &str =
    "an unquoted leading `!` is a YAML tag: put the whole value in quotes";

/// The hint for a syntax error in a template.
pub const HELM_TEMPLATE_HINT: &str = "this is a Helm template and no manifest: render it with `helm template`, or leave it out with `--exclude`";

/// Values longer than this are not repeated in a hint.
const VALUE_BYTES_MAX: usize = 40;

/// Suggests the known word that is nearest to `word`.
pub fn did_you_mean(word: &str, known: &[&str]) -> Option<String> {
    let nearest = field_errors::nearest_word(word, known.iter().copied())?;
    (nearest != word).then(|| format!("did you mean `{nearest}`?"))
}

/// Returns a hint for a field that its object does not have.
pub fn hint_for_unknown_field(name: &str, object: &ObjectSchema) -> Option<String> {
    if let Some(did_you_mean) = did_you_mean(name, &object.field_names()) {
        return Some(did_you_mean);
    }
    if let Some(parent_path) = object.path_of_nested_field(name) {
        return Some(format!("`{name}` belongs inside `{parent_path}`"));
    }
    let is_file_format = object.field("metadata").is_none();
    match name {
        "metadata" | "spec" if is_file_format => {
            Some("this kind is a file format: it has neither metadata nor spec".to_owned())
        }
        _ => None,
    }
}

/// Returns a hint for a text that is not a duration.
pub fn hint_for_bad_duration(text: &str) -> Option<String> {
    if text.len() > VALUE_BYTES_MAX {
        return None;
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if is_number(text) {
        return Some(format!("a duration needs a unit: `{text}s`"));
    }
    if let Some(days) = text.strip_suffix('d').filter(|days| is_number(days)) {
        let hours = days.parse::<u32>().ok().and_then(|days| days.checked_mul(24))?;
        return Some(format!("days are no unit of durations: `{hours}h`"));
    }
    let tidy: String = text.to_lowercase().split_whitespace().collect();
    if tidy != text && go_compat::parse_duration(&tidy).is_ok() {
        return Some(format!("units are lower case and spaces are not allowed: `{tidy}`"));
    }
    None
}

/// Returns a hint for a value that does not have the type of its field.
pub fn hint_for_wrong_type(text: &str, node: &Node, field_type: &FieldType) -> Option<String> {
    let written = text.get(node.span.start..node.span.end_offset).unwrap_or_default();
    let is_short = written.len() <= VALUE_BYTES_MAX;
    match (field_type, &node.value) {
        (FieldType::Duration { .. }, Value::Number(_)) if is_short => {
            Some(format!("a duration is a text with a unit: `{written}s`"))
        }
        (FieldType::Text(_) | FieldType::Duration { .. }, Value::Bool(_) | Value::Number(_))
            if is_short =>
        {
            let kind = if matches!(node.value, Value::Number(_)) { "number" } else { "boolean" };
            Some(format!("`{written}` is a {kind}: put it in quotes to make it text"))
        }
        (FieldType::Bool { .. }, Value::Text(text)) => {
            match text.as_str().to_lowercase().as_str() {
                truth @ ("true" | "false") => Some(format!("write `{truth}` without quotes")),
                _ => Some("write `true` or `false`".to_owned()),
            }
        }
        (FieldType::List { .. }, Value::Object(_)) | (FieldType::TextList, Value::Text(_)) => {
            Some("this is a list: begin each item with `- `".to_owned())
        }
        (FieldType::Object(object), _) => Some(format!(
            "this is an object with the fields {}",
            join_in_backticks(&object.field_names())
        )),
        _ => None,
    }
}

/// Returns a hint for a syntax error with this message at `offset` of a YAML text.
pub fn hint_for_syntax_error(message: &str, text: &str, offset: usize) -> Option<String> {
    if let Some(hint) = hint_for_helm_template(text) {
        return Some(hint);
    }
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(line_start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let value = line.trim_start().trim_start_matches("- ").trim_start();
    let tagged = match value.split_once(": ") {
        Some((_, value)) => value.trim_start(),
        None => value,
    };
    if tagged.starts_with('!') && !tagged.starts_with("!!") {
        return Some(LEADING_BANG_HINT.to_owned());
    }
    if message.ends_with("did not find expected alphabetic or numeric character") {
        return Some("an unquoted leading `*` is a YAML alias: put it in quotes".to_owned());
    }
    // The value begins with a quoted text, and the expression continues after the closing quote.
    if let Some(quote @ ('\'' | '"')) = tagged.chars().next()
        && message.contains("did not find expected")
    {
        let other = if quote == '"' { "single" } else { "double" };
        return Some(format!(
            "the quoted text ends here: put {other} quotes around the whole value"
        ));
    }
    let indentation: String = line.chars().take_while(|c| c.is_whitespace()).collect();
    if indentation.contains('\t') {
        return Some("YAML is indented with spaces, not tabs".to_owned());
    }
    if message.ends_with("mapping values are not allowed in this context") {
        return Some("a value that contains `: ` needs quotes".to_owned());
    }
    None
}

/// Returns a hint for a syntax error in a text that is a Helm template.
pub fn hint_for_helm_template(text: &str) -> Option<String> {
    is_helm_template(text).then(|| HELM_TEMPLATE_HINT.to_owned())
}

/// Reports whether a text has actions of Go templates where YAML has no quotes: a line that begins with `{{`, or an
/// unquoted value that does. Alerts and workflows contain `{{` too, in quotes and in blocks of text.
fn is_helm_template(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start().trim_start_matches("- ").trim_start();
        let value = line.split_once(": ").map_or(line, |(_, value)| value.trim_start());
        let is_action = |text: &str| text.starts_with("{{") && text.contains("}}");
        is_action(line) || is_action(value)
    })
}

/// Joins names, each in backticks, for a sentence.
pub fn join_in_backticks(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_for_durations() {
        for (text, hint) in [
            ("30", Some("a duration needs a unit: `30s`")),
            ("2d", Some("days are no unit of durations: `48h`")),
            ("5 S", Some("units are lower case and spaces are not allowed: `5s`")),
            ("red", None),
            ("", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(hint_for_bad_duration(text).as_deref(), hint, "{text}");
        }
    }

    #[test]
    fn templates_are_named_as_such() {
        for (text, want) in [
            ("name: {{ .Release.Name }}\n", true),
            ("{{- if .Values.rbac }}\nkind: Role\n{{- end }}\n", true),
            ("rules:\n- {{ toYaml .Values.rules }}\n", true),
            ("message: \"{{ $labels.pod }} restarts\"\n\tx: 1\n", false),
            ("a: {b: {c: d}}\n\tx: 1\n", false),
        ] {
            let hint = hint_for_syntax_error("yaml: line 1: x", text, 0);
            assert_eq!(hint.as_deref() == Some(HELM_TEMPLATE_HINT), want, "{text}");
        }
    }

    #[test]
    fn hints_for_syntax_errors() {
        let text = "a: 1\n- expression: !has(x) && y\n\tb: 2\nc\n";
        assert_eq!(hint_for_syntax_error("", text, 2), None);
        assert_eq!(hint_for_syntax_error("", text, 30).as_deref(), Some(LEADING_BANG_HINT));
        assert!(hint_for_syntax_error("", text, 36).is_some_and(|hint| hint.contains("tabs")));
        assert_eq!(hint_for_syntax_error("", text, 999), None);
        let text = "- expression: 'a' in request.groups\n";
        let hint = hint_for_syntax_error("yaml: line 1: did not find expected key", text, 18);
        assert!(hint.is_some_and(|hint| hint.contains("double quotes")));
        let message = "yaml: line 1: mapping values are not allowed in this context";
        assert!(
            hint_for_syntax_error(message, text, 2).is_some_and(|hint| hint.contains("quotes"))
        );
    }
}
