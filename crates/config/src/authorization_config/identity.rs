//! Which kind a document says it is.

use document::decode::Problem;
use document::hint::suggestion;
use document::{Node, Span, TypeMeta};

use super::shapes::{API_VERSIONS, GROUP, KIND, VERSIONS};

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

/// Finds the version of an `AuthorizationConfiguration`, or says why the document is none.
///
/// The checks come in Kubernetes' order:
/// 1. the two fields are well-formed;
/// 2. `kind` is there; 3. a version is there;
/// 4. the kind is known in that group and version; 5. it is the one that is expected.
pub(super) fn identify(text: &str, root: &Node) -> Result<&'static str, Problem> {
    let meta = TypeMeta::read(root)?;
    let TypeMeta { at_version, at_kind, .. } = meta;
    if meta.kind.is_empty() {
        let message = format!("Object 'Kind' is missing in '{text}'");
        let hint = format!("add `kind: {KIND}`");
        return Err(problem("kind", message, at_kind, Some(hint)));
    }
    if meta.version.is_empty() {
        let message = format!("Object 'apiVersion' is missing in '{text}'");
        let hint = format!("add `apiVersion: {}`", API_VERSIONS[0]);
        return Err(problem("apiVersion", message, at_version, Some(hint)));
    }
    let known = VERSIONS.into_iter().find(|&known| meta.group == GROUP && known == meta.version);
    let others = OTHER_KINDS.iter().find(|(other, _)| known == Some(*other));
    match known {
        Some(known) if meta.kind == KIND => Ok(known),
        Some(_) if others.is_some_and(|(_, kinds)| kinds.contains(&meta.kind)) => {
            let message = format!("expected {KIND}, got *apiserver.{}", meta.kind);
            Err(problem("kind", message, at_kind, None))
        }
        known => {
            let message = meta.not_registered(SCHEME);
            Err(match known {
                Some(_) => problem("kind", message, at_kind, suggestion(meta.kind, &[KIND])),
                None => {
                    let hint = suggestion(meta.api_version, &API_VERSIONS)
                        .unwrap_or_else(|| format!("the version is `{}`", API_VERSIONS[0]));
                    problem("apiVersion", message, at_version, Some(hint))
                }
            })
        }
    }
}

fn problem(path: &str, message: String, span: Span, hint: Option<String>) -> Problem {
    Problem { path: path.to_owned(), message, span, hint }
}
