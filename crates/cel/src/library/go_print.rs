//! Writes values like Go's `%v`. Some error messages contain such values.

use super::format_double;
use crate::value::{OpaqueValue, TypeName, Value};

/// The maximum number of bytes of a value that a message shows. Values can share elements, so the
/// full text of a value can be too large for the memory.
const PRINTED_BYTES_MAX: usize = 10_000;

/// The text of a value, cut off at [`PRINTED_BYTES_MAX`].
pub(crate) fn print_as_go(value: &Value<'_>) -> String {
    let mut text = String::new();
    append_as_go(value, &mut text);
    if text.len() > PRINTED_BYTES_MAX {
        text.truncate(text.floor_char_boundary(PRINTED_BYTES_MAX));
    }
    text
}

fn append_as_go(value: &Value<'_>, text: &mut String) {
    if text.len() > PRINTED_BYTES_MAX {
        return;
    }
    match value {
        // Go prints the number of the enumeration value `NULL_VALUE`.
        Value::Null => text.push('0'),
        Value::Bytes(bytes) => {
            let items = bytes.as_slice().iter().map(|byte| byte.to_string());
            text.push('[');
            append_separated(text, " ", items, |text, byte| text.push_str(&byte));
            text.push(']');
        }
        Value::List(list) => {
            text.push('[');
            append_separated(text, ", ", list.iter(), |text, item| append_as_go(&item, text));
            text.push(']');
        }
        Value::Map(map) => {
            text.push('{');
            append_separated(text, ", ", map.iter(), |text, (key, value)| {
                append_as_go(&key, text);
                text.push_str(": ");
                append_as_go(&value, text);
            });
            text.push('}');
        }
        Value::Timestamp(time) => {
            text.push_str(&time.to_string().replace('T', " ").replace('Z', " +0000 UTC"));
        }
        Value::Type(TypeName("list")) => text.push_str("list(dyn)"),
        Value::Type(TypeName("map")) => text.push_str("map(dyn, dyn)"),
        Value::Type(TypeName("optional_type")) => text.push_str("optional_type(dyn)"),
        Value::Optional(None) => text.push_str("optional.none()"),
        Value::Optional(Some(inner)) => {
            text.push_str("optional(");
            append_as_go(inner, text);
            text.push(')');
        }
        Value::Opaque(opaque) => append_opaque_as_go(opaque, text),
        Value::Bool(b) => text.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => text.push_str(&i.to_string()),
        Value::Uint(u) => text.push_str(&u.to_string()),
        Value::Double(d) => text.push_str(&format_double(*d)),
        Value::String(string) => text.push_str(string.as_str()),
        Value::Duration(nanos) => text.push_str(&go_compat::format_duration(*nanos)),
        Value::Type(name) => text.push_str(name.0),
    }
}

fn append_opaque_as_go(opaque: &OpaqueValue, text: &mut String) {
    match opaque {
        OpaqueValue::Ip(ip) => text.push_str(&ip.to_string()),
        OpaqueValue::Cidr(cidr) => text.push_str(&cidr.to_string()),
        OpaqueValue::Url(url) => text.push_str(&url.to_string()),
        OpaqueValue::Authorization(_)
        | OpaqueValue::Format(_)
        | OpaqueValue::Quantity(_)
        | OpaqueValue::Semver(_) => text.push_str(opaque.type_name()),
    }
}

fn append_separated<T>(
    text: &mut String,
    separator: &str,
    items: impl Iterator<Item = T>,
    append_item: impl Fn(&mut String, T),
) {
    for (index, item) in items.enumerate() {
        if text.len() > PRINTED_BYTES_MAX {
            return;
        }
        if index > 0 {
            text.push_str(separator);
        }
        append_item(text, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Bytes, Map, OwnedMap};

    #[test]
    fn values_are_printed_like_go() {
        let mut map = OwnedMap::new();
        assert!(map.insert(Value::borrowed_string("a"), Value::Double(1e8)));
        for (value, expected) in [
            (Value::Null, "0"),
            (Value::Double(1.5), "1.5"),
            (Value::borrowed_string("a b"), "a b"),
            (Value::Bytes(Bytes::Borrowed(b"ab")), "[97 98]"),
            (Value::Duration(3_600_000_000_000), "1h0m0s"),
            (Value::Type(TypeName("int")), "int"),
            (Value::Type(TypeName("list")), "list(dyn)"),
            (
                Value::owned_list_value(vec![Value::Int(1), Value::optional_none()]),
                "[1, optional.none()]",
            ),
            (Value::optional_some(Value::Bool(true)), "optional(true)"),
            (Value::Map(Map::from_owned_map(map)), "{a: 1e+08}"),
            (
                Value::Timestamp("2020-01-01T00:00:00Z".parse().unwrap()),
                "2020-01-01 00:00:00 +0000 UTC",
            ),
        ] {
            assert_eq!(print_as_go(&value), expected);
        }
    }

    #[test]
    fn long_values_are_truncated() {
        let mut level = Value::borrowed_string("é");
        for _ in 0..40 {
            level = Value::owned_list_value(vec![level.clone(), level]);
        }
        assert_eq!(print_as_go(&level).len(), PRINTED_BYTES_MAX);
    }
}
