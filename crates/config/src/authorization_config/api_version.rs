//! Identifies the kind and version of a document.

use document::hint::did_you_mean;
use document::{DecodeProblem, Node, TypeMeta};

use super::schema::{API_VERSIONS, GROUP, KIND, PREFERRED_API_VERSION, VERSIONS};

/// The name of Kubernetes' registry of kinds, which its messages contain.
const SCHEME: &str = "k8s.io/apiserver/pkg/apis/apiserver/load/load.go:32";

/// Kinds of the group by version that exist in Kubernetes but are not supported here. Kubernetes has
/// its own error message for them.
const UNSUPPORTED_KINDS: [(&str, &[&str]); 3] = [
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

/// Finds the version of an `AuthorizationConfiguration`.
///
/// The checks run in Kubernetes' order:
/// 1. The two fields are well-formed.
/// 2. `kind` is not empty.
/// 3. The version is not empty.
/// 4. The kind is registered in that group and version.
/// 5. The kind is `AuthorizationConfiguration`.
///
/// # Errors
///
/// The first check that fails.
pub(super) fn identify_api_version(text: &str, root: &Node) -> Result<&'static str, DecodeProblem> {
    let meta = TypeMeta::from_root_node(root)?;
    let TypeMeta { api_version_span, kind_span, .. } = meta;
    if meta.kind.is_empty() {
        let message = format!("Object 'Kind' is missing in '{text}'");
        let hint = format!("add `kind: {KIND}`");
        return Err(DecodeProblem::new("kind", message, kind_span).with_hint(Some(hint)));
    }
    if meta.version.is_empty() {
        let message = format!("Object 'apiVersion' is missing in '{text}'");
        let hint = format!("add `apiVersion: {}`", PREFERRED_API_VERSION);
        let problem = DecodeProblem::new("apiVersion", message, api_version_span);
        return Err(problem.with_hint(Some(hint)));
    }
    let known = VERSIONS.into_iter().find(|&known| meta.group == GROUP && known == meta.version);
    let others = UNSUPPORTED_KINDS.iter().find(|(other, _)| known == Some(*other));
    match known {
        Some(known) if meta.kind == KIND => Ok(known),
        Some(_) if others.is_some_and(|(_, kinds)| kinds.contains(&meta.kind)) => {
            let message = format!("expected {KIND}, got *apiserver.{}", meta.kind);
            Err(DecodeProblem::new("kind", message, kind_span))
        }
        known => {
            let message = meta.not_registered_message(SCHEME);
            Err(match known {
                Some(_) => DecodeProblem::new("kind", message, kind_span)
                    .with_hint(did_you_mean(meta.kind, &[KIND])),
                None => {
                    let hint = did_you_mean(meta.api_version, &API_VERSIONS)
                        .unwrap_or_else(|| format!("the version is `{}`", PREFERRED_API_VERSION));
                    DecodeProblem::new("apiVersion", message, api_version_span)
                        .with_hint(Some(hint))
                }
            })
        }
    }
}
