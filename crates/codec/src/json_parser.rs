//! A JSON parser that reports duplicate fields.
//!
//! It uses an explicit stack, because a body may be nested deeper than the thread's stack allows in
//! a debug build, and because a map would hide duplicate fields. Strings with escapes and numbers
//! are parsed by `serde_json`.
//!
//! The crate `document` has another JSON parser, for files that people write: it records the position of
//! every value for error messages. Request bodies need no positions, and a tree with positions takes
//! several times the memory and would have to be converted, so requests do not use that parser.

use std::fmt;

use serde_json::{Map, Number, Value};

use crate::strict_finding::{StrictFinding, StrictFindings};
use crate::value_path::path_excerpt;

/// Upper bound on the nesting of a body.
///
/// Objects of Kubernetes are a few dozen levels deep. Most functions over trees recurse, so this
/// limit bounds their stacks.
pub const NESTING_MAX: usize = 512;

/// A value and its duplicate fields.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedJson {
    /// The value. The last of several duplicate fields counts.
    pub value: Value,
    /// The duplicate fields, in the order of the text.
    pub duplicate_fields: Vec<StrictFinding>,
}

/// The bytes are not JSON. Most texts are those of Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error_text}")]
pub struct JsonError {
    error_text: String,
}

/// Parses one value; only whitespace may surround it.
///
/// # Errors
///
/// The bytes are not JSON, not UTF-8, or nested too deeply.
pub fn parse_json(bytes: &[u8]) -> Result<ParsedJson, JsonError> {
    parse_json_with_nesting_limit(bytes, NESTING_MAX)
}

/// Parses one value with the given limit on nesting.
pub(crate) fn parse_json_with_nesting_limit(
    bytes: &[u8],
    nesting_max: usize,
) -> Result<ParsedJson, JsonError> {
    let (open, findings) = (Vec::new(), StrictFindings::default());
    let mut reader = JsonReader {
        json_bytes: bytes,
        byte_position: 0,
        nesting_max,
        open_collections: open,
        duplicate_fields: findings,
    };
    let value = reader.read_value()?;
    match reader.peek_token() {
        None => Ok(ParsedJson { value, duplicate_fields: reader.duplicate_fields.into_vec() }),
        Some(_) => Err(reader.invalid_character_error("after top-level value")),
    }
}

struct JsonReader<'b> {
    json_bytes: &'b [u8],
    byte_position: usize,
    nesting_max: usize,
    /// The collections that are not complete yet, outermost first.
    open_collections: Vec<OpenCollection>,
    duplicate_fields: StrictFindings,
}

/// A collection that is not complete yet.
enum OpenCollection {
    List(Vec<Value>),
    Object {
        members: Map<String, Value>,
        /// The name of the member whose value comes next.
        name: String,
    },
}

impl JsonError {
    /// The error of a value that is not an object.
    pub(crate) fn not_an_object_error() -> Self {
        Self { error_text: "a value that is not an object".to_owned() }
    }
}

impl JsonReader<'_> {
    /// Reads until the outermost value is complete.
    fn read_value(&mut self) -> Result<Value, JsonError> {
        loop {
            if let Some(value) = self.begin_value()?
                && let Some(root) = self.add_complete_value(value)?
            {
                return Ok(root);
            }
        }
    }

    /// Reads a scalar or an empty collection, or opens one that is not empty.
    fn begin_value(&mut self) -> Result<Option<Value>, JsonError> {
        match self.peek_token() {
            Some(b'[') => {
                self.consume_opening_bracket()?;
                if self.consume_byte(b']') {
                    return Ok(Some(Value::Array(Vec::new())));
                }
                self.open_collections.push(OpenCollection::List(Vec::new()));
                Ok(None)
            }
            Some(b'{') => {
                self.consume_opening_bracket()?;
                if self.consume_byte(b'}') {
                    return Ok(Some(Value::Object(Map::new())));
                }
                let name = self.read_member_name()?;
                self.open_collections.push(OpenCollection::Object { members: Map::new(), name });
                Ok(None)
            }
            Some(b'"') => self.read_string().map(|text| Some(Value::String(text))),
            Some(b'-' | b'0'..=b'9') => self.read_number().map(Some),
            Some(b't') => self.read_literal(b"true", Value::Bool(true)),
            Some(b'f') => self.read_literal(b"false", Value::Bool(false)),
            Some(b'n') => self.read_literal(b"null", Value::Null),
            _ => Err(self.invalid_character_error("looking for beginning of value")),
        }
    }

    /// Adds a complete value to its collection, and continues until another value begins. Returns
    /// the outermost value.
    fn add_complete_value(&mut self, mut value: Value) -> Result<Option<Value>, JsonError> {
        loop {
            self.record_duplicate_field();
            let closing = match self.open_collections.last_mut() {
                None => return Ok(Some(value)),
                Some(OpenCollection::List(items)) => {
                    items.push(value);
                    b']'
                }
                Some(OpenCollection::Object { members, name }) => {
                    members.insert(std::mem::take(name), value);
                    b'}'
                }
            };
            if self.consume_byte(b',') {
                if closing == b'}' {
                    let next = self.read_member_name()?;
                    if let Some(OpenCollection::Object { name, .. }) =
                        self.open_collections.last_mut()
                    {
                        *name = next;
                    }
                }
                return Ok(None);
            }
            if !self.consume_byte(closing) {
                return Err(self.invalid_character_error(match closing {
                    b'}' => "after object key:value pair",
                    _ => "after array element",
                }));
            }
            value = match self.open_collections.pop() {
                Some(OpenCollection::List(items)) => Value::Array(items),
                Some(OpenCollection::Object { members, .. }) => Value::Object(members),
                None => return Ok(None),
            };
        }
    }

    /// Records the current member as a duplicate if it is already set.
    fn record_duplicate_field(&mut self) {
        let Some(OpenCollection::Object { members, name }) = self.open_collections.last() else {
            return;
        };
        if !members.contains_key(name) || self.duplicate_fields.has_reached_findings_max() {
            return;
        }
        let path = fmt::from_fn(|f| {
            for (idx, open) in self.open_collections.iter().enumerate() {
                match open {
                    OpenCollection::List(items) => write!(f, "[{}]", items.len())?,
                    OpenCollection::Object { name, .. } if idx == 0 => f.write_str(name)?,
                    OpenCollection::Object { name, .. } => write!(f, ".{name}")?,
                }
            }
            Ok(())
        });
        let path = path_excerpt(&path);
        self.duplicate_fields.push(StrictFinding::DuplicateField(path));
    }

    fn consume_opening_bracket(&mut self) -> Result<(), JsonError> {
        if self.open_collections.len() >= self.nesting_max {
            return Err(self.error(&format!("exceeded max depth of {}", self.nesting_max)));
        }
        self.byte_position += 1;
        Ok(())
    }

    /// Reads the name of a member and the colon after it.
    fn read_member_name(&mut self) -> Result<String, JsonError> {
        match self.peek_token() {
            Some(b'"') => {}
            _ => {
                return Err(
                    self.invalid_character_error("looking for beginning of object key string")
                );
            }
        }
        let name = self.read_string()?;
        match self.consume_byte(b':') {
            true => Ok(name),
            false => Err(self.invalid_character_error("after object key")),
        }
    }

    /// Reads a string, whose opening quote is next.
    fn read_string(&mut self) -> Result<String, JsonError> {
        let start = self.byte_position;
        let rest = self.json_bytes.get(start + 1..).unwrap_or_default();
        let mut has_escapes = false;
        let mut is_escaped = false;
        let len = rest.iter().position(|&byte| match byte {
            _ if is_escaped => {
                is_escaped = false;
                false
            }
            b'\\' => {
                (is_escaped, has_escapes) = (true, true);
                false
            }
            byte => byte == b'"',
        });
        let len = len.ok_or_else(|| self.error(END_OF_INPUT))?;
        let inner = rest.get(..len).unwrap_or_default();
        self.byte_position = start + len + 2;
        if !has_escapes && inner.iter().all(|byte| *byte >= b' ') {
            let text = std::str::from_utf8(inner);
            return text.map(str::to_owned).map_err(|_| self.error("invalid UTF-8 in a string"));
        }
        let quoted = self.json_bytes.get(start..self.byte_position).unwrap_or_default();
        serde_json::from_slice(quoted).map_err(|why| self.error(&why.to_string()))
    }

    fn read_number(&mut self) -> Result<Value, JsonError> {
        let rest = self.json_bytes.get(self.byte_position..).unwrap_or_default();
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let len = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let written = rest.get(..len).unwrap_or_default();
        let number: Number = serde_json::from_slice(written)
            .map_err(|why| self.error(&format!("invalid number: {why}")))?;
        self.byte_position += len;
        // `serde_json` may not return the nearest double, and decoding must not change the values of an object.
        let nearest = std::str::from_utf8(written).ok().and_then(|text| text.parse::<f64>().ok());
        Ok(match nearest {
            Some(nearest) if number.is_f64() => nearest.into(),
            _ => Value::Number(number),
        })
    }

    fn read_literal(&mut self, word: &[u8], value: Value) -> Result<Option<Value>, JsonError> {
        if !self.json_bytes.get(self.byte_position..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.error("invalid character in a literal"));
        }
        self.byte_position += word.len();
        Ok(Some(value))
    }

    /// Skips whitespace and returns the next byte without consuming it.
    fn peek_token(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.json_bytes.get(self.byte_position) {
            self.byte_position += 1;
        }
        self.json_bytes.get(self.byte_position).copied()
    }

    fn consume_byte(&mut self, byte: u8) -> bool {
        let is_next = self.peek_token() == Some(byte);
        self.byte_position += usize::from(is_next);
        is_next
    }

    /// The error about the next character, or about the end of the text.
    fn invalid_character_error(&mut self, place: &str) -> JsonError {
        match self.peek_token() {
            None => self.error(END_OF_INPUT),
            Some(byte) => {
                self.error(&format!("invalid character {} {place}", quote_character(byte)))
            }
        }
    }

    fn error(&self, problem: &str) -> JsonError {
        JsonError { error_text: problem.to_owned() }
    }
}

const END_OF_INPUT: &str = "unexpected end of JSON input";

/// A character as Go's JSON parser shows it.
fn quote_character(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => r#"'"'"#.to_owned(),
        byte => {
            let quoted = go_compat::quote(&char::from(byte).to_string());
            format!("'{}'", quoted.trim_matches('"'))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        parse_json(text.as_bytes()).unwrap().value
    }

    #[test]
    fn integers_keep_64_bits_and_floats_are_doubles() {
        assert_eq!(read("9223372036854775807"), json!(i64::MAX));
        assert_eq!(read("-9223372036854775808"), json!(i64::MIN));
        assert_eq!(read("18446744073709551615"), json!(u64::MAX));
        assert_eq!(read("1.5e3"), json!(1500.0));
    }

    #[test]
    fn the_last_of_duplicates_counts_and_all_are_found() {
        let text = r#"{"data":{"a":"1","a":"2","a":"3"},"rules":[{},{"foo":1,"foo":2}]}"#;
        let tree = parse_json(text.as_bytes()).unwrap();
        assert_eq!(tree.value, json!({"data": {"a": "3"}, "rules": [{}, {"foo": 2}]}));
        let paths =
            ["data.a", "rules[1].foo"].map(|path| StrictFinding::DuplicateField(path.into()));
        assert_eq!(tree.duplicate_fields, paths);
    }

    /// L15: a body that is nested too deeply is refused, and parsing it does not exhaust the stack.
    #[test]
    fn nesting_is_limited_and_fits_a_small_stack() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        let check = move || {
            for text in [nested(NESTING_MAX), objects(NESTING_MAX)] {
                assert_eq!(read(&text).to_string(), text);
            }
            for text in [nested(NESTING_MAX + 1), objects(NESTING_MAX + 1)] {
                let error = parse_json(text.as_bytes()).unwrap_err().to_string();
                assert!(error.starts_with("exceeded max depth of 512"), "{error}");
            }
        };
        // The threads that serve requests have 2 MiB.
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(check);
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn malformed_json_is_refused() {
        for bytes in [
            &b""[..],
            b"{not json",
            b"{} x",
            b"\"\xff\"",
            b"{\"a\":1,}",
            b"01",
            b"[1,]",
            b"{\"a\"}",
            b"\"\n\"",
            b"tru",
            b"1e999",
            b"-",
            b"[",
            b"\"\\",
        ] {
            assert!(parse_json(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn errors_have_the_words_of_go() {
        for (text, want) in [
            ("", "unexpected end of JSON input"),
            ("[", "unexpected end of JSON input"),
            (r#""a"#, "unexpected end of JSON input"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{not", "invalid character 'n' looking for beginning of object key string"),
            (r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string"),
            (r#"{"a"}"#, "invalid character '}' after object key"),
            (r#"{"a":1 "b""#, r#"invalid character '"' after object key:value pair"#),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,\0]", r"invalid character '\x00' looking for beginning of value"),
        ] {
            let error = parse_json(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn reads_what_serde_json_reads(text in r#"([\[\]{}:,"a0-2. -]{0,24}|(\[|\{"a\\n":|1,|-0.1e2|"",|"b":|\}|\]|null|true| ){0,9})"#) {
            let theirs = serde_json::from_str::<Value>(&text);
            let ours = parse_json(text.as_bytes());
            prop_assert_eq!(ours.ok().map(|tree| tree.value), theirs.ok());
        }

        #[test]
        fn reads_what_serde_json_writes(tree in crate::testing::tree()) {
            let read = parse_json(tree.to_string().as_bytes());
            prop_assert_eq!(read, Ok(ParsedJson { value: tree, duplicate_fields: vec![] }));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse_json(&bytes);
        }
    }
}
