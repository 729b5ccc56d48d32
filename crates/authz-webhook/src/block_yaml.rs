//! Reads answers in YAML.
//!
//! Kubernetes reads an answer that does not begin with a brace as YAML. This reader accepts the subset in which such
//! answers are written: nested block mappings of scalars. Other YAML is an error, which is a failure of the webhook and
//! never a decision.

use crate::response_document::{DecodeError, DocumentValue, is_needed_member};

/// The deepest nesting of mappings.
const DEPTH_MAX: usize = 32;

/// A line that is neither empty nor a comment.
#[derive(Clone, Copy)]
struct YamlLine<'a> {
    line_indent: usize,
    line_text: &'a str,
}

/// Parses a document in block style.
pub(crate) fn parse_block_yaml(text: &str) -> Result<DocumentValue, DecodeError> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let said = strip_comment(line).trim_end();
        if said.trim_start().is_empty() || (lines.is_empty() && said == "---") {
            continue;
        }
        let text = said.trim_start_matches(' ');
        if text.starts_with('\t') {
            return Err(unsupported_yaml_error("found character that cannot start any token"));
        }
        lines.push(YamlLine { line_indent: said.len() - text.len(), line_text: text });
    }
    let Some(first) = lines.first() else { return Ok(DocumentValue::Null) };
    if split_mapping_entry(first.line_text)?.is_some() {
        let (node, rest) = read_mapping(&lines, first.line_indent, 0)?;
        return if rest.is_empty() {
            Ok(node)
        } else {
            Err(unsupported_yaml_error("did not find expected key"))
        };
    }
    if first.line_text.starts_with("- ") || first.line_text == "-" {
        return Ok(DocumentValue::List);
    }
    let words: Vec<&str> = lines.iter().map(|line| line.line_text).collect();
    read_scalar(&words.join(" "))
}

/// Reads the entries of a mapping at an indentation, and returns the lines after it.
fn read_mapping<'l, 'a>(
    mut lines: &'l [YamlLine<'a>],
    indent: usize,
    depth: usize,
) -> Result<(DocumentValue, &'l [YamlLine<'a>]), DecodeError> {
    if depth == DEPTH_MAX {
        return Err(unsupported_yaml_error("exceeded max depth"));
    }
    let mut members = Vec::new();
    while let Some((line, rest)) = lines.split_first() {
        if line.line_indent < indent {
            break;
        }
        if line.line_indent > indent {
            return Err(unsupported_yaml_error("mapping values are not allowed in this context"));
        }
        let Some((name, value)) = split_mapping_entry(line.line_text)? else {
            return Err(unsupported_yaml_error("could not find expected ':'"));
        };
        let (node, after) = if value.is_empty() {
            read_nested_value(rest, indent, depth)?
        } else {
            (read_scalar(value)?, rest)
        };
        if is_needed_member(&name, depth) {
            members.push((name, node));
        }
        lines = after;
    }
    Ok((DocumentValue::Object(members), lines))
}

/// Reads the nested value of an entry without a value on its line.
fn read_nested_value<'l, 'a>(
    lines: &'l [YamlLine<'a>],
    indent: usize,
    depth: usize,
) -> Result<(DocumentValue, &'l [YamlLine<'a>]), DecodeError> {
    let Some(first) = lines.first() else { return Ok((DocumentValue::Null, lines)) };
    let is_element = first.line_text.starts_with("- ") || first.line_text == "-";
    if is_element && first.line_indent >= indent {
        let inside = |line: &&YamlLine<'_>| {
            line.line_indent > first.line_indent
                || (line.line_indent == first.line_indent && line.line_text.starts_with('-'))
        };
        let n_inside = lines.iter().take_while(inside).count();
        return Ok((DocumentValue::List, lines.get(n_inside..).unwrap_or_default()));
    }
    if first.line_indent > indent {
        return read_mapping(lines, first.line_indent, depth + 1);
    }
    Ok((DocumentValue::Null, lines))
}

/// The name and the value of an entry, or `None` if the line is not one.
fn split_mapping_entry(text: &str) -> Result<Option<(String, &str)>, DecodeError> {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let Some((name, rest)) = read_quoted_text(text, quote)? else { return Ok(None) };
        return Ok(rest.strip_prefix(':').map(|value| (name, value.trim())));
    }
    if text.starts_with(['[', '{', '|', '>', '!', '&', '*', '%', '@', '`']) {
        return Ok(None);
    }
    let is_end = |(at, _): &(usize, &str)| {
        text.get(at + 1..).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let Some((at, _)) = text.match_indices(':').find(is_end) else { return Ok(None) };
    let (name, value) = text.split_at(at);
    Ok(Some((name.trim_end().to_owned(), value.trim_start_matches(':').trim())))
}

/// Reads a value that stands on one line.
fn read_scalar(text: &str) -> Result<DocumentValue, DecodeError> {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => match read_quoted_text(text, quote)? {
            Some((value, "")) => Ok(DocumentValue::Text(value)),
            _ => Err(unsupported_yaml_error("did not find expected <document start>")),
        },
        Some('[') if text.ends_with(']') => Ok(DocumentValue::List),
        Some('{') if text == "{}" => Ok(DocumentValue::Object(Vec::new())),
        Some('[' | '{' | '|' | '>' | '!' | '&' | '*' | '%' | '@' | '`') => {
            Err(unsupported_yaml_error("this form is not supported"))
        }
        _ if text.contains(": ") || text.ends_with(':') => {
            Err(unsupported_yaml_error("mapping values are not allowed in this context"))
        }
        _ => Ok(resolve_plain_scalar(text)),
    }
}

/// Resolves a plain scalar by the rules of YAML 1.1.
fn resolve_plain_scalar(text: &str) -> DocumentValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => DocumentValue::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            DocumentValue::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            DocumentValue::Bool(false)
        }
        number
            if number.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) =>
        {
            match (number.parse::<i64>(), number.parse::<f64>()) {
                (Ok(integer), _) => DocumentValue::Number(Some(integer)),
                (Err(_), Ok(_)) => DocumentValue::Number(None),
                (Err(_), Err(_)) => DocumentValue::Text(number.to_owned()),
            }
        }
        other => DocumentValue::Text(other.to_owned()),
    }
}

/// Reads a quoted text at the beginning. Returns it without quotes and with the rest, or `None` if the quote is not
/// closed.
fn read_quoted_text(text: &str, quote: char) -> Result<Option<(String, &str)>, DecodeError> {
    let mut value = String::new();
    let mut chars = text.chars();
    chars.next();
    while let Some(c) = chars.next() {
        if c == quote {
            if quote == '\'' && chars.as_str().starts_with('\'') {
                chars.next();
                value.push('\'');
                continue;
            }
            return Ok(Some((value, chars.as_str())));
        }
        if c == '\\' && quote == '"' {
            value.push(match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(same @ ('"' | '\\' | '/' | ' ')) => same,
                _ => return Err(unsupported_yaml_error("found unknown escape character")),
            });
        } else {
            value.push(c);
        }
    }
    Ok(None)
}

/// Returns the line without its comment. Outside quotes, `#` begins a comment at the start of the line and after a
/// space or tab.
fn strip_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') if before == ' ' || before == '\t' => {
                return line.get(..at).unwrap_or(line);
            }
            (None, '"' | '\'') if matches!(before, ' ' | ':' | '-') => quote = Some(c),
            (Some(open), _) if open == c && before != '\\' => quote = None,
            _ => {}
        }
        before = c;
    }
    line
}

fn unsupported_yaml_error(why: &str) -> DecodeError {
    DecodeError(format!("yaml: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(entries: &[(&str, DocumentValue)]) -> DocumentValue {
        DocumentValue::Object(
            entries.iter().map(|(name, node)| ((*name).to_owned(), node.clone())).collect(),
        )
    }

    fn text(text: &str) -> DocumentValue {
        DocumentValue::Text(text.to_owned())
    }

    #[test]
    fn block_mappings_are_read() {
        let source = "---\n# an answer\napiVersion: a/v1  # which\n\"kind\": 'K''s'\nmetadata:\n  \
                      labels:\n  - x\nstatus:\n  allowed: yes\n  reason: \"a: \\\"b\\\" # c\"\n  \
                      code: 7\nspec:\n";
        let status = members(&[
            ("allowed", DocumentValue::Bool(true)),
            ("reason", text("a: \"b\" # c")),
            ("code", DocumentValue::Number(Some(7))),
        ]);
        let want = members(&[
            ("apiVersion", text("a/v1")),
            ("kind", text("K's")),
            ("metadata", members(&[])),
            ("status", status),
            ("spec", DocumentValue::Null),
        ]);
        assert_eq!(parse_block_yaml(source), Ok(want));
    }

    #[test]
    fn other_documents_are_scalars_and_lists() {
        for (source, want) in [
            ("", DocumentValue::Null),
            ("# nothing\n", DocumentValue::Null),
            ("error response", text("error response")),
            ("<html>\n  <b>no</b>\n</html>", text("<html> <b>no</b> </html>")),
            ("\"allowed\"", text("allowed")),
            ("true", DocumentValue::Bool(true)),
            ("1.5", DocumentValue::Number(None)),
            ("[]", DocumentValue::List),
            ("- a\n- b", DocumentValue::List),
            ("status: {}", members(&[("status", members(&[]))])),
        ] {
            assert_eq!(parse_block_yaml(source), Ok(want), "{source:?}");
        }
    }

    #[test]
    fn richer_forms_are_refused() {
        for source in [
            "status: {allowed: true}",
            "status: |\n  allowed: true",
            "status: &x\n  allowed: true",
            "a: b: c",
            "status:\n   allowed: true\n  denied: true",
            "status: true\n  denied: true",
            "\tstatus: true",
            "status: 'open",
            "status:\n  allowed: true\nnothing",
        ] {
            assert!(
                parse_block_yaml(source).is_err(),
                "{source:?}: {:?}",
                parse_block_yaml(source)
            );
        }
        let deep: String = (0..100).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        assert_eq!(
            parse_block_yaml(&deep),
            Err(DecodeError("yaml: exceeded max depth".to_owned()))
        );
    }
}
