//! From the bytes of a file to its decoded form.

use document::decode::{self, At, Problem, Problems};
use document::tree::{self, Undecodable};
use document::{
    Caution, DOCUMENT_BYTES_MAX, DecodeError, Diagnostic, Finding, Lines, Node, Source, Span,
    TypeMeta, Warning,
};

use super::read::{Kubeconfig, read};
use super::shapes::{CONFIG, KIND, VERSION};

/// Where clients of Kubernetes keep the registry of kinds; their messages say so.
const SCHEME: &str = "k8s.io/client-go/tools/clientcmd/api/latest/latest.go:50";

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The file.
    pub kubeconfig: Kubeconfig,
    /// What is accepted but should be changed.
    pub warnings: Vec<Warning>,
}

/// Decodes a kubeconfig. An empty file is one that says nothing; unknown fields are ignored, and
/// the last of several equal keys counts.
///
/// # Errors
///
/// The file is larger than [`DOCUMENT_BYTES_MAX`], neither YAML nor JSON, of another kind, or holds
/// values of other types. No message shows a secret.
pub fn decode(source: &Source<'_>) -> Result<Decoded, DecodeError> {
    let (text, malformed) = source.decode();
    let lines = Lines::new(&text);
    let mut cautions = Vec::new();
    match decode_text(source, &text, malformed, &lines, &mut cautions) {
        Ok(kubeconfig) => {
            let warnings = cautions.into_iter().map(|it| it.locate(source.name, &lines));
            Ok(Decoded { kubeconfig, warnings: warnings.collect() })
        }
        Err(Undecodable { cause, problems }) => {
            let locate = |problem| Finding::from(problem).locate(source.name, &lines);
            let diagnostics: Vec<Diagnostic> = problems.into_iter().map(locate).collect();
            Err(DecodeError { cause, diagnostics })
        }
    }
}

fn decode_text(
    source: &Source<'_>,
    text: &str,
    malformed: Option<usize>,
    lines: &Lines<'_>,
    cautions: &mut Vec<Caution>,
) -> Result<Kubeconfig, Undecodable> {
    if source.bytes.len() > DOCUMENT_BYTES_MAX {
        let message = format!("file is larger than {DOCUMENT_BYTES_MAX} bytes");
        return Err(tree::whole_file(message, Span::default()).into());
    }
    if source.bytes.is_empty() {
        return Ok(Kubeconfig::empty(lines.place(Span::default())));
    }
    let root = tree::read(source, text, malformed, cautions)?.root;
    identify(&root)?;
    check_types(text, &root)?;
    Ok(read(&root, lines)?)
}

/// Kind and version may be absent, but they may not be others.
fn identify(root: &Node) -> Result<(), Problem> {
    let mut meta = TypeMeta::read(root)?;
    if meta.kind.is_empty() {
        meta.kind = KIND;
    }
    if meta.group.is_empty() && meta.version.is_empty() {
        meta.version = VERSION;
    }
    if meta.group.is_empty() && meta.version == VERSION && meta.kind == KIND {
        return Ok(());
    }
    let (path, span) =
        if meta.kind == KIND { ("apiVersion", meta.at_version) } else { ("kind", meta.at_kind) };
    let message = meta.not_registered(SCHEME);
    Err(Problem { path: path.to_owned(), message, span, hint: None })
}

/// Unknown and duplicate fields are not looked at. Hints repeat what is written, so a user gets
/// none.
fn check_types(text: &str, root: &Node) -> Result<(), Undecodable> {
    let found = decode::check(text, VERSION, root, &CONFIG, &At::ROOT);
    let problems = Problems { types: found.types, ..Problems::default() };
    match problems.cause() {
        None => Ok(()),
        Some(cause) => {
            let mut problems = problems.into_sorted();
            for problem in problems.iter_mut().filter(|problem| problem.path.starts_with("users")) {
                problem.hint = None;
            }
            Err(Undecodable { cause, problems })
        }
    }
}
