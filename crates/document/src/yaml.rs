//! YAML as Kubernetes reads it.
//!
//! Kubernetes' reader descends from libyaml and implements YAML 1.1: `yes` is a boolean, `0777` is
//! an octal number, `?` ends a plain scalar in flow context, a `%YAML 1.2` directive is refused. A
//! YAML 1.2 parser would accept and refuse other files. This reader therefore follows libyaml's
//! rules step by step. It records the span of every key and of every character of a scalar, and it
//! bounds depth and size.
//!
//! `authz-webhook` has a second, much smaller YAML reader for the answers of webhooks. An answer comes from
//! the network and has a handful of fields, so that reader accepts only nested block mappings of scalars.
//! Files may use all of YAML 1.1.
//!
//! The phases:
//!
//! 1. [`cursor`] walks over characters; [`scanner`] cuts them into tokens, with [`scan_scalar`] and
//!    [`tags_and_directives`] for the longer ones.
//! 2. [`parser`] turns tokens into a tree that still has anchors, aliases and tags, with
//!    [`collection`] for sequences and mappings.
//! 3. [`compose`] expands aliases and merge keys, gives scalars their types ([`resolve_scalar`]) and
//!    records duplicate keys.

mod compose;
mod cursor;
mod parse_collections;
mod parser;
mod resolve_scalar;
mod scan_scalar;
mod scanner;
mod tags_and_directives;
#[cfg(test)]
mod tests;

use crate::node::{DocumentLimits, Node};
use crate::source::Span;
use parser::Parser;

/// One YAML document as a tree of values, after its aliases are expanded.
#[derive(Debug)]
pub struct YamlDocument {
    /// The value at the root of the document.
    pub root_node: Node,
    /// Keys that a mapping holds twice, in the order of discovery.
    pub duplicate_keys: Vec<DuplicateKey>,
    /// Span of content after the first document, which Kubernetes ignores in a configuration.
    pub trailing_content_span: Option<Span>,
}

/// A key that was already set in its mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct DuplicateKey {
    /// Kubernetes' message, such as `line 7: key "name" already set in map`.
    pub message: String,
    /// Kubernetes' path of the key, such as `authorizers[0].name`.
    pub path: String,
    /// Span of the second key.
    pub span: Span,
    /// Whether one of the two keys comes from a merge key `<<`. Such a key is meant to be set again; only Kubernetes'
    /// strict decoder of configurations refuses it.
    pub is_from_merge_key: bool,
}

/// A YAML syntax error, or a value that JSON cannot express.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// Kubernetes' message, such as `yaml: line 3: could not find expected ':'`.
    pub message: String,
    /// The bytes at which the reader stopped.
    pub span: Span,
}

impl YamlError {
    fn new(message: impl std::fmt::Display, span: Span) -> Self {
        Self { message: format!("yaml: {message}"), span }
    }
}

/// The size of the chunks in which Kubernetes' reader reads a file, in bytes.
const READ_CHUNK_BYTES: usize = 512;

/// The number of bytes that the scanner reads ahead.
const LOOKAHEAD_BYTES: usize = 4;

/// Reads the first document of a text. `malformed` is the offset of the first malformed character.
///
/// A character that YAML forbids is an error only if Kubernetes' reader would read its chunk: the
/// content after the first document is ignored, valid or not.
///
/// # Errors
///
/// The text is not YAML, or JSON cannot express it.
pub fn read_first_document(
    text: &str,
    malformed: Option<usize>,
) -> Result<YamlDocument, YamlError> {
    let bad = find_forbidden_character(text, malformed);
    let readable = bad.as_ref().and_then(|bad| text.get(..bad.span.start)).unwrap_or(text);
    let limits = DocumentLimits::CONFIGURATION;
    let mut parser = Parser::new(readable, limits.nodes_max);
    let tree = parser.parse_first_document();
    if let Some(bad) = &bad {
        let piece = (parser.n_consumed_bytes() + LOOKAHEAD_BYTES) / READ_CHUNK_BYTES;
        if bad.span.start < (piece + 1) * READ_CHUNK_BYTES {
            return Err(bad.clone());
        }
    }
    let mut composed = compose::expand_aliases(readable, &tree?, limits)?;
    composed.trailing_content_span = parser.find_trailing_content().or(bad.map(|bad| bad.span));
    Ok(composed)
}

/// Reads all documents of a text, one at a time. The iterator ends after the first error.
///
/// Unlike [`read_first_document`] it refuses a character that YAML forbids anywhere in the text.
pub fn read_documents(
    text: &str,
    malformed: Option<usize>,
    limits: DocumentLimits,
) -> impl Iterator<Item = Result<YamlDocument, YamlError>> {
    let mut bad = find_forbidden_character(text, malformed);
    let mut parser = Parser::new(text, limits.nodes_max);
    let mut state = DocumentStreamState::BeforeFirst;
    std::iter::from_fn(move || {
        let tree = match (bad.take(), &state) {
            (Some(bad), _) => Err(bad),
            (None, DocumentStreamState::BeforeFirst) => parser.parse_first_document().map(Some),
            (None, DocumentStreamState::AfterFirst) => parser.parse_next_document(),
            (None, DocumentStreamState::Finished) => return None,
        };
        state = DocumentStreamState::AfterFirst;
        let composed = match tree {
            Ok(None) => None,
            Ok(Some(tree)) => Some(compose::expand_aliases(text, &tree, limits)),
            Err(error) => Some(Err(error)),
        };
        if !matches!(composed, Some(Ok(_))) {
            state = DocumentStreamState::Finished;
        }
        composed
    })
}

/// The progress of reading a sequence of documents.
enum DocumentStreamState {
    BeforeFirst,
    AfterFirst,
    Finished,
}

/// Finds the first character that YAML forbids.
fn find_forbidden_character(text: &str, malformed: Option<usize>) -> Option<YamlError> {
    let control =
        text.char_indices().find(|&(_, c)| !cursor::is_yaml_character(c)).map(|(at, _)| at);
    let (at, problem) = match (malformed, control) {
        (Some(malformed), control) if control.is_none_or(|control| malformed <= control) => {
            (malformed, "invalid UTF-8")
        }
        (_, control) => (control?, "control characters are not allowed"),
    };
    Some(YamlError::new(problem, Span::new(at, at)))
}
