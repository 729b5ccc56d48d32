//! Reads the fields of a tree whose types the schema check has verified.
//!
//! Reading therefore cannot fail. A value of a wrong type would count as absent.

use crate::node::{Entry, Node, Value};
use crate::source::Span;

/// A duration in nanoseconds, possibly negative.
pub type Nanoseconds = i64;

/// A value with its position, or the default of its type and no position.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldValue<T> {
    /// The value, or the default of its type if the field is absent.
    pub value: T,
    /// The bytes of the value; `None` if the field is absent.
    pub span: Option<Span>,
    /// Whether a YAML tag precedes the value; see [`Node::has_yaml_tag`].
    pub has_yaml_tag: bool,
}

/// Reads the members of one object.
pub struct ObjectReader<'d> {
    /// The span that faults about missing fields get.
    pub span: Span,
    object_entries: &'d [Entry],
}

impl<'d> ObjectReader<'d> {
    /// Reads the members of `node`; a value that is not an object has no members.
    pub fn new(node: &'d Node, span: Span) -> Self {
        let entries = match &node.value {
            Value::Object(entries) => entries.as_slice(),
            _ => &[],
        };
        Self { span, object_entries: entries }
    }

    /// Makes a reader of an object without members.
    pub fn empty_object_reader(span: Span) -> Self {
        Self { span, object_entries: &[] }
    }

    /// Finds a member by its key. Of several equal keys the last counts.
    pub fn entry(&self, name: &str) -> Option<&'d Entry> {
        self.object_entries.iter().rfind(|entry| entry.key == name)
    }

    /// Reads a field with `read`; a value that `read` refuses counts as the default.
    pub fn read_field<T: Default>(
        &self,
        name: &str,
        read: fn(&Value) -> Option<T>,
    ) -> FieldValue<T> {
        let Some(entry) = self.entry(name) else { return FieldValue::default() };
        FieldValue {
            value: read(&entry.value.value).unwrap_or_default(),
            span: Some(entry.value.span),
            has_yaml_tag: entry.value.has_yaml_tag,
        }
    }

    /// Reads a field that holds a string; a value of another type counts as an empty string.
    pub fn read_text(&self, name: &str) -> FieldValue<String> {
        self.read_field(name, |value| match value {
            Value::Text(text) => Some(text.as_str().to_owned()),
            _ => None,
        })
    }

    /// Reads a duration field in Go's syntax.
    pub fn read_duration(&self, name: &str) -> FieldValue<Nanoseconds> {
        self.read_field(name, |value| match value {
            Value::Text(text) => go_compat::parse_duration(text.as_str()).ok(),
            _ => None,
        })
    }

    /// Reads a boolean field; `None` if it is absent or of another type.
    pub fn read_bool(&self, name: &str) -> Option<bool> {
        match &self.entry(name)?.value.value {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// Reads a field that holds an object.
    pub fn read_object(&self, name: &str) -> Option<ObjectReader<'d>> {
        let entry = self.entry(name)?;
        match &entry.value.value {
            Value::Object(_) => Some(ObjectReader::new(&entry.value, entry.key_span)),
            _ => None,
        }
    }

    /// Reads a field that holds a list, with the span of its key.
    pub fn read_list(&self, name: &str) -> (Span, &'d [Node]) {
        match self.entry(name) {
            Some(Entry { key_span, value: Node { value: Value::List(items), .. }, .. }) => {
                (*key_span, items)
            }
            Some(entry) => (entry.key_span, &[]),
            None => (self.span, &[]),
        }
    }
}
