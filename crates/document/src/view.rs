//! Reading a tree whose types were checked.
//!
//! Reading follows a walk that found every type right, so nothing can fail here; a value of a
//! wrong type reads as absent.

use crate::node::{Entry, Node, Value};
use crate::source::Span;

/// A duration in nanoseconds, possibly negative.
pub type Nanos = i64;

/// A value with its place, or the default of its type and no place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scalar<T> {
    pub value: T,
    pub span: Option<Span>,
    /// See [`Node::is_tagged`].
    pub is_tagged: bool,
}

/// An object that is being read.
pub struct View<'d> {
    /// The place that stands for what is missing in it.
    pub span: Span,
    entries: &'d [Entry],
}

impl<'d> View<'d> {
    pub fn new(node: &'d Node, span: Span) -> Self {
        let entries = match &node.value {
            Value::Object(entries) => entries.as_slice(),
            _ => &[],
        };
        Self { span, entries }
    }

    /// An object that says nothing.
    pub fn empty(span: Span) -> Self {
        Self { span, entries: &[] }
    }

    /// A member; the last one where a lenient reader lets a key stand twice.
    pub fn get(&self, name: &str) -> Option<&'d Entry> {
        self.entries.iter().rfind(|entry| entry.key == name)
    }

    pub fn scalar<T: Default>(&self, name: &str, read: fn(&Value) -> Option<T>) -> Scalar<T> {
        let Some(entry) = self.get(name) else { return Scalar::default() };
        Scalar {
            value: read(&entry.value.value).unwrap_or_default(),
            span: Some(entry.value.span),
            is_tagged: entry.value.is_tagged,
        }
    }

    pub fn text(&self, name: &str) -> Scalar<String> {
        self.scalar(name, |value| match value {
            Value::Text(text) => Some(text.as_str().to_owned()),
            _ => None,
        })
    }

    pub fn duration(&self, name: &str) -> Scalar<Nanos> {
        self.scalar(name, |value| match value {
            Value::Text(text) => go_compat::parse_duration(text.as_str()).ok(),
            _ => None,
        })
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        match &self.get(name)?.value.value {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub fn object(&self, name: &str) -> Option<View<'d>> {
        let entry = self.get(name)?;
        match &entry.value.value {
            Value::Object(_) => Some(View::new(&entry.value, entry.key_span)),
            _ => None,
        }
    }

    pub fn list(&self, name: &str) -> (Span, &'d [Node]) {
        match self.get(name) {
            Some(Entry { key_span, value: Node { value: Value::List(items), .. }, .. }) => {
                (*key_span, items)
            }
            Some(entry) => (entry.key_span, &[]),
            None => (self.span, &[]),
        }
    }
}
