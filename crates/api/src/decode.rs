//! Checks a document against the table of its kind.
//!
//! Kubernetes reports one thing: the first malformed duration, else the first value of a wrong
//! type, else all duplicate and unknown fields. [`Problems::cause`] is that; the list behind it
//! has everything, for people who would rather fix a file in one go.

use crate::document::{Entry, Node, Value};
use crate::hint;
use crate::shape::{Object, Shape};
use crate::source::Span;

/// The most problems of a class that are kept. Kubernetes sets it for unknown and duplicate
/// fields; a file with as many has other worries than the rest of the list.
const PROBLEMS_MAX: usize = 100;

/// One reason why a document can not be decoded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    /// Where, as Kubernetes writes it; empty for the document as a whole.
    pub(crate) path: String,
    /// What, in Kubernetes' words.
    pub(crate) message: String,
    pub(crate) span: Span,
    pub(crate) hint: Option<String>,
}

/// Everything that is wrong, by class.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    pub(crate) durations: Vec<Problem>,
    pub(crate) types: Vec<Problem>,
    /// Duplicate keys of a YAML file, which are found before the walk.
    pub(crate) duplicate_keys: Vec<Problem>,
    /// Unknown fields, and duplicate ones of a JSON file.
    pub(crate) strict: Vec<Problem>,
}

impl Problems {
    /// What Kubernetes says; `None` if nothing is wrong.
    pub(crate) fn cause(&self) -> Option<String> {
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
    pub(crate) fn into_sorted(self) -> Vec<Problem> {
        let Self { durations, types, duplicate_keys, strict } = self;
        let mut all: Vec<_> =
            durations.into_iter().chain(types).chain(duplicate_keys).chain(strict).collect();
        all.sort_by_key(|problem| problem.span);
        all
    }
}

/// Checks the document `root` in `text`. `version` is the API version that messages name.
pub(crate) fn check(text: &str, version: &str, root: &Node, object: &'static Object) -> Problems {
    let mut walk = Walk { text, version, problems: Problems::default() };
    if let Value::Object(entries) = &root.value {
        walk.object(entries, object, &Paths::default());
    }
    walk.problems
}

struct Walk<'a> {
    text: &'a str,
    version: &'a str,
    problems: Problems,
}

/// The two ways in which Kubernetes names a place.
#[derive(Default, Clone)]
struct Paths {
    /// `authorizers[0].webhook`
    indexed: String,
    /// `authorizers.webhook`
    plain: String,
}

impl Paths {
    fn child(&self, name: &str) -> Self {
        let join = |path: &str| match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        Self { indexed: join(&self.indexed), plain: join(&self.plain) }
    }

    fn index(&self, idx: usize) -> Self {
        Self { indexed: format!("{}[{idx}]", self.indexed), plain: self.plain.clone() }
    }
}

impl Walk<'_> {
    fn object(&mut self, entries: &[Entry], object: &'static Object, at: &Paths) {
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

    fn value(&mut self, node: &Node, shape: &'static Shape, owner: &Object, at: &Paths) {
        match (shape, &node.value) {
            (Shape::Duration { .. }, Value::Text(text)) => {
                if let Err(error) = gotext::parse_duration(text.as_str()) {
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
            (_, Value::Null) | (Shape::Text(_), Value::Text(_)) | (Shape::Flag, Value::Bool(_)) => {
            }
            (Shape::Object(object), Value::Object(entries)) => self.object(entries, object, at),
            (Shape::List { item, .. }, Value::List(nodes)) => {
                for (idx, node) in nodes.iter().enumerate() {
                    self.item(node, item, owner, &at.index(idx));
                }
            }
            (shape, _) => {
                let message = wrong_type(node, &shape.go_type(self.version), owner, at);
                let hint = hint::for_wrong_type(self.text, node, shape);
                keep(&mut self.problems.types, node, at, message, hint);
            }
        }
    }

    fn item(&mut self, node: &Node, item: &'static Object, owner: &Object, at: &Paths) {
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

    fn strict(
        &mut self,
        class: &str,
        at: &Paths,
        entry: &Entry,
        hint: impl FnOnce() -> Option<String>,
    ) {
        let strict = &mut self.problems.strict;
        if strict.len() >= PROBLEMS_MAX {
            return;
        }
        let message = format!("{class} field {}", gotext::quote(&at.indexed));
        if strict.iter().all(|problem| problem.message != message) {
            let path = at.indexed.clone();
            strict.push(Problem { path, message, span: entry.key_span, hint: hint() });
        }
    }
}

fn keep(
    problems: &mut Vec<Problem>,
    node: &Node,
    at: &Paths,
    message: String,
    hint: Option<String>,
) {
    if problems.len() < PROBLEMS_MAX {
        problems.push(Problem { path: at.indexed.clone(), message, span: node.span, hint });
    }
}

fn wrong_type(node: &Node, go_type: &str, owner: &Object, at: &Paths) -> String {
    let (kind, owner, path) = (node.value.kind(), owner.type_name, &at.plain);
    format!("json: cannot unmarshal {kind} into Go struct field {owner}.{path} of type {go_type}")
}
