//! JSON as a tree, with the fields that stand twice.
//!
//! The structure is read here, with a stack of our own: a body may be nested deeper than the stack of
//! a thread allows in a debug build, and duplicate fields must be seen before a map swallows them.
//! Texts with escapes and numbers are left to `serde_json`.

use std::fmt;

use serde_json::{Map, Number, Value};

use crate::finding::{Finding, Findings};
use crate::path::shown;

/// The deepest nesting that is read.
///
/// Kubernetes' objects are a few dozen levels deep. Most walks over a tree recurse, so this is what
/// bounds their stacks.
pub const NESTING_MAX: usize = 512;

/// A value and what strictness would object to.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonTree {
    /// The value; of a field that stands twice, the last one.
    pub value: Value,
    /// The fields that stand twice, in the order of the text.
    pub findings: Vec<Finding>,
}

/// Why bytes are not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {at}")]
pub struct JsonError {
    problem: String,
    at: usize,
}

/// Reads one value; nothing but white space may surround it.
///
/// # Errors
///
/// The bytes are not JSON, not UTF-8, or nested too deeply.
pub fn json_tree(bytes: &[u8]) -> Result<JsonTree, JsonError> {
    json_tree_within(bytes, NESTING_MAX)
}

/// Reads one value that may be nested as deeply as given.
pub(crate) fn json_tree_within(bytes: &[u8], nesting_max: usize) -> Result<JsonTree, JsonError> {
    let (open, findings) = (Vec::new(), Findings::default());
    let mut reader = Reader { bytes, at: 0, nesting_max, open, findings };
    let value = reader.value()?;
    match reader.peek() {
        None => Ok(JsonTree { value, findings: reader.findings.into_vec() }),
        Some(_) => Err(reader.error("unexpected data after the top-level value")),
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    nesting_max: usize,
    /// The collections that are not complete yet, outermost first.
    open: Vec<Open>,
    findings: Findings,
}

/// A collection that is not complete yet.
enum Open {
    List(Vec<Value>),
    Object {
        members: Map<String, Value>,
        /// The name of the member whose value comes next.
        name: String,
    },
}

impl JsonError {
    /// A value of another type than an object.
    pub(crate) fn no_object() -> Self {
        Self { problem: "a value that is not an object".to_owned(), at: 0 }
    }
}

impl Reader<'_> {
    /// Reads until the outermost value is complete.
    fn value(&mut self) -> Result<Value, JsonError> {
        loop {
            if let Some(value) = self.begin_value()?
                && let Some(root) = self.complete(value)?
            {
                return Ok(root);
            }
        }
    }

    /// Reads a scalar or an empty collection, or opens one that is not empty.
    fn begin_value(&mut self) -> Result<Option<Value>, JsonError> {
        match self.peek() {
            Some(b'[') => {
                self.open_level()?;
                if self.take(b']') {
                    return Ok(Some(Value::Array(Vec::new())));
                }
                self.open.push(Open::List(Vec::new()));
                Ok(None)
            }
            Some(b'{') => {
                self.open_level()?;
                if self.take(b'}') {
                    return Ok(Some(Value::Object(Map::new())));
                }
                let name = self.name()?;
                self.open.push(Open::Object { members: Map::new(), name });
                Ok(None)
            }
            Some(b'"') => self.text().map(|text| Some(Value::String(text))),
            Some(b'-' | b'0'..=b'9') => self.number().map(Some),
            Some(b't') => self.literal(b"true", Value::Bool(true)),
            Some(b'f') => self.literal(b"false", Value::Bool(false)),
            Some(b'n') => self.literal(b"null", Value::Null),
            Some(_) => Err(self.error("invalid character looking for the beginning of a value")),
            None => Err(self.error("unexpected end of JSON input")),
        }
    }

    /// Puts a complete value where it belongs, and goes on until another one begins. The outermost
    /// value is returned.
    fn complete(&mut self, mut value: Value) -> Result<Option<Value>, JsonError> {
        loop {
            self.note_duplicate();
            let closing = match self.open.last_mut() {
                None => return Ok(Some(value)),
                Some(Open::List(items)) => {
                    items.push(value);
                    b']'
                }
                Some(Open::Object { members, name }) => {
                    members.insert(std::mem::take(name), value);
                    b'}'
                }
            };
            if self.take(b',') {
                if closing == b'}' {
                    let next = self.name()?;
                    if let Some(Open::Object { name, .. }) = self.open.last_mut() {
                        *name = next;
                    }
                }
                return Ok(None);
            }
            if !self.take(closing) {
                let problem = match self.peek() {
                    None => "unexpected end of JSON input",
                    Some(_) => "invalid character after a value",
                };
                return Err(self.error(problem));
            }
            value = match self.open.pop() {
                Some(Open::List(items)) => Value::Array(items),
                Some(Open::Object { members, .. }) => Value::Object(members),
                None => return Ok(None),
            };
        }
    }

    /// Notes the member that is about to be set if it is set already.
    fn note_duplicate(&mut self) {
        let Some(Open::Object { members, name }) = self.open.last() else { return };
        if !members.contains_key(name) || self.findings.is_full() {
            return;
        }
        let path = fmt::from_fn(|f| {
            for (idx, open) in self.open.iter().enumerate() {
                match open {
                    Open::List(items) => write!(f, "[{}]", items.len())?,
                    Open::Object { name, .. } if idx == 0 => f.write_str(name)?,
                    Open::Object { name, .. } => write!(f, ".{name}")?,
                }
            }
            Ok(())
        });
        let path = shown(&path);
        self.findings.push(Finding::DuplicateField(path));
    }

    fn open_level(&mut self) -> Result<(), JsonError> {
        if self.open.len() >= self.nesting_max {
            return Err(self.error(&format!("exceeded max depth of {}", self.nesting_max)));
        }
        self.at += 1;
        Ok(())
    }

    /// The name of a member and the colon behind it.
    fn name(&mut self) -> Result<String, JsonError> {
        match self.peek() {
            Some(b'"') => {}
            Some(_) => return Err(self.error("invalid character looking for the name of a field")),
            None => return Err(self.error("unexpected end of JSON input")),
        }
        let name = self.text()?;
        match self.take(b':') {
            true => Ok(name),
            false => Err(self.error("expected a colon after the name of a field")),
        }
    }

    /// A text, whose opening quote is next.
    fn text(&mut self) -> Result<String, JsonError> {
        let start = self.at;
        let rest = self.bytes.get(start + 1..).unwrap_or_default();
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
        let len = len.ok_or_else(|| self.error("unexpected end of JSON input in a string"))?;
        let inner = rest.get(..len).unwrap_or_default();
        self.at = start + len + 2;
        if !has_escapes && inner.iter().all(|byte| *byte >= b' ') {
            let text = std::str::from_utf8(inner);
            return text.map(str::to_owned).map_err(|_| self.error("invalid UTF-8 in a string"));
        }
        let quoted = self.bytes.get(start..self.at).unwrap_or_default();
        serde_json::from_slice(quoted).map_err(|why| self.error(&why.to_string()))
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let len = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let written = rest.get(..len).unwrap_or_default();
        let number: Number = serde_json::from_slice(written)
            .map_err(|why| self.error(&format!("invalid number: {why}")))?;
        self.at += len;
        // `serde_json` may miss the nearest double, and an object must not change by being read.
        let nearest = std::str::from_utf8(written).ok().and_then(|text| text.parse::<f64>().ok());
        Ok(match nearest {
            Some(nearest) if number.is_f64() => nearest.into(),
            _ => Value::Number(number),
        })
    }

    fn literal(&mut self, word: &[u8], value: Value) -> Result<Option<Value>, JsonError> {
        if !self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.error("invalid character in a literal"));
        }
        self.at += word.len();
        Ok(Some(value))
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn error(&self, problem: &str) -> JsonError {
        JsonError { problem: problem.to_owned(), at: self.at }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        json_tree(text.as_bytes()).unwrap().value
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
        let tree = json_tree(text.as_bytes()).unwrap();
        assert_eq!(tree.value, json!({"data": {"a": "3"}, "rules": [{}, {"foo": 2}]}));
        let paths = ["data.a", "rules[1].foo"].map(|path| Finding::DuplicateField(path.into()));
        assert_eq!(tree.findings, paths);
    }

    /// L15: depth costs an attacker a refusal and the server nothing.
    #[test]
    fn nesting_is_limited_and_fits_a_small_stack() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        let check = move || {
            for text in [nested(NESTING_MAX), objects(NESTING_MAX)] {
                assert_eq!(read(&text).to_string(), text);
            }
            for text in [nested(NESTING_MAX + 1), objects(NESTING_MAX + 1)] {
                let error = json_tree(text.as_bytes()).unwrap_err().to_string();
                assert!(error.starts_with("exceeded max depth of 512"), "{error}");
            }
        };
        // The threads that serve requests have 2 MiB.
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(check);
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn what_is_not_json_is_refused() {
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
            assert!(json_tree(bytes).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn reads_what_serde_json_reads(text in r#"([\[\]{}:,"a0-2. -]{0,24}|(\[|\{"a\\n":|1,|-0.1e2|"",|"b":|\}|\]|null|true| ){0,9})"#) {
            let theirs = serde_json::from_str::<Value>(&text);
            let ours = json_tree(text.as_bytes());
            prop_assert_eq!(ours.ok().map(|tree| tree.value), theirs.ok());
        }

        #[test]
        fn reads_what_serde_json_writes(tree in crate::arbitrary::tree()) {
            let read = json_tree(tree.to_string().as_bytes());
            prop_assert_eq!(read, Ok(JsonTree { value: tree, findings: vec![] }));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = json_tree(&bytes);
        }
    }
}
