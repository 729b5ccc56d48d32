//! From the bytes of a file to hooks that clients can be made for.

use std::fmt;

use document::decode::{self, At, Problems};
use document::tree::{self, Tree, Undecodable};
use document::{
    Caution, DOCUMENT_BYTES_MAX, DecodeError, Diagnostic, Finding, Lines, Report, Source, Span,
    TypeMeta, Warning,
};

use super::identity::identify;
use super::shapes::{GROUP, HOOK_CONFIGURATION};
use super::validate::{Hook, convert};
use super::wire::Configuration;
use crate::file_kind::FileKind;

/// What came of a file.
#[derive(Debug)]
pub struct Loaded {
    /// The hooks in their order, or why there are none. INVARIANT: at least one.
    pub outcome: Result<Vec<Hook>, LoadError>,
    /// What is accepted but should be changed, in any case.
    pub warnings: Vec<Warning>,
}

/// Why a file gives no hooks.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadError {
    /// It can not be decoded.
    Decode(DecodeError),
    /// It breaks rules of the format.
    Invalid(Vec<Diagnostic>),
}

impl LoadError {
    /// Every fault: those of decoding in the order of the file, all others in that of the rules.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Decode(error) => &error.diagnostics,
            Self::Invalid(diagnostics) => diagnostics,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(DecodeError { cause, .. }) => {
                write!(
                    f,
                    "failed to load ExternalAuthorizationHookConfiguration from file: {cause}"
                )
            }
            Self::Invalid(diagnostics) => {
                let messages: Vec<_> = diagnostics.iter().map(|d| d.fault.to_string()).collect();
                f.write_str(&field_errors::aggregate(&messages))
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Whether a file is one of hooks: then it is nothing else, whatever is wrong with it.
///
/// The API group tells. A file that is not well-formed has none, and then its text tells.
pub fn is_hook_configuration(source: &Source<'_>) -> bool {
    if source.bytes.len() > DOCUMENT_BYTES_MAX {
        return false;
    }
    let (text, malformed) = source.decode();
    match tree::read(source, &text, malformed, &mut Vec::new()) {
        Ok(tree) => TypeMeta::read(&tree.root).is_ok_and(|meta| meta.group == GROUP),
        Err(_) => FileKind::recognise(source) == Some(FileKind::HookConfiguration),
    }
}

/// Loads a file of hooks.
///
/// 1. The text becomes a tree: JSON if its first character is `{`, else YAML.
/// 2. Kind and version are found, and the tree is checked against the table of the kind.
/// 3. The rules are looked at, which converts the hooks.
///
/// The first step that finds a fault ends the walk with all its faults.
pub fn load(source: &Source<'_>) -> Loaded {
    if source.bytes.len() > DOCUMENT_BYTES_MAX {
        return too_large(source);
    }
    let (text, malformed) = source.decode();
    let lines = Lines::new(&text);
    let diagnose = |findings: Vec<Finding>| -> Vec<Diagnostic> {
        findings.into_iter().map(|finding| finding.locate(source.name, &lines)).collect()
    };
    let mut report = Report::default();
    let outcome = match decode(source, &text, malformed, &mut report.cautions) {
        Err(Undecodable { cause, problems }) => {
            let diagnostics = diagnose(problems.into_iter().map(Finding::from).collect());
            Err(LoadError::Decode(DecodeError { cause, diagnostics }))
        }
        Ok(configuration) => {
            let hooks = convert(&configuration, &lines, &mut report);
            match std::mem::take(&mut report.findings) {
                findings if findings.is_empty() => Ok(hooks),
                findings => Err(LoadError::Invalid(diagnose(findings))),
            }
        }
    };
    let warnings =
        report.cautions.into_iter().map(|caution| caution.locate(source.name, &lines)).collect();
    Loaded { outcome, warnings }
}

fn decode(
    source: &Source<'_>,
    text: &str,
    malformed: Option<usize>,
    cautions: &mut Vec<Caution>,
) -> Result<Configuration, Undecodable> {
    let Tree { root, duplicate_keys } = tree::read(source, text, malformed, cautions)?;
    let version = identify(text, &root)?;
    let problems = decode::check(text, version, &root, &HOOK_CONFIGURATION, &At::ROOT);
    let problems = Problems { duplicate_keys, ..problems };
    match problems.cause() {
        None => Ok(Configuration::read(&root)),
        Some(cause) => Err(Undecodable { cause, problems: problems.into_sorted() }),
    }
}

/// The answer to a file that is not even looked at.
fn too_large(source: &Source<'_>) -> Loaded {
    let cause = format!("file is larger than {DOCUMENT_BYTES_MAX} bytes");
    let finding = Finding::from(tree::whole_file(cause.clone(), Span::default()));
    let diagnostics = vec![finding.locate(source.name, &Lines::new(""))];
    let outcome = Err(LoadError::Decode(DecodeError { cause, diagnostics }));
    Loaded { outcome, warnings: Vec::new() }
}
