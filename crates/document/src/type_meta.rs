//! The two fields that say what a document is.

use crate::decode::Problem;
use crate::node::{Node, Value};
use crate::source::Span;

/// The decoder's name of the type that it looks for kind and version in.
const META_TYPE: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// What a document says that it is. Both may be empty.
#[derive(Debug)]
pub struct TypeMeta<'d> {
    pub api_version: &'d str,
    pub group: &'d str,
    pub version: &'d str,
    pub kind: &'d str,
    /// Where the version stands, or the document if there is none.
    pub at_version: Span,
    /// Where the kind stands, or the document if there is none.
    pub at_kind: Span,
}

impl<'d> TypeMeta<'d> {
    /// Finds the two fields.
    ///
    /// 1. The document is an object, and both fields are text or null. This first look ignores case
    ///    and takes the last of several spellings; a strict walk complains about them later.
    /// 2. There is at most one slash in `apiVersion`.
    pub fn read(root: &'d Node) -> Result<Self, Problem> {
        let (api_version, kind) = find_fields(root)?;
        let at_version = api_version.span.unwrap_or(root.span);
        let at_kind = kind.span.unwrap_or(root.span);
        let (group, version) = match api_version.value.split_once('/') {
            _ if matches!(api_version.value, "" | "/") => ("", ""),
            None => ("", api_version.value),
            Some((_, version)) if version.contains('/') => {
                let message = format!("unexpected GroupVersion string: {}", api_version.value);
                return Err(problem("apiVersion", message, at_version));
            }
            Some(parts) => parts,
        };
        let api_version = api_version.value;
        Ok(Self { api_version, group, version, kind: kind.value, at_version, at_kind })
    }

    /// What Kubernetes says about a kind that it does not know. `scheme` is the name of the
    /// registry that it looked in.
    pub fn not_registered(&self, scheme: &str) -> String {
        let full_version = match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        };
        format!(
            "no kind {} is registered for version {} in scheme {}",
            go_compat::quote(self.kind),
            go_compat::quote(&full_version),
            go_compat::quote(scheme),
        )
    }
}

/// One of the two fields that identify a document.
#[derive(Default)]
struct Field<'d> {
    value: &'d str,
    span: Option<Span>,
}

fn find_fields(root: &Node) -> Result<(Field<'_>, Field<'_>), Problem> {
    let prefix = "couldn't get version/kind; json parse error: json: cannot unmarshal";
    let entries = match &root.value {
        Value::Object(entries) => entries.as_slice(),
        Value::Null => &[],
        other => {
            let message = format!("{prefix} {} into Go value of type {META_TYPE}", other.kind());
            return Err(problem("", message, root.span));
        }
    };
    let mut api_version = Field::default();
    let mut kind = Field::default();
    let mut first_fault = None;
    for entry in entries {
        let (name, field) = match folded(&entry.key).as_str() {
            "apiversion" => ("apiVersion", &mut api_version),
            "kind" => ("kind", &mut kind),
            _ => continue,
        };
        match &entry.value.value {
            Value::Text(text) => {
                *field = Field { value: text.as_str(), span: Some(entry.value.span) };
            }
            Value::Null => field.span = field.span.or(Some(entry.value.span)),
            other => {
                let found = other.kind();
                let message =
                    format!("{prefix} {found} into Go struct field .{name} of type string");
                first_fault.get_or_insert(problem(name, message, entry.value.span));
            }
        }
    }
    match first_fault {
        Some(fault) => Err(fault),
        None => Ok((api_version, kind)),
    }
}

/// A name as Go's decoder compares names when case does not count.
fn folded(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            '\u{212a}' => 'k',
            '\u{17f}' => 's',
            c => c.to_ascii_lowercase(),
        })
        .collect()
}

fn problem(path: &str, message: String, span: Span) -> Problem {
    Problem { path: path.to_owned(), message, span, hint: None }
}
