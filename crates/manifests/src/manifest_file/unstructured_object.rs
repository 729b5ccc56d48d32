//! Objects that the reader keeps as JSON, because the caller validates them and this crate does not.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use document::hint::{self, did_you_mean};
use document::{
    DecodeProblem, Diagnostic, Fault, LineIndex, Node, NodePath, SourcePosition,
    SpannedExpressionIssue, SpannedFault, Value, check_against_schema, span_of_expression_position,
};
use field_errors::{BadValue, FieldError};
use serde_json::{Map, Value as Json};

use super::locate_field::{locate_faulty_value, locate_field, locate_field_key};
use super::object_class::last_member;
use crate::rbac::OBJECT_META;

/// The way in which the reader handles the objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KindHandling {
    /// The reader treats them as it treats every object.
    Standard,
    /// The reader keeps them as JSON.
    KeepUnstructured,
    /// The reader refuses them: the author most likely intended another kind.
    Refuse {
        /// The field at fault: `apiVersion` or `kind`.
        field: &'static str,
        /// The likely intention of the author.
        hint: String,
    },
}

/// Decides how the reader handles objects of an `apiVersion` and a `kind`.
pub type KindHandler<'a> = &'a dyn Fn(&str, &str) -> KindHandling;

/// An object of a kind that the caller asked for, as it is in the file.
///
/// The reader has only checked that it has no duplicate keys. The object keeps the span of every
/// value, so that the caller can report the position of a fault.
#[derive(Clone)]
pub struct UnstructuredObject {
    /// The object. An item of a list has `apiVersion` and `kind`, even if only the list declares
    /// them.
    pub value: Map<String, Json>,
    /// The name of the file, as in [`Source::name`](document::Source::name).
    pub file_name: Arc<str>,
    root_node: Node,
    /// Path of the object in its document, such as `items[3]`; empty for the document itself.
    at: String,
    line_index: Arc<LineIndex<'static>>,
}

/// Shows the position only: the object may hold secrets.
impl fmt::Debug for UnstructuredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SourcePosition { line, column, .. } = self.position();
        write!(f, "[at {}:{line}:{column}]", self.file_name)
    }
}

/// An object that is kept while the text is still borrowed.
pub(super) struct UnstructuredObjectBuilder {
    pub(super) value: Map<String, Json>,
    pub(super) root_node: Node,
    pub(super) at: String,
}

impl UnstructuredObjectBuilder {
    pub(super) fn into_unstructured_object(
        self,
        file: &Arc<str>,
        lines: &Arc<LineIndex<'static>>,
    ) -> UnstructuredObject {
        let Self { value, root_node: root, at } = self;
        UnstructuredObject {
            value,
            file_name: Arc::clone(file),
            root_node: root,
            at,
            line_index: Arc::clone(lines),
        }
    }
}

impl UnstructuredObject {
    /// Kubernetes' name of the kind.
    pub fn kind_name(&self) -> &str {
        text_member(&self.value, "kind")
    }

    /// The group and the version.
    pub fn api_version(&self) -> &str {
        text_member(&self.value, "apiVersion")
    }

    /// The namespace; empty if the object does not declare one.
    pub fn namespace(&self) -> &str {
        self.metadata("namespace")
    }

    /// The name; empty if the object does not declare one.
    pub fn name(&self) -> &str {
        self.metadata("name")
    }

    fn metadata(&self, name: &str) -> &str {
        let metadata = self.value.get("metadata").and_then(Json::as_object);
        metadata.map(|metadata| text_member(metadata, name)).unwrap_or_default()
    }

    /// The position of the object in the file.
    pub fn position(&self) -> SourcePosition {
        self.line_index.position_of_span(self.root_node.span)
    }

    /// Position of a field by its path in the object, such as `webhooks[0].name`, or of the object
    /// that lacks it.
    pub fn field_position(&self, path: &str) -> SourcePosition {
        self.line_index.position_of_span(locate_field(&self.root_node, path).span)
    }

    /// The path of a field in the file, where the object may be an item of a list.
    pub fn field_path_in_file(&self, path: &str) -> String {
        match (self.at.as_str(), path) {
            ("", path) => path.to_owned(),
            (at, "") => at.to_owned(),
            (at, path) => format!("{at}.{path}"),
        }
    }

    /// Builds the diagnostic of a field error, with the position of the value. An expression that
    /// does not compile has the position of each issue.
    pub fn field_diagnostic(&self, mut error: FieldError) -> Diagnostic {
        let located = locate_faulty_value(&self.root_node, &error);
        let is_tagged = located.value.is_some_and(|value| value.has_yaml_tag);
        let notes = located
            .value
            .map(|value| parse_expression_issues(value, &error.detail))
            .unwrap_or_default();
        let hint = match is_tagged {
            true => Some(hint::LEADING_BANG_HINT.to_owned()),
            false => hint_for_unsupported_value(&error),
        };
        error.path = self.field_path_in_file(&error.path);
        let span = notes.first().map_or(located.span, |note| note.span);
        self.to_diagnostic(SpannedFault {
            fault: Fault::Field(error),
            span,
            hint,
            expression_issues: notes,
        })
    }

    /// Builds the diagnostic of a field that the kind does not have. `known` lists the fields that its parent
    /// may have.
    pub fn unknown_field_diagnostic(&self, path: &str, known: &[&str]) -> Diagnostic {
        let name = path.rsplit('.').next().unwrap_or_default();
        let message = format!("unknown field {}", go_compat::quote(&self.field_path_in_file(path)));
        let hint = did_you_mean(name, known);
        let span = locate_field_key(&self.root_node, path);
        let problem =
            DecodeProblem::new(self.field_path_in_file(path), message, span).with_hint(hint);
        self.to_diagnostic(problem.into())
    }

    /// Builds the diagnostic of a value whose type is wrong.
    pub fn wrong_type_diagnostic(&self, path: &str, message: String) -> Diagnostic {
        let span = locate_field(&self.root_node, path).span;
        self.to_diagnostic(DecodeProblem::new(self.field_path_in_file(path), message, span).into())
    }

    /// Checks the metadata for unknown fields and wrong types.
    pub fn check_metadata(&self) -> Vec<Diagnostic> {
        let Some(metadata) = last_member(&self.root_node, "metadata") else { return Vec::new() };
        let at = match self.at.as_str() {
            "" => NodePath::ROOT,
            at => NodePath::ROOT.child_path(at),
        };
        let at = at.child_path("metadata");
        let mut problems =
            check_against_schema(self.line_index.text(), "v1", metadata, &OBJECT_META, &at)
                .into_sorted_problems();
        if !matches!(metadata.value, Value::Object(_) | Value::Null) {
            let message = format!("`metadata` must be an object, not {}", metadata.value.kind());
            problems.push(DecodeProblem::new(at.path_with_indices(), message, metadata.span));
        }
        problems.into_iter().map(|problem| self.to_diagnostic(problem.into())).collect()
    }

    fn to_diagnostic(&self, fault: SpannedFault) -> Diagnostic {
        fault.into_positioned_diagnostic(&self.file_name, &self.line_index)
    }
}

fn text_member<'t>(tree: &'t Map<String, Json>, name: &str) -> &'t str {
    tree.get(name).and_then(Json::as_str).unwrap_or_default()
}

/// Suggests the nearest of the supported values that the error lists.
fn hint_for_unsupported_value(error: &FieldError) -> Option<String> {
    let BadValue::Text(value) = &error.value else { return None };
    if error.kind != field_errors::FieldErrorKind::NotSupported {
        return None;
    }
    let supported: Vec<&str> = error.detail.split('"').skip(1).step_by(2).collect();
    did_you_mean(value, &supported)
}

/// Parses the compiler's messages about an expression into notes. The compiler writes one line per
/// issue, which begins with its line and column, and compiles the expression without surrounding
/// white space.
fn parse_expression_issues(value: &Node, detail: &str) -> Vec<SpannedExpressionIssue> {
    let Value::Text(text) = &value.value else { return Vec::new() };
    let begins = text.as_str().len() - text.as_str().trim_start().len();
    let note = |line: usize, column: usize, message: &str| SpannedExpressionIssue {
        message: message.to_owned(),
        line_in_expression: line,
        column_in_expression: column,
        span: span_of_expression_position(text, begins, (line, column), value.span),
        hint: None,
    };
    if detail.starts_with("must evaluate to ") {
        return vec![note(1, 1, detail)];
    }
    let Some(issues) = detail.strip_prefix("compilation failed: ") else { return Vec::new() };
    let read = |line: &str| {
        let (line, rest) = line.strip_prefix("ERROR: <input>:")?.split_once(':')?;
        let (column, message) = rest.split_once(": ")?;
        Some(note(line.parse().ok()?, column.parse().ok()?, message))
    };
    issues.lines().filter_map(read).collect()
}

/// Finds duplicate keys in an object of a JSON file. INVARIANT: nesting is bounded by
/// [`NESTING_MAX`](document::NESTING_MAX).
pub(super) fn find_duplicate_members(
    node: &Node,
    at: &NodePath<'_>,
    found: &mut Vec<DecodeProblem>,
) {
    match &node.value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {}
        Value::List(items) => {
            for (idx, item) in items.iter().enumerate() {
                find_duplicate_members(item, &at.index(idx), found);
            }
        }
        Value::Object(entries) => {
            let mut seen = HashSet::new();
            for entry in entries {
                let at = at.child_path(&entry.key);
                if !seen.insert(entry.key.as_str()) {
                    let path = at.path_with_indices();
                    let message = format!("duplicate field {}", go_compat::quote(&path));
                    found.push(DecodeProblem::new(path, message, entry.key_span));
                }
                find_duplicate_members(&entry.value, &at, found);
            }
        }
    }
}
