//! From the text of a file to the tree of its values.

use crate::diagnostic::{SpannedWarning, WarningCode};
use crate::node::Node;
use crate::schema_check::DecodeProblem;
use crate::source::{Source, Span};
use crate::{hint, json, yaml};

/// The parsed content of a file.
pub struct ParsedDocument {
    /// The value at the root of the document.
    pub root: Node,
    /// The duplicate keys of a YAML file. Those of a JSON file are still in the tree.
    pub duplicate_keys: Vec<DecodeProblem>,
}

/// The problems that prevent a file from being decoded.
#[derive(Debug)]
pub struct DecodeFailure {
    /// The message that Kubernetes prints, often only the first problem.
    pub kubernetes_message: String,
    /// Every problem of the file, also those that Kubernetes does not print.
    pub problems: Vec<DecodeProblem>,
}

impl From<DecodeProblem> for DecodeFailure {
    fn from(problem: DecodeProblem) -> Self {
        Self { kubernetes_message: problem.message.clone(), problems: vec![problem] }
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
        file_problem(message, error.span)
    })?;
    Ok(ParsedDocument { root, duplicate_keys: Vec::new() })
}

fn parse_yaml_document(
    text: &str,
    malformed: Option<usize>,
    warnings: &mut Vec<SpannedWarning>,
) -> Result<ParsedDocument, DecodeProblem> {
    let composed = yaml::read_first_document(text, malformed).map_err(|error| DecodeProblem {
        hint: hint::hint_for_syntax_error(&error.message, text, error.span.start),
        ..file_problem(error.message, error.span)
    })?;
    let duplicate_keys = composed.duplicates.into_iter().map(|duplicate| DecodeProblem {
        path: duplicate.path,
        message: duplicate.message,
        span: duplicate.span,
        hint: None,
    });
    warnings.extend(composed.trailing_content.map(|span| SpannedWarning {
        code: WarningCode::SeveralDocuments,
        field: String::new(),
        message: "only the first document is read, and something follows it".to_owned(),
        span,
        hint: None,
    }));
    Ok(ParsedDocument { root: composed.root, duplicate_keys: duplicate_keys.collect() })
}

/// A problem of no field in particular.
pub fn file_problem(message: String, span: Span) -> DecodeProblem {
    DecodeProblem { path: String::new(), message, span, hint: None }
}
