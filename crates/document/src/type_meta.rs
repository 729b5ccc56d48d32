//! Reads `apiVersion` and `kind`, which identify the kind of a document.

use crate::node::{Node, Value};
use crate::schema_check::DecodeProblem;
use crate::source::Span;

/// Go's name of the type into which Kubernetes' decoder reads kind and version.
const META_TYPE: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// The kind that a document declares. Both fields may be empty.
#[derive(Debug)]
pub struct TypeMeta<'d> {
    /// The text of `apiVersion`.
    pub api_version: &'d str,
    /// The API group, empty for the core group.
    pub group: &'d str,
    /// The version without its group.
    pub version: &'d str,
    /// The text of `kind`.
    pub kind: &'d str,
    /// Span of `apiVersion`, or of the document if it is absent.
    pub api_version_span: Span,
    /// Span of `kind`, or of the document if it is absent.
    pub kind_span: Span,
}

impl<'d> TypeMeta<'d> {
    /// Reads the two fields of the root object.
    ///
    /// 1. The document must be an object, and both fields must be text or null. The comparison of
    ///    names ignores case, and the last of several spellings counts; the schema check reports
    ///    them later.
    /// 2. `apiVersion` must hold at most one slash.
    ///
    /// # Errors
    ///
    /// The first step that fails, in Kubernetes' words.
    pub fn from_root_node(root: &'d Node) -> Result<Self, DecodeProblem> {
        let (api_version, kind) = find_api_version_and_kind(root)?;
        let api_version_span = api_version.span.unwrap_or(root.span);
        let kind_span = kind.span.unwrap_or(root.span);
        let (group, version) = match api_version.value.split_once('/') {
            _ if matches!(api_version.value, "" | "/") => ("", ""),
            None => ("", api_version.value),
            Some((_, version)) if version.contains('/') => {
                let message = format!("unexpected GroupVersion string: {}", api_version.value);
                return Err(DecodeProblem::new("apiVersion", message, api_version_span));
            }
            Some(parts) => parts,
        };
        let api_version = api_version.value;
        Ok(Self { api_version, group, version, kind: kind.value, api_version_span, kind_span })
    }

    /// Kubernetes' message about an unknown kind. `scheme` is the name of the registry in the
    /// message.
    pub fn not_registered_message(&self, scheme: &str) -> String {
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

fn find_api_version_and_kind(root: &Node) -> Result<(Field<'_>, Field<'_>), DecodeProblem> {
    let prefix = "couldn't get version/kind; json parse error: json: cannot unmarshal";
    let entries = match &root.value {
        Value::Object(entries) => entries.as_slice(),
        Value::Null => &[],
        other => {
            let message = format!("{prefix} {} into Go value of type {META_TYPE}", other.kind());
            return Err(DecodeProblem::new("", message, root.span));
        }
    };
    let mut api_version = Field::default();
    let mut kind = Field::default();
    let mut first_fault = None;
    for entry in entries {
        let (name, field) = match fold_case(&entry.key).as_str() {
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
                first_fault.get_or_insert(DecodeProblem::new(name, message, entry.value.span));
            }
        }
    }
    match first_fault {
        Some(fault) => Err(fault),
        None => Ok((api_version, kind)),
    }
}

/// Folds the case of a name as Go's decoder does when it compares names.
fn fold_case(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            '\u{212a}' => 'k',
            '\u{17f}' => 's',
            c => c.to_ascii_lowercase(),
        })
        .collect()
}
