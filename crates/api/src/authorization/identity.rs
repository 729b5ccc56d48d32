//! Which kind a document says it is.

use super::shapes::{API_VERSIONS, GROUP, KIND, VERSIONS};
use crate::decode::Problem;
use crate::document::{Node, Value};
use crate::hint::suggestion;
use crate::source::Span;

/// The decoder's name of the type that it looks for kind and version in.
const META_TYPE: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Where Kubernetes keeps the registry of kinds; its messages say so.
const SCHEME: &str = "k8s.io/apiserver/pkg/apis/apiserver/load/load.go:32";

/// Kinds of the group, in each version, that are not ours to read.
const OTHER_KINDS: [(&str, &[&str]); 3] = [
    (
        "v1",
        &[
            "AdmissionConfiguration",
            "AuthenticationConfiguration",
            "EncryptionConfiguration",
            "TracingConfiguration",
        ],
    ),
    ("v1beta1", &["AuthenticationConfiguration", "TracingConfiguration"]),
    ("v1alpha1", &["AuthenticationConfiguration", "TracingConfiguration"]),
];

/// One of the two fields that identify a document.
#[derive(Default)]
struct Field<'d> {
    value: &'d str,
    span: Option<Span>,
}

/// Finds the version of an `AuthorizationConfiguration`, or says why the document is none.
///
/// The checks come in Kubernetes' order:
/// 1. the document is an object, and both fields are text or null. This first look ignores case
///    and takes the last of several spellings; the strict walk complains about them later.
/// 2. there is at most one slash in `apiVersion`;
/// 3. `kind` is there; 4. a version is there;
/// 5. the kind is known in that group and version; 6. it is the one that is expected.
pub(super) fn identify(text: &str, root: &Node) -> Result<&'static str, Problem> {
    let (api_version, kind) = find_fields(root)?;
    let at_version = api_version.span.unwrap_or(root.span);
    let at_kind = kind.span.unwrap_or(root.span);

    let (group, version) = match api_version.value.split_once('/') {
        _ if matches!(api_version.value, "" | "/") => ("", ""),
        None => ("", api_version.value),
        Some((_, version)) if version.contains('/') => {
            let message = format!("unexpected GroupVersion string: {}", api_version.value);
            return Err(problem("apiVersion", message, at_version, None));
        }
        Some(parts) => parts,
    };
    if kind.value.is_empty() {
        let message = format!("Object 'Kind' is missing in '{text}'");
        let hint = format!("add `kind: {KIND}`");
        return Err(problem("kind", message, at_kind, Some(hint)));
    }
    if version.is_empty() {
        let message = format!("Object 'apiVersion' is missing in '{text}'");
        let hint = format!("add `apiVersion: {}`", API_VERSIONS[0]);
        return Err(problem("apiVersion", message, at_version, Some(hint)));
    }
    let known = VERSIONS.into_iter().find(|&known| group == GROUP && known == version);
    let others = OTHER_KINDS.iter().find(|(other, _)| known == Some(*other));
    match known {
        Some(known) if kind.value == KIND => Ok(known),
        Some(_) if others.is_some_and(|(_, kinds)| kinds.contains(&kind.value)) => {
            let message = format!("expected {KIND}, got *apiserver.{}", kind.value);
            Err(problem("kind", message, at_kind, None))
        }
        known => {
            let full_version = match group {
                "" => version.to_owned(),
                group => format!("{group}/{version}"),
            };
            let message = format!(
                "no kind {} is registered for version {} in scheme {}",
                gotext::quote(kind.value),
                gotext::quote(&full_version),
                gotext::quote(SCHEME),
            );
            Err(match known {
                Some(_) => problem("kind", message, at_kind, suggestion(kind.value, &[KIND])),
                None => {
                    let hint = suggestion(api_version.value, &API_VERSIONS)
                        .unwrap_or_else(|| format!("the version is `{}`", API_VERSIONS[0]));
                    problem("apiVersion", message, at_version, Some(hint))
                }
            })
        }
    }
}

fn find_fields(root: &Node) -> Result<(Field<'_>, Field<'_>), Problem> {
    let prefix = "couldn't get version/kind; json parse error: json: cannot unmarshal";
    let entries = match &root.value {
        Value::Object(entries) => entries.as_slice(),
        Value::Null => &[],
        other => {
            let message = format!("{prefix} {} into Go value of type {META_TYPE}", other.kind());
            return Err(problem("", message, root.span, None));
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
                first_fault.get_or_insert(problem(name, message, entry.value.span, None));
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

fn problem(path: &str, message: String, span: Span, hint: Option<String>) -> Problem {
    Problem { path: path.to_owned(), message, span, hint }
}
