//! Checks a document against the table of its kind.
//!
//! Kubernetes reports one thing: the first malformed duration, else the first value of a wrong
//! type, else all duplicate and unknown fields. [`Problems::cause`] is that; the list behind it
//! has everything, for people who would rather fix a file in one go.

use std::collections::HashSet;

use crate::diagnostic::Diagnostic;
use crate::hint;
use crate::node::{Entry, Node, Value};
use crate::shape::{Object, Shape, TextRule};
use crate::source::Span;

/// Why a file can not be decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodeError {
    /// What Kubernetes says, which is often only the first fault.
    pub cause: String,
    /// Every fault.
    pub diagnostics: Vec<Diagnostic>,
}

/// The most problems of a class that are kept. Kubernetes sets it for unknown and duplicate
/// fields; a file with as many has other worries than the rest of the list.
const PROBLEMS_MAX: usize = 100;

/// One reason why a document can not be decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Where, as Kubernetes writes it; empty for the document as a whole.
    pub path: String,
    /// What, in Kubernetes' words.
    pub message: String,
    pub span: Span,
    pub hint: Option<String>,
}

/// Everything that is wrong, by class.
#[derive(Debug, Default)]
pub struct Problems {
    pub durations: Vec<Problem>,
    pub types: Vec<Problem>,
    /// Duplicate keys of a YAML file, which are found before the walk.
    pub duplicate_keys: Vec<Problem>,
    /// Unknown fields, and duplicate ones of a JSON file.
    pub strict: Vec<Problem>,
}

impl Problems {
    /// What Kubernetes says; `None` if nothing is wrong.
    pub fn cause(&self) -> Option<String> {
        if let Some(first) = self.durations.first().or(self.types.first()) {
            return Some(first.message.clone());
        }
        let messages = |problems: &[Problem], separator: &str| {
            let messages: Vec<_> = problems.iter().map(|p| p.message.as_str()).collect();
            messages.join(separator)
        };
        let keys = match self.duplicate_keys.as_slice() {
            [] => None,
            keys => Some(format!("yaml: unmarshal errors:\n  {}", messages(keys, "\n  "))),
        };
        let fields = match self.strict.as_slice() {
            [] => None,
            fields => Some(messages(fields, ", ")),
        };
        let all: Vec<_> = keys.into_iter().chain(fields).collect();
        (!all.is_empty()).then(|| format!("strict decoding error: {}", all.join(", ")))
    }

    /// All of them, in the order of the file.
    pub fn into_sorted(self) -> Vec<Problem> {
        let Self { durations, types, duplicate_keys, strict } = self;
        let mut all: Vec<_> =
            durations.into_iter().chain(types).chain(duplicate_keys).chain(strict).collect();
        all.sort_by_key(|problem| problem.span);
        all
    }
}

/// Checks the object `root` in `text`. `version` is the API version that messages name, and `at`
/// is where the object is in its document.
pub fn check(
    text: &str,
    version: &str,
    root: &Node,
    object: &'static Object,
    at: &At<'_>,
) -> Problems {
    let mut walk = Walk { text, version, problems: Problems::default() };
    if let Value::Object(entries) = &root.value {
        walk.object(entries, object, at);
    }
    walk.problems
}

/// A place in a document. It borrows its parent, so that descending costs nothing; the text is
/// made only for a fault.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Child(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    /// The document itself.
    pub const ROOT: At<'static> = At { parent: None, step: Step::Root };

    pub fn child(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Child(name) }
    }

    pub fn index(&'a self, idx: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(idx) }
    }

    /// Kubernetes' name of the place: `authorizers[0].webhook`.
    pub fn indexed(&self) -> String {
        self.text(true)
    }

    /// The name in messages about types: `authorizers.webhook`.
    fn plain(&self) -> String {
        self.text(false)
    }

    fn text(&self, with_indices: bool) -> String {
        let mut text = self.parent.map(|parent| parent.text(with_indices)).unwrap_or_default();
        match self.step {
            Step::Child(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Step::Index(idx) if with_indices => text.push_str(&format!("[{idx}]")),
            Step::Root | Step::Index(_) => {}
        }
        text
    }
}

struct Walk<'a> {
    text: &'a str,
    version: &'a str,
    problems: Problems,
}

impl Walk<'_> {
    fn object(&mut self, entries: &[Entry], object: &'static Object, at: &At<'_>) {
        let mut seen: Vec<&str> = Vec::new();
        for entry in entries {
            let at = at.child(&entry.key);
            let Some(field) = object.field(&entry.key) else {
                let hint = || hint::for_unknown_field(&entry.key, object);
                self.strict("unknown", &at, entry, hint);
                continue;
            };
            if seen.contains(&field.name) {
                self.strict("duplicate", &at, entry, || None);
            }
            seen.push(field.name);
            self.value(&entry.value, &field.shape, object, &at);
        }
    }

    fn value(&mut self, node: &Node, shape: &'static Shape, owner: &Object, at: &At<'_>) {
        match (shape, &node.value) {
            (Shape::Duration { .. }, Value::Text(text)) => {
                if let Err(error) = go_compat::parse_duration(text.as_str()) {
                    let hint = hint::for_duration(text.as_str());
                    keep(&mut self.problems.durations, node, at, error.to_string(), hint);
                }
            }
            (Shape::Duration { default }, Value::Null) => {
                // Kubernetes reads null as an empty text here.
                let message = "time: invalid duration \"\"".to_owned();
                let hint = default.map(|default| format!("leave the field out to get `{default}`"));
                keep(&mut self.problems.durations, node, at, message, hint);
            }
            (Shape::Duration { .. }, _) => {
                // A wrong type ends Kubernetes' walk here, like a malformed duration.
                let message = wrong_type(node, "string", owner, at);
                let hint = hint::for_wrong_type(self.text, node, shape);
                keep(&mut self.problems.durations, node, at, message, hint);
            }
            (_, Value::Null)
            | (Shape::Any, _)
            | (Shape::Text(_), Value::Text(_))
            | (Shape::Flag { .. }, Value::Bool(_))
            | (Shape::Number, Value::Number(_)) => {}
            (Shape::Object(object), Value::Object(entries)) => self.object(entries, object, at),
            (Shape::List { item, .. } | Shape::ListOrMap { item, .. }, Value::List(nodes)) => {
                for (idx, node) in nodes.iter().enumerate() {
                    self.item(node, item, owner, &at.index(idx));
                }
            }
            (Shape::Texts, Value::List(nodes)) => {
                for (idx, node) in nodes.iter().enumerate() {
                    self.text(node, owner, &at.index(idx));
                }
            }
            (Shape::ListOrMap { item, .. }, Value::Object(entries)) => {
                self.item_map(entries, item, owner, at);
            }
            (Shape::TextMap, Value::Object(entries)) => self.text_map(entries, owner, at),
            (shape, _) => {
                let message = wrong_type(node, &shape.go_type(self.version), owner, at);
                let hint = hint::for_wrong_type(self.text, node, shape);
                keep(&mut self.problems.types, node, at, message, hint);
            }
        }
    }

    fn item(&mut self, node: &Node, item: &'static Object, owner: &Object, at: &At<'_>) {
        match &node.value {
            Value::Null => {}
            Value::Object(entries) => self.object(entries, item, at),
            _ => {
                let go_type = format!("{}.{}", self.version, item.type_name);
                let message = wrong_type(node, &go_type, owner, at);
                let hint = format!("an item has the fields {}", hint::listed(&item.field_names()));
                keep(&mut self.problems.types, node, at, message, Some(hint));
            }
        }
    }

    fn item_map(&mut self, entries: &[Entry], item: &'static Object, owner: &Object, at: &At<'_>) {
        let mut seen = HashSet::new();
        for entry in entries {
            let at = at.child(&entry.key);
            if !seen.insert(entry.key.as_str()) {
                self.strict("duplicate", &at, entry, || None);
            }
            self.item(&entry.value, item, owner, &at);
        }
    }

    /// A text in a list or a map.
    fn text(&mut self, node: &Node, owner: &Object, at: &At<'_>) {
        if !matches!(node.value, Value::Text(_) | Value::Null) {
            let message = wrong_type(node, "string", owner, at);
            let hint = hint::for_wrong_type(self.text, node, &Shape::Text(TextRule::Any));
            keep(&mut self.problems.types, node, at, message, hint);
        }
    }

    fn text_map(&mut self, entries: &[Entry], owner: &Object, at: &At<'_>) {
        let mut seen = HashSet::new();
        for entry in entries {
            let child = at.child(&entry.key);
            if !seen.insert(entry.key.as_str()) {
                self.strict("duplicate", &child, entry, || None);
            }
            // Kubernetes names the map and not the key.
            self.text(&entry.value, owner, at);
        }
    }

    fn strict(
        &mut self,
        class: &str,
        at: &At<'_>,
        entry: &Entry,
        hint: impl FnOnce() -> Option<String>,
    ) {
        let strict = &mut self.problems.strict;
        if strict.len() >= PROBLEMS_MAX {
            return;
        }
        let path = at.indexed();
        let message = format!("{class} field {}", go_compat::quote(&path));
        if strict.iter().all(|problem| problem.message != message) {
            strict.push(Problem { path, message, span: entry.key_span, hint: hint() });
        }
    }
}

fn keep(
    problems: &mut Vec<Problem>,
    node: &Node,
    at: &At<'_>,
    message: String,
    hint: Option<String>,
) {
    if problems.len() < PROBLEMS_MAX {
        problems.push(Problem { path: at.indexed(), message, span: node.span, hint });
    }
}

fn wrong_type(node: &Node, go_type: &str, owner: &Object, at: &At<'_>) -> String {
    let (kind, owner, path) = (node.value.kind(), owner.type_name, at.plain());
    format!("json: cannot unmarshal {kind} into Go struct field {owner}.{path} of type {go_type}")
}
