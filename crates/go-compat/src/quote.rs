//! Double-quoted string literals, as Go's `%q` verb writes them.

use crate::printable::is_go_printable;

/// Writes `text` as a double-quoted Go string literal.
///
/// ```
/// assert_eq!(go_compat::quote("a\"b\n\u{200b}日"), r#""a\"b\n\u200b日""#);
/// ```
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    push_quote_escaped(&mut out, text);
    out.push('"');
    out
}

/// Writes bytes as a double-quoted Go string literal; each byte that is not part of well-formed
/// UTF-8 becomes `\xNN`.
///
/// ```
/// assert_eq!(go_compat::quote_bytes(b"a\xff\n"), r#""a\xff\n""#);
/// ```
pub fn quote_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        push_quote_escaped(&mut out, chunk.valid());
        for &byte in chunk.invalid() {
            push_hex_escape(&mut out, 'x', u32::from(byte), 2);
        }
    }
    out.push('"');
    out
}

fn push_quote_escaped(out: &mut String, text: &str) {
    // Most texts need no escape.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        return out.push_str(text);
    }
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_go_printable(c) => out.push(c),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            '\0'..' ' | '\x7f' => push_hex_escape(out, 'x', u32::from(c), 2),
            '\0'..'\u{10000}' => push_hex_escape(out, 'u', u32::from(c), 4),
            _ => push_hex_escape(out, 'U', u32::from(c), 8),
        }
    }
}

/// Appends `\`, the letter, and `n_digits` lower-case hexadecimal digits.
pub(crate) fn push_hex_escape(out: &mut String, letter: char, value: u32, n_digits: u32) {
    out.extend(['\\', letter]);
    for digit in (0..n_digits).rev() {
        out.extend(char::from_digit((value >> (4 * digit)) & 0xf, 16));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        for (text, want) in [
            ("", r#""""#),
            ("plain text", r#""plain text""#),
            ("'single' \"double\" \\", r#""'single' \"double\" \\""#),
            ("\x07\x08\x0c\n\r\t\x0b\0\x1b\x7f", r#""\a\b\f\n\r\t\v\x00\x1b\x7f""#),
            ("\u{80}\u{a0}\u{ad}\u{2028}", r#""\u0080\u00a0\u00ad\u2028""#),
            ("日本 é 😀 \u{fffd}", "\"日本 é 😀 \u{fffd}\""),
            ("\u{e0001}\u{10ffff}", r#""\U000e0001\U0010ffff""#),
        ] {
            assert_eq!(quote(text), want);
            assert_eq!(quote_bytes(text.as_bytes()), want);
        }
    }

    #[test]
    fn broken_utf8_becomes_hexadecimal_bytes() {
        for (bytes, want) in [
            (&b"\xff"[..], r#""\xff""#),
            (b"a\xe6\x97b", r#""a\xe6\x97b""#),
            (b"\xed\xa0\x80", r#""\xed\xa0\x80""#),
            (b"\xe6\x97\xa5\xe6", "\"日\\xe6\""),
        ] {
            assert_eq!(quote_bytes(bytes), want);
        }
    }
}
