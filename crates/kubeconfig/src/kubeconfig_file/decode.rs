//! Decodes the bytes of a kubeconfig.

use document::{
    DOCUMENT_BYTES_MAX, DecodeError, DecodeProblem, DecodeProblems, LineIndex, Node, NodePath,
    Source, Span, SpannedDecodeError, SpannedWarning, TypeMeta, Warning, check_against_schema,
    parse_document,
};

use super::kubeconfig_reader::{Kubeconfig, read};
use super::schema::{CONFIG, KIND, VERSION};

/// The name of the client's registry of kinds, which its messages contain.
const SCHEME: &str = "k8s.io/client-go/tools/clientcmd/api/latest/latest.go:50";

/// The result of decoding a file.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedKubeconfig {
    /// The content of the file.
    pub kubeconfig: Kubeconfig,
    /// Warnings about accepted content.
    pub warnings: Vec<Warning>,
}

/// Decodes a kubeconfig. An empty file is an empty kubeconfig; unknown fields are ignored, and the
/// last of several equal keys counts.
///
/// # Errors
///
/// The file is larger than [`DOCUMENT_BYTES_MAX`], neither YAML nor JSON, of another kind, or contains
/// values of wrong types. No message shows a secret.
pub fn decode_kubeconfig(source: &Source<'_>) -> Result<DecodedKubeconfig, DecodeError> {
    let (text, malformed) = source.decode_text();
    let lines = LineIndex::new(&text);
    let mut warnings = Vec::new();
    match decode_kubeconfig_text(source, &text, malformed, &lines, &mut warnings) {
        Ok(kubeconfig) => {
            let warnings =
                warnings.into_iter().map(|it| it.into_positioned_warning(source.name, &lines));
            Ok(DecodedKubeconfig { kubeconfig, warnings: warnings.collect() })
        }
        Err(error) => Err(error.into_decode_error(source.name, &lines)),
    }
}

fn decode_kubeconfig_text(
    source: &Source<'_>,
    text: &str,
    malformed: Option<usize>,
    lines: &LineIndex<'_>,
    warnings: &mut Vec<SpannedWarning>,
) -> Result<Kubeconfig, SpannedDecodeError> {
    if source.file_bytes.len() > DOCUMENT_BYTES_MAX {
        return Err(SpannedDecodeError::file_too_large_error());
    }
    if source.file_bytes.is_empty() {
        return Ok(Kubeconfig::empty_kubeconfig(lines.position_of_span(Span::default())));
    }
    let root = parse_document(source, text, malformed, warnings)?.root_node;
    check_kind_and_version(&root)?;
    check_types(text, &root)?;
    Ok(read(&root, lines)?)
}

/// Checks kind and version. Both may be absent, but other values are errors.
fn check_kind_and_version(root: &Node) -> Result<(), DecodeProblem> {
    let mut meta = TypeMeta::from_root_node(root)?;
    if meta.kind.is_empty() {
        meta.kind = KIND;
    }
    if meta.group.is_empty() && meta.version.is_empty() {
        meta.version = VERSION;
    }
    if meta.group.is_empty() && meta.version == VERSION && meta.kind == KIND {
        return Ok(());
    }
    let (path, span) = if meta.kind == KIND {
        ("apiVersion", meta.api_version_span)
    } else {
        ("kind", meta.kind_span)
    };
    let message = meta.not_registered_message(SCHEME);
    Err(DecodeProblem { path: path.to_owned(), message, span, hint: None })
}

/// Checks types only: unknown and duplicate fields are accepted. A hint repeats the value, which
/// may be a secret, so problems of users get none.
fn check_types(text: &str, root: &Node) -> Result<(), SpannedDecodeError> {
    let found = check_against_schema(text, VERSION, root, &CONFIG, &NodePath::ROOT);
    let problems = DecodeProblems { wrong_types: found.wrong_types, ..DecodeProblems::default() };
    match problems.kubernetes_message() {
        None => Ok(()),
        Some(kubernetes_message) => {
            let mut problems = problems.into_sorted_problems();
            for problem in problems.iter_mut().filter(|problem| problem.path.starts_with("users")) {
                problem.hint = None;
            }
            Err(SpannedDecodeError { kubernetes_message, decode_problems: problems })
        }
    }
}
