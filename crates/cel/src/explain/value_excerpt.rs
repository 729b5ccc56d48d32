//! Short text forms of values, written as literals of the expression language.

use super::SHOWN_BYTES_MAX;
use crate::library::format_double;
use crate::value::{OpaqueValue, Value};

/// The mark that replaces the rest of a text that is cut.
const ELLIPSIS: &str = "...";

/// The text of a value, cut at [`SHOWN_BYTES_MAX`].
pub(super) fn abbreviate_value(value: &Value<'_>) -> String {
    let mut text = String::new();
    append_value_excerpt(value, &mut text);
    abbreviate_text(&text)
}

/// The text, cut at [`SHOWN_BYTES_MAX`].
pub(super) fn abbreviate_text(text: &str) -> String {
    match text.get(..text.floor_char_boundary(SHOWN_BYTES_MAX)) {
        Some(start) if start.len() < text.len() => format!("{start}{ELLIPSIS}"),
        _ => text.to_owned(),
    }
}

/// Appends a value and stops at the limit. Values can share elements, so the full text can be huge.
fn append_value_excerpt(value: &Value<'_>, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(b) => text.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => text.push_str(&i.to_string()),
        Value::Uint(u) => text.push_str(&format!("{u}u")),
        Value::Double(d) => text.push_str(&format_double(*d)),
        Value::String(string) => text.push_str(&go_compat::quote(leading_excerpt(string.as_str()))),
        Value::Bytes(bytes) => {
            let bytes = bytes.as_slice();
            let start = bytes.get(..SHOWN_BYTES_MAX).unwrap_or(bytes);
            text.push_str(&format!("b{}", go_compat::quote_bytes(start)));
        }
        Value::Duration(nanos) => {
            text.push_str(&format!("duration(\"{}\")", go_compat::format_duration(*nanos)));
        }
        Value::Timestamp(time) => text.push_str(&format!("timestamp(\"{time}\")")),
        Value::Type(name) => text.push_str(name.0),
        Value::Optional(None) => text.push_str("optional.none()"),
        Value::Optional(Some(inner)) => {
            text.push_str("optional.of(");
            append_value_excerpt(inner, text);
            text.push(')');
        }
        Value::List(list) => {
            text.push('[');
            append_comma_separated(text, list.iter(), |text, item| {
                append_value_excerpt(&item, text)
            });
            text.push(']');
        }
        Value::Map(map) => {
            text.push('{');
            append_comma_separated(text, map.iter(), |text, (key, value)| {
                append_value_excerpt(&key, text);
                text.push_str(": ");
                append_value_excerpt(&value, text);
            });
            text.push('}');
        }
        Value::Opaque(opaque) => append_opaque_excerpt(opaque, text),
    }
}

fn append_opaque_excerpt(opaque: &OpaqueValue, text: &mut String) {
    match opaque {
        OpaqueValue::Ip(ip) => text.push_str(&format!("ip(\"{ip}\")")),
        OpaqueValue::Cidr(cidr) => text.push_str(&format!("cidr(\"{cidr}\")")),
        OpaqueValue::Url(url) => {
            text.push_str(&format!("url({})", go_compat::quote(leading_excerpt(&url.to_string()))));
        }
        OpaqueValue::Authorization(_)
        | OpaqueValue::Format(_)
        | OpaqueValue::Quantity(_)
        | OpaqueValue::Semver(_) => text.push_str(opaque.type_name()),
    }
}

/// Returns a prefix slightly longer than the limit, so that the caller still cuts it and adds the
/// ellipsis.
fn leading_excerpt(text: &str) -> &str {
    text.get(..text.ceil_char_boundary(SHOWN_BYTES_MAX)).unwrap_or(text)
}

fn append_comma_separated<T>(
    text: &mut String,
    items: impl Iterator<Item = T>,
    append_item: impl Fn(&mut String, T),
) {
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        if text.len() > SHOWN_BYTES_MAX {
            return;
        }
        append_item(text, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Bytes, Map, OwnedMap};

    #[test]
    fn values_are_written_as_literals() {
        let mut map = OwnedMap::new();
        assert!(map.insert(Value::borrowed_string("a"), Value::Uint(1)));
        for (value, expected) in [
            (Value::Null, "null"),
            (Value::Double(1.5), "1.5"),
            (Value::borrowed_string("a \"b\"\n"), r#""a \"b\"\n""#),
            (Value::Bytes(Bytes::Borrowed(b"ab")), r#"b"ab""#),
            (Value::Duration(90_000_000_000), r#"duration("1m30s")"#),
            (
                Value::owned_list_value(vec![Value::Int(1), Value::optional_none()]),
                "[1, optional.none()]",
            ),
            (Value::optional_some(Value::Bool(true)), "optional.of(true)"),
            (Value::Map(Map::from_owned_map(map)), r#"{"a": 1u}"#),
            (
                Value::Timestamp("2020-01-01T00:00:00Z".parse().unwrap()),
                r#"timestamp("2020-01-01T00:00:00Z")"#,
            ),
            (
                Value::opaque_value(OpaqueValue::Ip("10.0.0.1".parse().unwrap())),
                r#"ip("10.0.0.1")"#,
            ),
        ] {
            assert_eq!(abbreviate_value(&value), expected);
        }
    }

    #[test]
    fn long_values_are_truncated() {
        let mut level = Value::borrowed_string("é");
        for _ in 0..40 {
            level = Value::owned_list_value(vec![level.clone(), level]);
        }
        for long in [
            level,
            Value::borrowed_string(&"é".repeat(SHOWN_BYTES_MAX)),
            Value::owned_list_value(vec![Value::Int(1); 100_000]),
        ] {
            let text = abbreviate_value(&long);
            assert!(text.len() <= SHOWN_BYTES_MAX + ELLIPSIS.len(), "{text}");
            assert!(text.ends_with(ELLIPSIS), "{text}");
        }
        let fits = "x".repeat(SHOWN_BYTES_MAX - 2);
        assert_eq!(abbreviate_value(&Value::borrowed_string(&fits)), format!("\"{fits}\""));
        let too_long = "x".repeat(SHOWN_BYTES_MAX - 1);
        assert!(abbreviate_value(&Value::borrowed_string(&too_long)).ends_with(ELLIPSIS));
    }
}
