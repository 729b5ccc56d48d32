//! From the text of a file to the tree of its values.

use crate::decode::Problem;
use crate::diagnostic::{Caution, WarningCode};
use crate::node::Node;
use crate::source::{Source, Span};
use crate::{hint, json, yaml};

/// What a file holds.
pub struct Tree {
    pub root: Node,
    /// The keys of a YAML file that stand twice. Those of a JSON file are still in the tree.
    pub duplicate_keys: Vec<Problem>,
}

/// Why a text is not what it should be.
#[derive(Debug)]
pub struct Undecodable {
    pub cause: String,
    pub problems: Vec<Problem>,
}

impl From<Problem> for Undecodable {
    fn from(problem: Problem) -> Self {
        Self { cause: problem.message.clone(), problems: vec![problem] }
    }
}

/// Reads the one value of a file: JSON if its first character is `{`, else YAML, of which only the
/// first document counts. `text` and `malformed` are what the source decodes to.
pub fn read(
    source: &Source<'_>,
    text: &str,
    malformed: Option<usize>,
    cautions: &mut Vec<Caution>,
) -> Result<Tree, Problem> {
    if source.is_json() { read_json(text) } else { read_yaml(text, malformed, cautions) }
}

fn read_json(text: &str) -> Result<Tree, Problem> {
    let root = json::read(text).map_err(|error| {
        let message = format!("couldn't get version/kind; json parse error: {}", error.message);
        whole_file(message, error.span)
    })?;
    Ok(Tree { root, duplicate_keys: Vec::new() })
}

fn read_yaml(
    text: &str,
    malformed: Option<usize>,
    cautions: &mut Vec<Caution>,
) -> Result<Tree, Problem> {
    let composed = yaml::read(text, malformed).map_err(|error| Problem {
        hint: hint::for_syntax(&error.message, text, error.span.start),
        ..whole_file(error.message, error.span)
    })?;
    let duplicate_keys = composed.duplicates.into_iter().map(|duplicate| Problem {
        path: duplicate.path,
        message: duplicate.message,
        span: duplicate.span,
        hint: None,
    });
    cautions.extend(composed.rest.map(|span| Caution {
        code: WarningCode::SeveralDocuments,
        field: String::new(),
        message: "only the first document is read, and something follows it".to_owned(),
        span,
        hint: None,
    }));
    Ok(Tree { root: composed.root, duplicate_keys: duplicate_keys.collect() })
}

/// A problem of no field in particular.
pub fn whole_file(message: String, span: Span) -> Problem {
    Problem { path: String::new(), message, span, hint: None }
}
