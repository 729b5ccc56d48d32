//! Strict JSON parser that records the span of every key and value.
//!
//! Messages equal those of Go's decoder. Unlike Go, this parser limits nesting and the number of
//! values.
//!
//! Two other crates read JSON, each for another purpose. `codec` parses request bodies: it needs no
//! positions, accepts deeper nesting, keeps the value of every field and only lists duplicate fields, and
//! must be fast. `authz-webhook` reads answers of webhooks: it keeps a dozen known members of a body that
//! may be megabytes long and drops the rest. A file here is small, and each fault must name its line and
//! column.

use crate::node::{Entry, NESTING_MAX, NODES_MAX, Node, SpannedText, Value};
use crate::source::Span;

/// A syntax error in JSON text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    /// Go's message, such as `invalid character 'x' after top-level value`.
    pub message: String,
    /// The bytes at which the parser stopped.
    pub span: Span,
}

/// Reads one value; nothing but white space may surround it.
pub fn parse_json(text: &str) -> Result<Node, JsonError> {
    let mut reader = JsonReader::new(text, 0);
    let node = reader.read_value()?;
    reader.skip_whitespace();
    match reader.peek_byte() {
        None => Ok(node),
        Some(_) => Err(reader.unexpected_character_error("after top-level value")),
    }
}

/// A value whose member `items` is known to be well-formed, but not read yet.
#[derive(Debug)]
pub struct JsonWithUnreadItems {
    /// The value, with an empty list for `items`.
    pub root_node: Node,
    /// Offset of the bracket that opens the last list named `items`.
    pub items_list_offset: Option<usize>,
}

/// Reads values one after the other, as `kubectl` writes and accepts them: white space or lines
/// `---` may separate them. The iterator ends after the first error.
///
/// A dump of a cluster is one value, a list of all its objects, whose tree would need many times
/// the size of the file in memory. So [`read_json_items`] reads the items one by one and applies
/// the limits to each.
pub fn read_json_with_unread_items(
    text: &str,
) -> impl Iterator<Item = Result<JsonWithUnreadItems, JsonError>> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let mut reader = JsonReader::new(text, next.take()?);
        reader.skip_separators();
        reader.peek_byte()?;
        let outline = reader.read_value_without_items();
        if outline.is_ok() {
            next = Some(reader.at);
        }
        Some(outline)
    })
}

/// Reads the items of the list whose bracket is at `start`. The iterator ends after the first error.
pub fn read_json_items(text: &str, start: usize) -> impl Iterator<Item = Result<Node, JsonError>> {
    // The first item follows the bracket, and every later item follows a comma.
    let mut next = Some(start + 1);
    std::iter::from_fn(move || {
        let mut reader = JsonReader::new(text, next.take()?);
        reader.skip_whitespace();
        if reader.peek_byte() == Some(b']') {
            return None;
        }
        let item = reader.read_value();
        reader.skip_whitespace();
        if item.is_ok() && reader.skip_expected_byte(b',') {
            next = Some(reader.at);
        }
        Some(item)
    })
}

struct JsonReader<'t> {
    text: &'t str,
    /// The offset of the next byte to read. INVARIANT: a character boundary.
    at: usize,
    nesting_depth: usize,
    n_nodes: usize,
    /// Whether the parser checks syntax only. Then it neither builds nor counts values.
    only_checks_syntax: bool,
    /// Whether the parser skips the member `items` of the outermost object, if that is a list.
    skips_items: bool,
    /// Offset of the bracket that opens the last skipped list.
    items_list_offset: Option<usize>,
}

impl<'t> JsonReader<'t> {
    fn new(text: &'t str, at: usize) -> Self {
        Self {
            text,
            at,
            nesting_depth: 0,
            n_nodes: 0,
            only_checks_syntax: false,
            skips_items: false,
            items_list_offset: None,
        }
    }

    fn read_value_without_items(&mut self) -> Result<JsonWithUnreadItems, JsonError> {
        self.skips_items = true;
        Ok(JsonWithUnreadItems {
            root_node: self.read_value()?,
            items_list_offset: self.items_list_offset,
        })
    }

    fn read_value(&mut self) -> Result<Node, JsonError> {
        self.skip_whitespace();
        self.n_nodes += usize::from(!self.only_checks_syntax);
        if self.n_nodes > NODES_MAX {
            return Err(self
                .error_at_current_offset(format!("document holds more than {NODES_MAX} values")));
        }
        let start = self.at;
        let value = match self.peek_byte() {
            Some(b'{') => self.read_nested_value(Self::read_object)?,
            Some(b'[') => self.read_nested_value(Self::read_list)?,
            Some(b'"') => Value::Text(self.read_string()?),
            Some(b't') => self.read_literal("true", Value::Bool(true))?,
            Some(b'f') => self.read_literal("false", Value::Bool(false))?,
            Some(b'n') => self.read_literal("null", Value::Null)?,
            Some(b'-' | b'0'..=b'9') => self.read_number()?,
            _ => return Err(self.unexpected_character_error("looking for beginning of value")),
        };
        Ok(Node { span: Span::new(start, self.at), value, has_yaml_tag: false })
    }

    fn read_nested_value(
        &mut self,
        read: fn(&mut Self) -> Result<Value, JsonError>,
    ) -> Result<Value, JsonError> {
        if self.nesting_depth >= NESTING_MAX {
            return Err(
                self.error_at_current_offset(format!("exceeded max depth of {NESTING_MAX}"))
            );
        }
        self.nesting_depth += 1;
        self.at += 1;
        let value = read(self);
        self.nesting_depth -= 1;
        value
    }

    fn read_object(&mut self) -> Result<Value, JsonError> {
        let mut entries = Vec::new();
        self.skip_whitespace();
        if self.skip_expected_byte(b'}') {
            return Ok(Value::Object(entries));
        }
        loop {
            self.skip_whitespace();
            if self.peek_byte() != Some(b'"') {
                return Err(
                    self.unexpected_character_error("looking for beginning of object key string")
                );
            }
            let start = self.at;
            let key = self.read_string()?.into_string();
            let key_span = Span::new(start, self.at);
            self.skip_whitespace();
            if !self.skip_expected_byte(b':') {
                return Err(self.unexpected_character_error("after object key"));
            }
            let value = self.read_member_value(&key)?;
            if !self.only_checks_syntax {
                entries.push(Entry { key, key_span, value });
            }
            self.skip_whitespace();
            if self.skip_expected_byte(b'}') {
                return Ok(Value::Object(entries));
            }
            if !self.skip_expected_byte(b',') {
                return Err(self.unexpected_character_error("after object key:value pair"));
            }
        }
    }

    /// Reads the value of a member. In an outline, the list `items` of the outermost object is skipped.
    fn read_member_value(&mut self, key: &str) -> Result<Node, JsonError> {
        self.skip_whitespace();
        let is_outermost = self.nesting_depth == 1;
        if !(self.skips_items && is_outermost && key == "items" && self.peek_byte() == Some(b'[')) {
            return self.read_value();
        }
        self.items_list_offset = Some(self.at);
        self.only_checks_syntax = true;
        let skipped = self.read_value();
        self.only_checks_syntax = false;
        skipped
    }

    fn read_list(&mut self) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        self.skip_whitespace();
        if self.skip_expected_byte(b']') {
            return Ok(Value::List(items));
        }
        loop {
            let item = self.read_value()?;
            if !self.only_checks_syntax {
                items.push(item);
            }
            self.skip_whitespace();
            if self.skip_expected_byte(b']') {
                return Ok(Value::List(items));
            }
            if !self.skip_expected_byte(b',') {
                return Err(self.unexpected_character_error("after array element"));
            }
        }
    }

    fn read_string(&mut self) -> Result<SpannedText, JsonError> {
        self.at += 1;
        let mut text = SpannedText::default();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..b' ');
            let n_plain = rest.bytes().take_while(is_plain).count();
            let start = self.at;
            self.at += n_plain;
            if !self.only_checks_syntax {
                text.push_str(rest.get(..n_plain).unwrap_or_default(), start);
            }
            match self.peek_byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    let start = self.at;
                    let c = self.read_escape()?;
                    if !self.only_checks_syntax {
                        text.push(c, start);
                    }
                }
                _ => return Err(self.unexpected_character_error("in string literal")),
            }
        }
    }

    /// Reads an escape. A surrogate without its partner becomes U+FFFD, as in Go.
    fn read_escape(&mut self) -> Result<char, JsonError> {
        self.at += 1;
        let c = match self.peek_byte() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.read_unicode_escape();
            }
            _ => return Err(self.unexpected_character_error("in string escape code")),
        };
        self.at += 1;
        Ok(c)
    }

    fn read_unicode_escape(&mut self) -> Result<char, JsonError> {
        let unit = self.read_utf16_unit()?;
        if let Some(c) = char::from_u32(unit) {
            return Ok(c);
        }
        let before = self.at;
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) {
            self.at += 2;
            let partner = self.read_utf16_unit()?;
            if (0xD800..0xDC00).contains(&unit) && (0xDC00..0xE000).contains(&partner) {
                let code = 0x10000 + ((unit - 0xD800) << 10) + (partner - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            // The second escape is not a low surrogate, so the parser reads it again as a separate character.
            self.at = before;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn read_utf16_unit(&mut self) -> Result<u32, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek_byte().and_then(|byte| char::from(byte).to_digit(16));
            let digit = digit.ok_or_else(|| {
                self.unexpected_character_error("in \\u hexadecimal character escape")
            })?;
            unit = (unit << 4) | digit;
            self.at += 1;
        }
        Ok(unit)
    }

    fn read_literal(&mut self, word: &'static str, value: Value) -> Result<Value, JsonError> {
        for expected in word.bytes() {
            if self.peek_byte() != Some(expected) {
                let expected = char::from(expected);
                let context = format!("in literal {word} (expecting '{expected}')");
                return Err(self.unexpected_character_error(&context));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn read_number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        self.skip_expected_byte(b'-');
        if !self.skip_expected_byte(b'0') && !self.skip_digits() {
            return Err(self.unexpected_character_error("in numeric literal"));
        }
        if self.skip_expected_byte(b'.') && !self.skip_digits() {
            return Err(self.unexpected_character_error("after decimal point in numeric literal"));
        }
        if self.skip_expected_byte(b'e') || self.skip_expected_byte(b'E') {
            if !self.skip_expected_byte(b'+') {
                self.skip_expected_byte(b'-');
            }
            if !self.skip_digits() {
                return Err(self.unexpected_character_error("in exponent of numeric literal"));
            }
        }
        // No field of a known kind takes a number outside the range of a double, so zero replaces
        // it.
        let number = self.text.get(start..self.at).and_then(|text| text.parse().ok());
        Ok(Value::Number(number.unwrap_or_else(|| 0.into())))
    }

    fn skip_digits(&mut self) -> bool {
        let start = self.at;
        while self.peek_byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > start
    }

    fn peek_byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_expected_byte(&mut self, byte: u8) -> bool {
        let is_there = self.peek_byte() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek_byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Skips white space and lines of dashes.
    fn skip_separators(&mut self) {
        loop {
            self.skip_whitespace();
            let rest = self.text.get(self.at..).unwrap_or_default();
            match rest.strip_prefix("---") {
                Some(rest) if rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']) => {
                    self.at += 3;
                }
                _ => return,
            }
        }
    }

    fn error_at_current_offset(&self, message: String) -> JsonError {
        JsonError { message, span: Span::new(self.at, self.at) }
    }

    /// Builds the error about the character at the current offset.
    fn unexpected_character_error(&self, context: &str) -> JsonError {
        let Some(byte) = self.peek_byte() else {
            return self.error_at_current_offset("unexpected end of JSON input".to_owned());
        };
        let shown = match byte {
            b'\'' => r"'\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            byte => {
                let quoted = go_compat::quote(char::from(byte).encode_utf8(&mut [0; 4]));
                format!("'{}'", quoted.trim_matches('"'))
            }
        };
        self.error_at_current_offset(format!("invalid character {shown} {context}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str, message: &str) {
        assert_eq!(
            parse_json(text).map_err(|error| error.message),
            Err(message.to_owned()),
            "{text}"
        );
    }

    #[test]
    fn messages_match_go() {
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
    fn strings_map_to_file_offsets() {
        let node = parse_json(r#"{"k": "a\u00e4\ud83d\ude00\ud800b"}"#).unwrap();
        let Value::Object(entries) = node.value else { panic!("an object") };
        assert_eq!(entries[0].key_span, Span::new(1, 4));
        let Value::Text(text) = &entries[0].value.value else { panic!("a text") };
        assert_eq!(text.as_str(), "aä😀\u{fffd}b");
        assert_eq!(text.to_file_offset(text.as_str().len() - 1), Some(32));
    }

    #[test]
    fn list_items_are_read_one_by_one() {
        let text = "{\"items\": [ {\"a\": \"\\u0041\"} , [2], \"x\"], \"b\": {\"items\": [1]}}\n--- {}\r\n---";
        let outlines: Vec<_> = read_json_with_unread_items(text).map(Result::unwrap).collect();
        assert_eq!(outlines.len(), 2);
        assert_eq!(outlines[1].items_list_offset, None);
        let mut whole = parse_json(text.lines().next().unwrap()).unwrap();
        let Value::Object(entries) = &mut whole.value else { panic!("an object") };
        let Value::List(list) = &mut entries[0].value.value else { panic!("a list") };
        let list = std::mem::take(list);
        assert_eq!(outlines[0].root_node, whole);
        let start = outlines[0].items_list_offset.unwrap();
        assert_eq!(read_json_items(text, start).collect::<Result<Vec<_>, _>>(), Ok(list));
        assert_eq!(read_json_items("[ ]", 0).count(), 0);
    }

    #[test]
    fn skipped_values_are_checked_strictly() {
        for text in ["{\"items\": [tru]}", "{\"items\": [\"\n\"]}", "{\"items\": [1}", "{} }"] {
            assert!(read_json_with_unread_items(text).any(|outline| outline.is_err()), "{text}");
        }
        assert_eq!(read_json_with_unread_items("{} } {}").count(), 2, "nothing follows an error");
        let deep = format!("{{\"items\": {}{}}}", "[".repeat(NESTING_MAX), "]".repeat(NESTING_MAX));
        assert!(read_json_with_unread_items(&deep).any(|outline| outline.is_err()));
    }

    #[test]
    fn the_value_limit_applies_to_each_item() {
        let item = |n: usize| format!("[{}1]", "1,".repeat(n - 1));
        let list = |n: usize| format!("{{\"items\": [{0}, {0}, {0}]}}", item(n));
        let read = |text: &str| {
            let start = read_json_with_unread_items(text)
                .next()
                .unwrap()
                .unwrap()
                .items_list_offset
                .unwrap();
            read_json_items(text, start).map(|item| item.is_ok()).collect::<Vec<_>>()
        };
        assert_eq!(read(&list(NODES_MAX - 1)), [true, true, true]);
        assert_eq!(read(&list(NODES_MAX)), [false]);
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse_json(&nested(NESTING_MAX)).is_ok());
        fails(&nested(NESTING_MAX + 1), "exceeded max depth of 64");
        fails(&"[".repeat(1 << 20), "exceeded max depth of 64");
    }

    #[test]
    fn the_number_of_values_is_limited() {
        let wide = |n: usize| format!("[{}1]", "1,".repeat(n - 1));
        assert!(parse_json(&wide(NODES_MAX - 1)).is_ok());
        fails(&wide(NODES_MAX), "document holds more than 100000 values");
    }
}
