//! Parses the text of a file to a tree of values.

use crate::diagnostic::{SpannedFault, SpannedWarning, WarningCode};
use crate::node::Node;
use crate::schema_check::{DecodeError, DecodeProblem};
use crate::source::{DOCUMENT_BYTES_MAX, LineIndex, Source, Span};
use crate::{hint, json, yaml};

/// The parsed content of a file.
pub struct ParsedDocument {
    /// The value at the root of the document.
    pub root_node: Node,
    /// The duplicate keys of a YAML file. Those of a JSON file are still in the tree.
    pub duplicate_keys: Vec<DecodeProblem>,
}

/// A [`DecodeError`] before byte ranges become lines and columns.
#[derive(Debug)]
pub struct SpannedDecodeError {
    /// The message that Kubernetes prints, often only the first problem.
    pub kubernetes_message: String,
    /// Every problem of the file, also those that Kubernetes does not print.
    pub decode_problems: Vec<DecodeProblem>,
}

impl SpannedDecodeError {
    /// Replaces byte ranges by lines and columns and adds the file name.
    pub fn into_decode_error(self, file: &str, lines: &LineIndex<'_>) -> DecodeError {
        let problems = self.decode_problems.into_iter().map(SpannedFault::from);
        let diagnostics =
            problems.map(|fault| fault.into_positioned_diagnostic(file, lines)).collect();
        DecodeError { kubernetes_message: self.kubernetes_message, diagnostics }
    }

    /// The error of a file that is larger than [`DOCUMENT_BYTES_MAX`].
    pub fn file_too_large_error() -> Self {
        let message = format!("file is larger than {DOCUMENT_BYTES_MAX} bytes");
        DecodeProblem::new("", message, Span::default()).into()
    }
}

impl From<yaml::DuplicateKey> for DecodeProblem {
    fn from(duplicate: yaml::DuplicateKey) -> Self {
        let yaml::DuplicateKey { message, path, span, is_from_merge_key: _ } = duplicate;
        Self::new(path, message, span)
    }
}

impl From<DecodeProblem> for SpannedDecodeError {
    fn from(problem: DecodeProblem) -> Self {
        Self { kubernetes_message: problem.message.clone(), decode_problems: vec![problem] }
    }
}

/// Parses the one value of a file: JSON if its first character is `{`, else YAML, of which only the
/// first document counts. `text` and `malformed` come from [`Source::decode_text`].
pub fn parse_document(
    source: &Source<'_>,
    text: &str,
    malformed: Option<usize>,
    warnings: &mut Vec<SpannedWarning>,
) -> Result<ParsedDocument, DecodeProblem> {
    if source.is_json() {
        parse_json_document(text)
    } else {
        parse_yaml_document(text, malformed, warnings)
    }
}

fn parse_json_document(text: &str) -> Result<ParsedDocument, DecodeProblem> {
    let root = json::parse_json(text).map_err(|error| {
        let message = format!("couldn't get version/kind; json parse error: {}", error.message);
        DecodeProblem::new("", message, error.span)
    })?;
    Ok(ParsedDocument { root_node: root, duplicate_keys: Vec::new() })
}

fn parse_yaml_document(
    text: &str,
    malformed: Option<usize>,
    warnings: &mut Vec<SpannedWarning>,
) -> Result<ParsedDocument, DecodeProblem> {
    let composed = yaml::read_first_document(text, malformed).map_err(|error| {
        let hint = hint::hint_for_syntax_error(&error.message, text, error.span.start);
        DecodeProblem::new("", error.message, error.span).with_hint(hint)
    })?;
    let duplicate_keys = composed.duplicate_keys.into_iter().map(DecodeProblem::from);
    warnings.extend(composed.trailing_content_span.map(|span| SpannedWarning {
        code: WarningCode::SeveralDocuments,
        field: String::new(),
        message: "only the first document is read, and something follows it".to_owned(),
        span,
        hint: None,
    }));
    Ok(ParsedDocument { root_node: composed.root_node, duplicate_keys: duplicate_keys.collect() })
}
