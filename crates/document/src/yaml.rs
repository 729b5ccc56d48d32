//! YAML as Kubernetes reads it.
//!
//! Kubernetes' reader descends from libyaml and speaks YAML 1.1: `yes` is a boolean, `0777` is an
//! octal number, `?` ends a plain scalar in flow context, a `%YAML 1.2` directive is refused. A
//! reader of YAML 1.2 would accept and refuse other files, so this is one of our own that follows
//! libyaml's rules step by step, knows the place of every key and of every character of a scalar,
//! and is bounded in depth and size. The phases:
//!
//! 1. [`cursor`] walks over characters; [`scanner`] cuts them into tokens, with [`scalar`] and
//!    [`tag`] for the longer ones.
//! 2. [`parser`] turns tokens into a tree that still has anchors, aliases and tags, with
//!    [`collection`] for sequences and mappings.
//! 3. [`compose`] expands aliases and merge keys, gives scalars their types ([`resolve`]) and
//!    notes duplicate keys.

mod collection;
mod compose;
mod cursor;
mod parser;
mod resolve;
mod scalar;
mod scanner;
mod tag;
#[cfg(test)]
mod tests;

use crate::node::{Limits, Node};
use crate::source::Span;
use parser::Parser;

/// What a document holds.
#[derive(Debug)]
pub struct Composed {
    /// Its root value.
    pub root: Node,
    /// Keys that a mapping holds twice, in the order of discovery.
    pub duplicates: Vec<Duplicate>,
    /// Where something follows the first document; Kubernetes ignores it in a configuration.
    pub rest: Option<Span>,
}

/// A key that was already set in its mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Duplicate {
    /// Kubernetes' words, such as `line 7: key "name" already set in map`.
    pub message: String,
    /// Kubernetes' path of the key, such as `authorizers[0].name`.
    pub path: String,
    /// The second key.
    pub span: Span,
}

/// Why a text is not YAML, or not YAML that JSON can express.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlError {
    /// Kubernetes' words, such as `yaml: line 3: could not find expected ':'`.
    pub message: String,
    pub span: Span,
}

impl YamlError {
    fn new(message: impl std::fmt::Display, span: Span) -> Self {
        Self { message: format!("yaml: {message}"), span }
    }
}

/// Kubernetes' reader looks at a file in pieces of this many bytes.
const PIECE_BYTES: usize = 512;

/// How far the scanner looks ahead of its place.
const LOOKAHEAD_BYTES: usize = 4;

/// Reads the first document of a text. `malformed` is where it was not well encoded.
///
/// A character that may not stand in YAML is refused only if Kubernetes' reader would have come to
/// its piece of the file: what follows the first document is ignored, good or bad.
pub fn read(text: &str, malformed: Option<usize>) -> Result<Composed, YamlError> {
    let bad = find_bad_character(text, malformed);
    let readable = bad.as_ref().and_then(|bad| text.get(..bad.span.start)).unwrap_or(text);
    let limits = Limits::CONFIGURATION;
    let mut parser = Parser::new(readable, limits.nodes_max);
    let tree = parser.first_document();
    if let Some(bad) = &bad {
        let piece = (parser.read_to() + LOOKAHEAD_BYTES) / PIECE_BYTES;
        if bad.span.start < (piece + 1) * PIECE_BYTES {
            return Err(bad.clone());
        }
    }
    let mut composed = compose::compose(readable, &tree?, limits)?;
    composed.rest = parser.find_rest().or(bad.map(|bad| bad.span));
    Ok(composed)
}

/// Reads all documents of a text, one at a time. After an error there is nothing more.
///
/// Unlike [`read`] it refuses a character that may not stand in YAML wherever it is.
pub fn documents(
    text: &str,
    malformed: Option<usize>,
    limits: Limits,
) -> impl Iterator<Item = Result<Composed, YamlError>> {
    let mut bad = find_bad_character(text, malformed);
    let mut parser = Parser::new(text, limits.nodes_max);
    let mut state = State::Before;
    std::iter::from_fn(move || {
        let tree = match (bad.take(), &state) {
            (Some(bad), _) => Err(bad),
            (None, State::Before) => parser.first_document().map(Some),
            (None, State::Among) => parser.next_document(),
            (None, State::Behind) => return None,
        };
        state = State::Among;
        let composed = match tree {
            Ok(None) => None,
            Ok(Some(tree)) => Some(compose::compose(text, &tree, limits)),
            Err(error) => Some(Err(error)),
        };
        if !matches!(composed, Some(Ok(_))) {
            state = State::Behind;
        }
        composed
    })
}

/// Where a reader is in the sequence of documents.
enum State {
    Before,
    Among,
    Behind,
}

/// The first character that may not stand in YAML.
fn find_bad_character(text: &str, malformed: Option<usize>) -> Option<YamlError> {
    let control = text.char_indices().find(|&(_, c)| !cursor::is_allowed(c)).map(|(at, _)| at);
    let (at, problem) = match (malformed, control) {
        (Some(malformed), control) if control.is_none_or(|control| malformed <= control) => {
            (malformed, "invalid UTF-8")
        }
        (_, control) => (control?, "control characters are not allowed"),
    };
    Some(YamlError::new(problem, Span::new(at, at)))
}
