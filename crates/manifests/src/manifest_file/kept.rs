//! Objects of kinds that the caller knows and this crate does not.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use document::decode::{self, At, Problem};
use document::hint::{self, suggestion};
use document::{Diagnostic, Fault, Finding, FindingNote, Lines, Node, Place, Value, span_within};
use field_errors::{BadValue, FieldError};
use serde_json::{Map, Value as Json};

use super::identity::member;
use super::locate::{locate, locate_fault, locate_key};
use crate::rbac::OBJECT_META;

/// What a reader does with objects of some kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// What it does with them anyway.
    No,
    /// Keeps them as they are.
    Whole,
    /// Refuses them: whoever wrote them most likely meant another kind.
    Mistaken {
        /// The field at fault: `apiVersion` or `kind`.
        field: &'static str,
        /// What was probably meant.
        hint: String,
    },
}

/// Decides about an `apiVersion` and a `kind`.
pub type Keeps<'a> = &'a dyn Fn(&str, &str) -> Keep;

/// An object of a kind that the caller asked for, as it was written.
///
/// Nothing about it was checked but that no key stands twice. It knows where everything in it stands,
/// so that whoever knows the kind can say where it is wrong.
#[derive(Clone)]
pub struct Kept {
    /// The object. An item of a list says what it is, even where the list said it for all.
    pub value: Map<String, Json>,
    /// The file, by the name that its source has.
    pub file: Arc<str>,
    root: Node,
    /// Where it is in its document, such as `items[3]`; empty for the document itself.
    at: String,
    lines: Arc<Lines<'static>>,
}

/// It prints its place only: the object may hold secrets.
impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column, .. } = self.place();
        write!(f, "[at {}:{line}:{column}]", self.file)
    }
}

/// An object that is kept while the text is still borrowed.
pub(super) struct Unfinished {
    pub(super) value: Map<String, Json>,
    pub(super) root: Node,
    pub(super) at: String,
}

impl Unfinished {
    pub(super) fn finish(self, file: &Arc<str>, lines: &Arc<Lines<'static>>) -> Kept {
        let Self { value, root, at } = self;
        Kept { value, file: Arc::clone(file), root, at, lines: Arc::clone(lines) }
    }
}

impl Kept {
    /// Kubernetes' name of the kind.
    pub fn kind_name(&self) -> &str {
        text(&self.value, "kind")
    }

    /// The group and the version.
    pub fn api_version(&self) -> &str {
        text(&self.value, "apiVersion")
    }

    /// The namespace; empty if the object does not say one.
    pub fn namespace(&self) -> &str {
        self.metadata("namespace")
    }

    /// The name; empty if the object does not say one.
    pub fn name(&self) -> &str {
        self.metadata("name")
    }

    fn metadata(&self, name: &str) -> &str {
        let metadata = self.value.get("metadata").and_then(Json::as_object);
        metadata.map(|metadata| text(metadata, name)).unwrap_or_default()
    }

    /// Where the object begins.
    pub fn place(&self) -> Place {
        self.lines.place(self.root.span)
    }

    /// Where a field is, by its path in the object such as `webhooks[0].name`, or what it is missing
    /// in.
    pub fn place_of(&self, path: &str) -> Place {
        self.lines.place(locate(&self.root, path).span)
    }

    /// The path of a field in the file, where the object may be an item of a list.
    pub fn field(&self, path: &str) -> String {
        match (self.at.as_str(), path) {
            ("", path) => path.to_owned(),
            (at, "") => at.to_owned(),
            (at, path) => format!("{at}.{path}"),
        }
    }

    /// A value that breaks a rule of its field, with the place of the value. An expression that does
    /// not compile has the place of each issue.
    pub fn fault(&self, mut error: FieldError) -> Diagnostic {
        let located = locate_fault(&self.root, &error);
        let is_tagged = located.value.is_some_and(|value| value.is_tagged);
        let notes = located.value.map(|value| notes(value, &error.detail)).unwrap_or_default();
        let hint = match is_tagged {
            true => Some(hint::LEADING_BANG.to_owned()),
            false => supported_hint(&error),
        };
        error.path = self.field(&error.path);
        let span = notes.first().map_or(located.span, |note| note.span);
        self.locate(Finding { fault: Fault::Field(error), span, hint, notes })
    }

    /// A field that the kind does not have. `known` are those that the object around it may have.
    pub fn unknown_field(&self, path: &str, known: &[&str]) -> Diagnostic {
        let name = path.rsplit('.').next().unwrap_or_default();
        let message = format!("unknown field {}", go_compat::quote(&self.field(path)));
        let hint = suggestion(name, known);
        let span = locate_key(&self.root, path);
        self.locate(Problem { path: self.field(path), message, span, hint }.into())
    }

    /// A value that is not what its field holds.
    pub fn wrong_type(&self, path: &str, message: String) -> Diagnostic {
        let span = locate(&self.root, path).span;
        self.locate(Problem { path: self.field(path), message, span, hint: None }.into())
    }

    /// What in the metadata is unknown or of a wrong type.
    pub fn metadata_faults(&self) -> Vec<Diagnostic> {
        let Some(metadata) = member(&self.root, "metadata") else { return Vec::new() };
        let at = match self.at.as_str() {
            "" => At::ROOT,
            at => At::ROOT.child(at),
        };
        let at = at.child("metadata");
        let mut problems =
            decode::check(self.lines.text(), "v1", metadata, &OBJECT_META, &at).into_sorted();
        if !matches!(metadata.value, Value::Object(_) | Value::Null) {
            let message = format!("`metadata` must be an object, not {}", metadata.value.kind());
            problems.push(Problem { path: at.indexed(), message, span: metadata.span, hint: None });
        }
        problems.into_iter().map(|problem| self.locate(problem.into())).collect()
    }

    fn locate(&self, finding: Finding) -> Diagnostic {
        finding.locate(&self.file, &self.lines)
    }
}

fn text<'t>(tree: &'t Map<String, Json>, name: &str) -> &'t str {
    tree.get(name).and_then(Json::as_str).unwrap_or_default()
}

/// Which of the supported values was probably meant, as far as the error names them.
fn supported_hint(error: &FieldError) -> Option<String> {
    let BadValue::Text(value) = &error.value else { return None };
    if error.kind != field_errors::FieldErrorKind::NotSupported {
        return None;
    }
    let supported: Vec<&str> = error.detail.split('"').skip(1).step_by(2).collect();
    suggestion(value, &supported)
}

/// What the compiler says about an expression, each at its own place. It writes all issues into one
/// text, a line for each that begins with the place, and is not given the white space around it.
fn notes(value: &Node, detail: &str) -> Vec<FindingNote> {
    let Value::Text(text) = &value.value else { return Vec::new() };
    let begins = text.as_str().len() - text.as_str().trim_start().len();
    let note = |line: usize, column: usize, message: &str| FindingNote {
        message: message.to_owned(),
        line,
        column,
        span: span_within(text, begins, (line, column), value.span),
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

/// Keys that stand twice in an object of a JSON file. INVARIANT: nesting is bounded by
/// [`NESTING_MAX`](document::NESTING_MAX).
pub(super) fn duplicate_members(node: &Node, at: &At<'_>, found: &mut Vec<Problem>) {
    match &node.value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {}
        Value::List(items) => {
            for (idx, item) in items.iter().enumerate() {
                duplicate_members(item, &at.index(idx), found);
            }
        }
        Value::Object(entries) => {
            let mut seen = HashSet::new();
            for entry in entries {
                let at = at.child(&entry.key);
                if !seen.insert(entry.key.as_str()) {
                    let path = at.indexed();
                    let message = format!("duplicate field {}", go_compat::quote(&path));
                    found.push(Problem { path, message, span: entry.key_span, hint: None });
                }
                duplicate_members(&entry.value, &at, found);
            }
        }
    }
}
