//! Identifies a document as a hook file.

use document::hint::did_you_mean;
use document::{DecodeProblem, Node, TypeMeta};

use super::schema::{API_VERSION, GROUP, KIND, VERSION};

/// The name of the registry of kinds in messages. Kubernetes does not have this group.
const SCHEME: &str = "external authorization hooks";

/// Finds the version of a hook file. The checks run in the order in which Kubernetes checks its own
/// kinds.
pub(super) fn identify_api_version(text: &str, root: &Node) -> Result<&'static str, DecodeProblem> {
    let meta = TypeMeta::from_root_node(root)?;
    if meta.kind.is_empty() {
        let message = format!("Object 'Kind' is missing in '{text}'");
        let hint = Some(format!("add `kind: {KIND}`"));
        return Err(DecodeProblem::new("kind", message, meta.kind_span).with_hint(hint));
    }
    if meta.version.is_empty() {
        let message = format!("Object 'apiVersion' is missing in '{text}'");
        let hint = Some(format!("add `apiVersion: {API_VERSION}`"));
        return Err(
            DecodeProblem::new("apiVersion", message, meta.api_version_span).with_hint(hint)
        );
    }
    if meta.group != GROUP || meta.version != VERSION {
        let hint = did_you_mean(meta.api_version, &[API_VERSION])
            .unwrap_or_else(|| format!("the version is `{API_VERSION}`"));
        let message = meta.not_registered_message(SCHEME);
        let problem = DecodeProblem::new("apiVersion", message, meta.api_version_span);
        return Err(problem.with_hint(Some(hint)));
    }
    if meta.kind != KIND {
        let message = meta.not_registered_message(SCHEME);
        return Err(DecodeProblem::new("kind", message, meta.kind_span)
            .with_hint(did_you_mean(meta.kind, &[KIND])));
    }
    Ok(VERSION)
}
