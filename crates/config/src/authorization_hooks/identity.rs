//! Whether a document is a file of hooks.

use document::decode::Problem;
use document::hint::suggestion;
use document::{Node, Span, TypeMeta};

use super::shapes::{API_VERSION, GROUP, KIND, VERSION};

/// What messages call the registry of the kinds of the group, which Kubernetes does not have.
const SCHEME: &str = "external authorization hooks";

/// Finds the version, or says why the document is no file of hooks, in the order in which
/// Kubernetes looks at its own kinds.
pub(super) fn identify(text: &str, root: &Node) -> Result<&'static str, Problem> {
    let meta = TypeMeta::read(root)?;
    if meta.kind.is_empty() {
        let message = format!("Object 'Kind' is missing in '{text}'");
        return Err(problem("kind", message, meta.at_kind, Some(format!("add `kind: {KIND}`"))));
    }
    if meta.version.is_empty() {
        let message = format!("Object 'apiVersion' is missing in '{text}'");
        let hint = Some(format!("add `apiVersion: {API_VERSION}`"));
        return Err(problem("apiVersion", message, meta.at_version, hint));
    }
    if meta.group != GROUP || meta.version != VERSION {
        let hint = suggestion(meta.api_version, &[API_VERSION])
            .unwrap_or_else(|| format!("the version is `{API_VERSION}`"));
        let message = meta.not_registered(SCHEME);
        return Err(problem("apiVersion", message, meta.at_version, Some(hint)));
    }
    if meta.kind != KIND {
        let hint = suggestion(meta.kind, &[KIND]);
        return Err(problem("kind", meta.not_registered(SCHEME), meta.at_kind, hint));
    }
    Ok(VERSION)
}

fn problem(path: &str, message: String, span: Span, hint: Option<String>) -> Problem {
    Problem { path: path.to_owned(), message, span, hint }
}
