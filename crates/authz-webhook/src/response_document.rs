//! The document tree of an answer, as far as it is needed.
//!
//! An answer may be megabytes long and arbitrarily deep. Only members with known names are kept, three levels deep; the
//! reader checks the syntax of all others and drops them.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::block_yaml;

/// A JSON value, without the parts that are not needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DocumentValue {
    Null,
    Bool(bool),
    /// A number; `None` if it is not an integer of 64 bits.
    Number(Option<i64>),
    Text(String),
    /// A list. Its elements are dropped, because no caller reads them.
    List,
    /// Members of known names in the order of the document, repeated ones too.
    Object(Vec<(String, DocumentValue)>),
}

/// The number of levels that are kept: `details.retryAfterSeconds` is the deepest member that is needed.
const DEPTH_MAX: usize = 3;

/// Names of the members that are kept, at every level; all others are dropped.
const KEPT_NAMES: [&str; 13] = [
    "allowed",
    "apiVersion",
    "code",
    "denied",
    "details",
    "evaluationError",
    "kind",
    "message",
    "metadata",
    "reason",
    "retryAfterSeconds",
    "spec",
    "status",
];

/// Reads a document: as JSON if it begins with a brace, otherwise as YAML, whatever its content type.
///
/// # Errors
/// The text is neither JSON nor YAML. The message is that of Kubernetes, where it is known.
pub(crate) fn parse_response_document(text: &str) -> Result<DocumentValue, DecodeError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text); // A byte order mark is ignored.
    if text.trim_start().starts_with('{') {
        parse_json_document(text)
    } else {
        block_yaml::parse_block_yaml(text)
    }
}

/// The reason why the body of a response is not a review, in Kubernetes' words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct DecodeError(pub(crate) String);

impl DocumentValue {
    /// The name of this type in Go's messages.
    pub(crate) fn go_type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List => "array",
            Self::Object(_) => "object",
        }
    }

    /// The members of an object; none for other values.
    pub(crate) fn object_members(&self) -> &[(String, Self)] {
        match self {
            Self::Object(members) => members,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List => &[],
        }
    }
}

/// Reports whether a member is kept. As in Kubernetes, the case of `kind` and `apiVersion` does not matter.
pub(crate) fn is_needed_member(name: &str, depth: usize) -> bool {
    depth < DEPTH_MAX
        && (KEPT_NAMES.contains(&name)
            || name.eq_ignore_ascii_case("kind")
            || name.eq_ignore_ascii_case("apiVersion"))
}

fn parse_json_document(text: &str) -> Result<DocumentValue, DecodeError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let node = DocumentReader(0)
        .deserialize(&mut deserializer)
        .map_err(|error| DecodeError(json_syntax_message(text, &error)))?;
    match deserializer.end() {
        Ok(()) => Ok(node),
        Err(error) => {
            let found = char_at_error(text, &error);
            Err(DecodeError(unknown_type_message(&format!(
                "invalid character {found:?} after top-level value"
            ))))
        }
    }
}

fn json_syntax_message(text: &str, error: &serde_json::Error) -> String {
    if error.is_eof() {
        return unknown_type_message("unexpected end of JSON input");
    }
    let found = char_at_error(text, error);
    unknown_type_message(&format!("invalid character {found:?} looking for beginning of value"))
}

/// The message about a document whose type cannot be read.
pub(crate) fn unknown_type_message(cause: &str) -> String {
    format!("couldn't get version/kind; json parse error: {cause}")
}

fn char_at_error(text: &str, error: &serde_json::Error) -> char {
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let at = line.floor_char_boundary(error.column().saturating_sub(1));
    line.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('\n')
}

/// Reads a value at this depth.
struct DocumentReader(usize);

impl<'de> DeserializeSeed<'de> for DocumentReader {
    type Value = DocumentValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<DocumentValue, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DocumentReader {
    type Value = DocumentValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Null)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Bool(truth))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Number(Some(number)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Number(i64::try_from(number).ok()))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Number(None))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<DocumentValue, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(DocumentValue::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DocumentValue, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if is_needed_member(&name, self.0) {
                members.push((name, map.next_value_seed(Self(self.0 + 1))?));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(DocumentValue::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> DocumentValue {
        DocumentValue::Text(text.to_owned())
    }

    #[test]
    fn known_members_are_kept_in_order() {
        let node = parse_response_document(
            r#" {"kind":"K","x":[1,{"kind":2}],"status":{"allowed":1,"allowed":null}}"#,
        );
        let status = vec![
            ("allowed".to_owned(), DocumentValue::Number(Some(1))),
            ("allowed".to_owned(), DocumentValue::Null),
        ];
        let members = vec![
            ("kind".to_owned(), text("K")),
            ("status".to_owned(), DocumentValue::Object(status)),
        ];
        assert_eq!(node, Ok(DocumentValue::Object(members)));
    }

    /// Members that are not read take no memory.
    #[test]
    fn depth_and_unknown_members_are_dropped() {
        let deep = format!("{}1{}", r#"{"status":"#.repeat(100), "}".repeat(100));
        let mut depth = 0;
        let mut node = &parse_response_document(&deep).unwrap();
        while let [(_, inner)] = node.object_members() {
            node = inner;
            depth += 1;
        }
        assert_eq!(depth, DEPTH_MAX);
        let wide = format!(r#"{{"a":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(parse_response_document(&wide), Ok(DocumentValue::Object(vec![])));
    }

    #[test]
    fn a_byte_order_mark_is_ignored() {
        assert_eq!(parse_response_document("\u{feff}{}"), Ok(DocumentValue::Object(vec![])));
        assert_eq!(
            parse_response_document("\u{feff}status: {}"),
            parse_response_document("status: {}")
        );
    }

    #[test]
    fn faults_are_told_as_go_tells_them() {
        for (source, want) in [
            (r#"{"a":1"#, "unexpected end of JSON input"),
            (r#"{"kind"#, "unexpected end of JSON input"),
            ("{} x", "invalid character 'x' after top-level value"),
            (r#"{"a":x}"#, "invalid character 'x' looking for beginning of value"),
        ] {
            let want = format!("couldn't get version/kind; json parse error: {want}");
            assert_eq!(parse_response_document(source), Err(DecodeError(want)), "{source}");
        }
    }
}
