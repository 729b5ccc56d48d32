//! The tree that a YAML or JSON file becomes, with the span of every key and value.

use serde_json::Value as Json;

use crate::source::{DOCUMENT_BYTES_MAX, Span};

/// The deepest nesting that the parsers accept.
///
/// The deepest known field is seven levels down. Anything deeper is an unknown field or a value
/// of the wrong type, so this limit refuses nothing that a schema would accept; it bounds the
/// recursion of every walk over a document.
pub const NESTING_MAX: usize = 64;

/// The maximum number of values that a configuration, or one object of a manifest, may hold after its aliases are
/// expanded.
///
/// A configuration of the largest size holds about half as many, and an object that a server would
/// store fewer. The limit bounds the growth through aliases and the cost of a file that consists of
/// brackets.
pub const NODES_MAX: usize = 100_000;

/// Size limits of one YAML document.
#[derive(Debug, Clone, Copy)]
pub struct DocumentLimits {
    /// The maximum number of values after aliases are expanded.
    pub nodes_max: usize,
    /// The maximum size of all texts after aliases are expanded, in bytes.
    ///
    /// Only aliases can exceed this limit: a few of them can repeat a long text many times.
    pub expanded_bytes_max: usize,
    /// The maximum number of duplicate keys that are reported.
    pub duplicate_keys_max: usize,
}

impl DocumentLimits {
    /// The limits of a configuration file. Kubernetes has the same limit on duplicate keys.
    pub const CONFIGURATION: Self = Self {
        nodes_max: NODES_MAX,
        expanded_bytes_max: 4 * DOCUMENT_BYTES_MAX,
        duplicate_keys_max: 100,
    };
}

/// One value of a document, with the bytes of the file that it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The bytes of the value in the file.
    pub span: Span,
    /// The value, whose children have spans too.
    pub value: Value,
    /// Whether a local YAML tag such as `!has(x)` precedes the value, which is most likely a mistake.
    pub has_yaml_tag: bool,
}

impl Node {
    /// The value without its positions. INVARIANT: nesting is bounded by [`NESTING_MAX`].
    pub fn to_json_value(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(number) => Json::Number(number.clone()),
            Value::Text(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json_value).collect(),
            Value::Object(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.value.to_json_value()))
                .collect(),
        }
    }
}

/// A value in JSON's data model.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// JSON's `null`, or an empty YAML value.
    Null,
    /// A JSON boolean, or a YAML word such as `yes`.
    Bool(bool),
    /// A number. No field of a configuration kind takes one; manifests do.
    Number(serde_json::Number),
    /// A string with the origin of each character.
    Text(SpannedText),
    /// A JSON array or YAML sequence.
    List(Vec<Node>),
    /// Entries in the order in which Kubernetes visits them: that of the file for JSON, sorted by
    /// key for YAML, which it converts to JSON through a sorted map.
    Object(Vec<Entry>),
}

impl Value {
    /// JSON's name of the kind of value, as Go's decoder prints it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// The kind of value with its article, for a sentence: `a string`, `an object`.
    pub fn value_kind_with_article(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// One key of an object, with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key as text.
    pub key: String,
    /// The bytes of the key in the file.
    pub key_span: Span,
    /// The value of the key.
    pub value: Node,
}

/// A string value that remembers where in the file each of its characters was written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpannedText {
    value: String,
    /// The runs of characters that are the same in the file and in the value, in order.
    verbatim_runs: Vec<VerbatimRun>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct VerbatimRun {
    /// Offset of the run in the value.
    offset_in_value: usize,
    /// Offset of the run in the file.
    offset_in_file: usize,
}

impl SpannedText {
    /// Returns the value without offsets.
    pub fn as_str(&self) -> &str {
        &self.value
    }

    /// Appends a character that was written at `file_offset`.
    pub fn push(&mut self, c: char, file_offset: usize) {
        self.begin_verbatim_run(file_offset);
        self.value.push(c);
    }

    /// Appends characters that were written as they are at `file_offset`.
    pub fn push_str(&mut self, text: &str, file_offset: usize) {
        if !text.is_empty() {
            self.begin_verbatim_run(file_offset);
            self.value.push_str(text);
        }
    }

    /// Records the file offset of the next character, unless it continues the last run.
    fn begin_verbatim_run(&mut self, file_offset: usize) {
        let continues = self.verbatim_runs.last().is_some_and(|run| {
            file_offset.checked_sub(run.offset_in_file)
                == Some(self.value.len() - run.offset_in_value)
        });
        if !continues {
            self.verbatim_runs.push(VerbatimRun {
                offset_in_value: self.value.len(),
                offset_in_file: file_offset,
            });
        }
    }

    /// Returns the value without the offsets.
    pub fn into_string(self) -> String {
        self.value
    }

    /// Appends another text and leaves it empty.
    pub fn append(&mut self, other: &mut SpannedText) {
        let shift = self.value.len();
        self.value.push_str(&other.value);
        self.verbatim_runs.extend(
            other
                .verbatim_runs
                .drain(..)
                .map(|run| VerbatimRun { offset_in_value: run.offset_in_value + shift, ..run }),
        );
        other.value.clear();
    }

    /// Empties the value and its offsets.
    pub fn clear(&mut self) {
        self.value.clear();
        self.verbatim_runs.clear();
    }

    /// Reports whether the value has no characters.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// Maps an offset of the value to an offset of the file; `None` for an empty text.
    pub fn to_file_offset(&self, offset: usize) -> Option<usize> {
        let after = self.verbatim_runs.partition_point(|run| run.offset_in_value <= offset);
        let run = self.verbatim_runs.get(after.checked_sub(1)?)?;
        Some(run.offset_in_file + (offset - run.offset_in_value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_maps_back_to_the_file() {
        // "a\tb" with the tab escaped, then a folded line: the value is `a<tab>b c`.
        let mut text = SpannedText::default();
        for (c, file) in [('a', 10), ('\t', 11), ('b', 13)] {
            text.push(c, file);
        }
        let mut tail = SpannedText::default();
        tail.push(' ', 14);
        tail.push('c', 20);
        text.append(&mut tail);
        assert_eq!(text.as_str(), "a\tb c");
        let offsets: Vec<_> = (0..5).map(|at| text.to_file_offset(at)).collect();
        assert_eq!(offsets, [Some(10), Some(11), Some(13), Some(14), Some(20)]);
        assert!(tail.is_empty());
        assert_eq!(SpannedText::default().to_file_offset(0), None);
    }
}
