//! Strict JSON with the place of every key and value.
//!
//! Messages are those of Go's decoder. Unlike it, nesting and the number of values are limited.

use crate::document::{Entry, NESTING_MAX, NODES_MAX, Node, Text, Value};
use crate::source::Span;

/// Why a text is not JSON.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonError {
    /// Go's words, such as `invalid character 'x' after top-level value`.
    pub(crate) message: String,
    pub(crate) span: Span,
}

/// Reads one value; nothing but white space may surround it.
pub(crate) fn read(text: &str) -> Result<Node, JsonError> {
    let mut reader = Reader { text, at: 0, depth: 0, n_nodes: 0 };
    let node = reader.value()?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(node),
        Some(_) => Err(reader.unexpected("after top-level value")),
    }
}

struct Reader<'t> {
    text: &'t str,
    /// INVARIANT: a character boundary.
    at: usize,
    depth: usize,
    n_nodes: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Node, JsonError> {
        self.skip_space();
        self.n_nodes += 1;
        if self.n_nodes > NODES_MAX {
            return Err(self.error(format!("document holds more than {NODES_MAX} values")));
        }
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b't') => self.literal("true", Value::Bool(true))?,
            Some(b'f') => self.literal("false", Value::Bool(false))?,
            Some(b'n') => self.literal("null", Value::Null)?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => return Err(self.unexpected("looking for beginning of value")),
        };
        Ok(Node { span: Span::new(start, self.at), value, is_tagged: false })
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<Value, JsonError>,
    ) -> Result<Value, JsonError> {
        if self.depth >= NESTING_MAX {
            return Err(self.error(format!("exceeded max depth of {NESTING_MAX}")));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, JsonError> {
        let mut entries = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Value::Object(entries));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let start = self.at;
            let key = self.string()?.as_str().to_owned();
            let key_span = Span::new(start, self.at);
            self.skip_space();
            if !self.take(b':') {
                return Err(self.unexpected("after object key"));
            }
            let value = self.value()?;
            entries.push(Entry { key, key_span, value });
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Object(entries));
            }
            if !self.take(b',') {
                return Err(self.unexpected("after object key:value pair"));
            }
        }
    }

    fn list(&mut self) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::List(items));
            }
            if !self.take(b',') {
                return Err(self.unexpected("after array element"));
            }
        }
    }

    fn string(&mut self) -> Result<Text, JsonError> {
        self.at += 1;
        let mut text = Text::default();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            match rest.chars().next() {
                Some('"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some('\\') => {
                    let start = self.at;
                    let c = self.escape()?;
                    text.push(c, start);
                }
                Some(c) if c >= ' ' => {
                    text.push(c, self.at);
                    self.at += c.len_utf8();
                }
                _ => return Err(self.unexpected("in string literal")),
            }
        }
    }

    /// Reads an escape. A surrogate without its partner becomes U+FFFD, as in Go.
    fn escape(&mut self) -> Result<char, JsonError> {
        self.at += 1;
        let c = match self.peek() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape();
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        Ok(c)
    }

    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let unit = self.hex_unit()?;
        if let Some(c) = char::from_u32(unit) {
            return Ok(c);
        }
        let before = self.at;
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) {
            self.at += 2;
            let partner = self.hex_unit()?;
            if (0xD800..0xDC00).contains(&unit) && (0xDC00..0xE000).contains(&partner) {
                let code = 0x10000 + ((unit - 0xD800) << 10) + (partner - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            // The second escape stands for itself.
            self.at = before;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex_unit(&mut self) -> Result<u32, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let digit =
                digit.ok_or_else(|| self.unexpected("in \\u hexadecimal character escape"))?;
            unit = (unit << 4) | digit;
            self.at += 1;
        }
        Ok(unit)
    }

    fn literal(&mut self, word: &'static str, value: Value) -> Result<Value, JsonError> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                let expected = char::from(expected);
                let place = format!("in literal {word} (expecting '{expected}')");
                return Err(self.unexpected(&place));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        self.take(b'-');
        if !self.take(b'0') && !self.skip_digits() {
            return Err(self.unexpected("in numeric literal"));
        }
        if self.take(b'.') && !self.skip_digits() {
            return Err(self.unexpected("after decimal point in numeric literal"));
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            if !self.skip_digits() {
                return Err(self.unexpected("in exponent of numeric literal"));
            }
        }
        Ok(Value::Number)
    }

    fn skip_digits(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > start
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn error(&self, message: String) -> JsonError {
        JsonError { message, span: Span::new(self.at, self.at) }
    }

    /// An error about the character at hand.
    fn unexpected(&self, place: &str) -> JsonError {
        let Some(byte) = self.peek() else {
            return self.error("unexpected end of JSON input".to_owned());
        };
        let shown = match byte {
            b'\'' => r"'\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            byte => {
                let quoted = gotext::quote(char::from(byte).encode_utf8(&mut [0; 4]));
                format!("'{}'", quoted.trim_matches('"'))
            }
        };
        self.error(format!("invalid character {shown} {place}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str, message: &str) {
        assert_eq!(read(text).map_err(|error| error.message), Err(message.to_owned()), "{text}");
    }

    #[test]
    fn messages_are_those_of_go() {
        fails("", "unexpected end of JSON input");
        fails("{\"a\":1", "unexpected end of JSON input");
        fails("{}x", "invalid character 'x' after top-level value");
        fails("{a:1}", "invalid character 'a' looking for beginning of object key string");
        fails("{'a':1}", r"invalid character '\'' looking for beginning of object key string");
        fails("{\"a\" 1}", "invalid character '1' after object key");
        fails("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair");
        fails("{\"a\":1,}", "invalid character '}' looking for beginning of object key string");
        fails("[1,]", "invalid character ']' looking for beginning of value");
        fails("[1 2]", "invalid character '2' after array element");
        fails("\"\n\"", r"invalid character '\n' in string literal");
        fails(r#""\x""#, "invalid character 'x' in string escape code");
        fails(r#""\u00g0""#, r"invalid character 'g' in \u hexadecimal character escape");
        fails("nul", "unexpected end of JSON input");
        fails("nuls", "invalid character 's' in literal null (expecting 'l')");
        fails("-x", "invalid character 'x' in numeric literal");
        fails("1.x", "invalid character 'x' after decimal point in numeric literal");
        fails("1ex", "invalid character 'x' in exponent of numeric literal");
        fails("01", "invalid character '1' after top-level value");
    }

    #[test]
    fn strings_keep_their_places() {
        let node = read(r#"{"k": "a\u00e4\ud83d\ude00\ud800b"}"#).unwrap();
        let Value::Object(entries) = node.value else { panic!("an object") };
        assert_eq!(entries[0].key_span, Span::new(1, 4));
        let Value::Text(text) = &entries[0].value.value else { panic!("a text") };
        assert_eq!(text.as_str(), "aä😀\u{fffd}b");
        assert_eq!(text.file_offset(text.as_str().len() - 1), Some(32));
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(read(&nested(NESTING_MAX)).is_ok());
        fails(&nested(NESTING_MAX + 1), "exceeded max depth of 64");
        fails(&"[".repeat(1 << 20), "exceeded max depth of 64");
    }

    #[test]
    fn values_are_counted() {
        let wide = |n: usize| format!("[{}1]", "1,".repeat(n - 1));
        assert!(read(&wide(NODES_MAX - 1)).is_ok());
        fails(&wide(NODES_MAX), "document holds more than 100000 values");
    }
}
