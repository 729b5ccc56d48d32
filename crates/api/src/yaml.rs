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

use crate::document::Node;
use crate::source::Span;

/// What the first document of a file holds.
#[derive(Debug)]
pub(crate) struct Composed {
    /// Its root value.
    pub(crate) root: Node,
    /// Keys that a mapping holds twice, in the order of discovery.
    pub(crate) duplicates: Vec<Duplicate>,
    /// Where something follows the first document; Kubernetes ignores it.
    pub(crate) rest: Option<Span>,
}

/// A key that was already set in its mapping.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Duplicate {
    /// Kubernetes' words, such as `line 7: key "name" already set in map`.
    pub(crate) message: String,
    /// Kubernetes' path of the key, such as `authorizers[0].name`.
    pub(crate) path: String,
    /// The second key.
    pub(crate) span: Span,
}

/// Why a text is not YAML, or not YAML that JSON can express.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlError {
    /// Kubernetes' words, such as `yaml: line 3: could not find expected ':'`.
    pub(crate) message: String,
    pub(crate) span: Span,
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
pub(crate) fn read(text: &str, malformed: Option<usize>) -> Result<Composed, YamlError> {
    let control = text.char_indices().find(|&(_, c)| !cursor::is_allowed(c)).map(|(at, _)| at);
    let bad = match (malformed, control) {
        (Some(malformed), Some(control)) => Some(malformed.min(control)),
        (malformed, control) => malformed.or(control),
    };
    let readable = bad.and_then(|bad| text.get(..bad)).unwrap_or(text);
    let (tree, read_to) = parser::parse(readable);
    if let Some(bad) = bad {
        let piece = (read_to + LOOKAHEAD_BYTES) / PIECE_BYTES;
        if bad < (piece + 1) * PIECE_BYTES {
            let problem = match malformed {
                Some(malformed) if malformed == bad => "invalid UTF-8",
                _ => "control characters are not allowed",
            };
            return Err(YamlError::new(problem, Span::new(bad, bad)));
        }
    }
    let mut composed = compose::compose(readable, &tree?)?;
    composed.rest = composed.rest.or(bad.map(|bad| Span::new(bad, bad)));
    Ok(composed)
}
