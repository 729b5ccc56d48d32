//! Checks a document against the schema of its kind.
//!
//! Kubernetes reports one class of problems: the first malformed duration, else the first value of a wrong
//! type, else all duplicate and unknown fields. [`DecodeProblems::kubernetes_message`] is that message.
//! [`DecodeProblems`] holds all problems, so that the author of a file can fix them in one go.

use std::collections::HashSet;

use crate::diagnostic::Diagnostic;
use crate::hint;
use crate::node::{Entry, Node, Value};
use crate::parse_document::SpannedDecodeError;
use crate::schema::{FieldType, ObjectSchema, SchemaTextRule};
use crate::source::Span;

/// The error of a file that cannot be decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodeError {
    /// The message that Kubernetes prints, often only the first fault.
    pub kubernetes_message: String,
    /// Every fault of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// The maximum number of problems of a class that are kept. Kubernetes has this limit for unknown and duplicate fields.
const PROBLEMS_MAX: usize = 100;

/// One reason why a document cannot be decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodeProblem {
    /// The field path as Kubernetes writes it; empty for the document as a whole.
    pub path: String,
    /// The message in Kubernetes' words.
    pub message: String,
    /// The bytes that the problem is about.
    pub span: Span,
    /// The likely intention of the author.
    pub hint: Option<String>,
}

/// All problems of a document, by class.
#[derive(Debug, Default)]
pub struct DecodeProblems {
    /// Texts that are not valid durations. Kubernetes reports these first.
    pub bad_durations: Vec<DecodeProblem>,
    /// Values whose type is not that of their field.
    pub wrong_types: Vec<DecodeProblem>,
    /// Duplicate keys of a YAML file, which the YAML parser finds.
    pub duplicate_keys: Vec<DecodeProblem>,
    /// Unknown fields, and duplicate ones of a JSON file.
    pub strict_decoding_problems: Vec<DecodeProblem>,
}

impl DecodeProblem {
    /// Makes a problem without a hint. `path` is empty for the document as a whole.
    pub fn new(path: impl Into<String>, message: String, span: Span) -> Self {
        Self { path: path.into(), message, span, hint: None }
    }

    /// Replaces the hint of the problem.
    #[must_use]
    pub fn with_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }
}

impl DecodeProblems {
    /// The message that Kubernetes prints; `None` if there is no problem.
    pub fn kubernetes_message(&self) -> Option<String> {
        if let Some(first) = self.bad_durations.first().or(self.wrong_types.first()) {
            return Some(first.message.clone());
        }
        let messages = |problems: &[DecodeProblem], separator: &str| {
            let messages: Vec<_> = problems.iter().map(|p| p.message.as_str()).collect();
            messages.join(separator)
        };
        let keys = match self.duplicate_keys.as_slice() {
            [] => None,
            keys => Some(format!("yaml: unmarshal errors:\n  {}", messages(keys, "\n  "))),
        };
        let fields = match self.strict_decoding_problems.as_slice() {
            [] => None,
            fields => Some(messages(fields, ", ")),
        };
        let all: Vec<_> = keys.into_iter().chain(fields).collect();
        (!all.is_empty()).then(|| format!("strict decoding error: {}", all.join(", ")))
    }

    /// Succeeds if there is no problem.
    ///
    /// # Errors
    ///
    /// Kubernetes' message and all problems in the order of the file.
    pub fn into_result(self) -> Result<(), SpannedDecodeError> {
        match self.kubernetes_message() {
            None => Ok(()),
            Some(kubernetes_message) => Err(SpannedDecodeError {
                kubernetes_message,
                decode_problems: self.into_sorted_problems(),
            }),
        }
    }

    /// Returns all problems in the order of the file.
    pub fn into_sorted_problems(self) -> Vec<DecodeProblem> {
        let Self {
            bad_durations,
            wrong_types,
            duplicate_keys,
            strict_decoding_problems: strict_problems,
        } = self;
        let mut all: Vec<_> = bad_durations
            .into_iter()
            .chain(wrong_types)
            .chain(duplicate_keys)
            .chain(strict_problems)
            .collect();
        all.sort_by_key(|problem| problem.span);
        all
    }
}

/// Checks the object `root` of `text` against the schema `object`. Messages name the API version `version`.
/// `at` is the path of the object in its document.
pub fn check_against_schema(
    text: &str,
    version: &str,
    root: &Node,
    object: &'static ObjectSchema,
    at: &NodePath<'_>,
) -> DecodeProblems {
    let mut checker = SchemaChecker { text, version, decode_problems: DecodeProblems::default() };
    if let Value::Object(entries) = &root.value {
        checker.check_object(entries, object, at);
    }
    checker.decode_problems
}

/// The path of a value in a document. Each path borrows its parent, so that descending allocates
/// nothing; the text is built only for a fault.
#[derive(Debug, Clone, Copy)]
pub struct NodePath<'a> {
    parent_path: Option<&'a NodePath<'a>>,
    last_step: PathStep<'a>,
}

#[derive(Debug, Clone, Copy)]
enum PathStep<'a> {
    Root,
    Child(&'a str),
    Index(usize),
}

impl<'a> NodePath<'a> {
    /// The path of the root.
    pub const ROOT: NodePath<'static> = NodePath { parent_path: None, last_step: PathStep::Root };

    /// The path of a member.
    pub fn child_path(&'a self, name: &'a str) -> Self {
        Self { parent_path: Some(self), last_step: PathStep::Child(name) }
    }

    /// The path of a list item.
    pub fn index(&'a self, idx: usize) -> Self {
        Self { parent_path: Some(self), last_step: PathStep::Index(idx) }
    }

    /// Kubernetes' path of the field: `authorizers[0].webhook`.
    pub fn path_with_indices(&self) -> String {
        self.render_path(true)
    }

    /// The name in messages about types: `authorizers.webhook`.
    fn path_without_indices(&self) -> String {
        self.render_path(false)
    }

    fn render_path(&self, with_indices: bool) -> String {
        let mut text =
            self.parent_path.map(|parent| parent.render_path(with_indices)).unwrap_or_default();
        match self.last_step {
            PathStep::Child(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            PathStep::Index(idx) if with_indices => text.push_str(&format!("[{idx}]")),
            PathStep::Root | PathStep::Index(_) => {}
        }
        text
    }
}

struct SchemaChecker<'a> {
    text: &'a str,
    version: &'a str,
    decode_problems: DecodeProblems,
}

impl SchemaChecker<'_> {
    fn check_object(
        &mut self,
        entries: &[Entry],
        object: &'static ObjectSchema,
        at: &NodePath<'_>,
    ) {
        let mut seen: Vec<&str> = Vec::new();
        for entry in entries {
            let at = at.child_path(&entry.key);
            let Some(field) = object.field(&entry.key) else {
                let hint = || hint::hint_for_unknown_field(&entry.key, object);
                self.add_strict_problem("unknown", &at, entry, hint);
                continue;
            };
            if seen.contains(&field.name) {
                self.add_strict_problem("duplicate", &at, entry, || None);
            }
            seen.push(field.name);
            self.check_field_value(&entry.value, &field.field_type, object, &at);
        }
    }

    fn check_field_value(
        &mut self,
        node: &Node,
        field_type: &'static FieldType,
        owner: &ObjectSchema,
        at: &NodePath<'_>,
    ) {
        match (field_type, &node.value) {
            (FieldType::Duration { .. }, Value::Text(text)) => {
                if let Err(error) = go_compat::parse_duration(text.as_str()) {
                    let hint = hint::hint_for_bad_duration(text.as_str());
                    add_problem(
                        &mut self.decode_problems.bad_durations,
                        node,
                        at,
                        error.to_string(),
                        hint,
                    );
                }
            }
            (FieldType::Duration { default }, Value::Null) => {
                // Kubernetes reads null as an empty text here.
                let message = "time: invalid duration \"\"".to_owned();
                let hint = default.map(|default| format!("leave the field out to get `{default}`"));
                add_problem(&mut self.decode_problems.bad_durations, node, at, message, hint);
            }
            (FieldType::Duration { .. }, _) => {
                // A wrong type ends Kubernetes' decoding here, like a malformed duration.
                let message = wrong_type_message(node, "string", owner, at);
                let hint = hint::hint_for_wrong_type(self.text, node, field_type);
                add_problem(&mut self.decode_problems.bad_durations, node, at, message, hint);
            }
            (_, Value::Null)
            | (FieldType::Any, _)
            | (FieldType::Text(_), Value::Text(_))
            | (FieldType::Bool { .. }, Value::Bool(_))
            | (FieldType::Integer, Value::Number(_)) => {}
            (FieldType::Object(object), Value::Object(entries)) => {
                self.check_object(entries, object, at)
            }
            (
                FieldType::List { item, .. } | FieldType::ListOrMap { item, .. },
                Value::List(nodes),
            ) => {
                for (idx, node) in nodes.iter().enumerate() {
                    self.check_object_item(node, item, owner, &at.index(idx));
                }
            }
            (FieldType::TextList, Value::List(nodes)) => {
                for (idx, node) in nodes.iter().enumerate() {
                    self.check_text_value(node, owner, &at.index(idx));
                }
            }
            (FieldType::ListOrMap { item, .. }, Value::Object(entries)) => {
                self.check_object_map(entries, item, owner, at);
            }
            (FieldType::TextMap, Value::Object(entries)) => self.check_text_map(entries, owner, at),
            (field_type, _) => {
                let message =
                    wrong_type_message(node, &field_type.go_type_name(self.version), owner, at);
                let hint = hint::hint_for_wrong_type(self.text, node, field_type);
                add_problem(&mut self.decode_problems.wrong_types, node, at, message, hint);
            }
        }
    }

    fn check_object_item(
        &mut self,
        node: &Node,
        item: &'static ObjectSchema,
        owner: &ObjectSchema,
        at: &NodePath<'_>,
    ) {
        match &node.value {
            Value::Null => {}
            Value::Object(entries) => self.check_object(entries, item, at),
            _ => {
                let go_type = format!("{}.{}", self.version, item.type_name);
                let message = wrong_type_message(node, &go_type, owner, at);
                let hint = format!(
                    "an item has the fields {}",
                    hint::join_in_backticks(&item.field_names())
                );
                add_problem(&mut self.decode_problems.wrong_types, node, at, message, Some(hint));
            }
        }
    }

    fn check_object_map(
        &mut self,
        entries: &[Entry],
        item: &'static ObjectSchema,
        owner: &ObjectSchema,
        at: &NodePath<'_>,
    ) {
        let mut seen = HashSet::new();
        for entry in entries {
            let at = at.child_path(&entry.key);
            if !seen.insert(entry.key.as_str()) {
                self.add_strict_problem("duplicate", &at, entry, || None);
            }
            self.check_object_item(&entry.value, item, owner, &at);
        }
    }

    /// Checks that an item of a list or a value of a map is a text.
    fn check_text_value(&mut self, node: &Node, owner: &ObjectSchema, at: &NodePath<'_>) {
        if !matches!(node.value, Value::Text(_) | Value::Null) {
            let message = wrong_type_message(node, "string", owner, at);
            let hint =
                hint::hint_for_wrong_type(self.text, node, &FieldType::Text(SchemaTextRule::Any));
            add_problem(&mut self.decode_problems.wrong_types, node, at, message, hint);
        }
    }

    fn check_text_map(&mut self, entries: &[Entry], owner: &ObjectSchema, at: &NodePath<'_>) {
        let mut seen = HashSet::new();
        for entry in entries {
            let child = at.child_path(&entry.key);
            if !seen.insert(entry.key.as_str()) {
                self.add_strict_problem("duplicate", &child, entry, || None);
            }
            // Kubernetes names the map and not the key.
            self.check_text_value(&entry.value, owner, at);
        }
    }

    fn add_strict_problem(
        &mut self,
        class: &str,
        at: &NodePath<'_>,
        entry: &Entry,
        hint: impl FnOnce() -> Option<String>,
    ) {
        let strict = &mut self.decode_problems.strict_decoding_problems;
        if strict.len() >= PROBLEMS_MAX {
            return;
        }
        let path = at.path_with_indices();
        let message = format!("{class} field {}", go_compat::quote(&path));
        if strict.iter().all(|problem| problem.message != message) {
            strict.push(DecodeProblem::new(path, message, entry.key_span).with_hint(hint()));
        }
    }
}

fn add_problem(
    problems: &mut Vec<DecodeProblem>,
    node: &Node,
    at: &NodePath<'_>,
    message: String,
    hint: Option<String>,
) {
    if problems.len() < PROBLEMS_MAX {
        problems
            .push(DecodeProblem::new(at.path_with_indices(), message, node.span).with_hint(hint));
    }
}

fn wrong_type_message(
    node: &Node,
    go_type: &str,
    owner: &ObjectSchema,
    at: &NodePath<'_>,
) -> String {
    let (kind, owner, path) = (node.value.kind(), owner.type_name, at.path_without_indices());
    format!("json: cannot unmarshal {kind} into Go struct field {owner}.{path} of type {go_type}")
}
