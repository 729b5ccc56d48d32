//! Loads the hooks of a hook file from its bytes.

use std::fmt;

use document::{
    DOCUMENT_BYTES_MAX, DecodeError, DecodeProblems, Diagnostic, LineIndex, NodePath,
    ParsedDocument, Source, SpannedDecodeError, SpannedFault, SpannedWarning, TypeMeta,
    ValidationReport, Warning, check_against_schema, parse_document,
};

use super::api_version::identify_api_version;
use super::schema::{GROUP, HOOK_CONFIGURATION};
use super::unvalidated_config::UnvalidatedAuthorizationHookConfig;
use super::validate_authorization_hooks::{AuthorizationHook, convert_authorization_hooks};
use crate::file_kind::FileKind;

/// The result of loading a hook file.
#[derive(Debug)]
pub struct LoadedAuthorizationHooks {
    /// The hooks in their order, or the error that prevents their use. INVARIANT: at least one.
    pub authorization_hooks: Result<Vec<AuthorizationHook>, LoadError>,
    /// Warnings, whether loading succeeds or fails.
    pub warnings: Vec<Warning>,
}

/// The error of a file that gives no hooks.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadError {
    /// The file cannot be decoded.
    Decode(DecodeError),
    /// The file breaks validation rules of the format.
    Invalid(Vec<Diagnostic>),
}

impl LoadError {
    /// Every fault: faults of decoding in the order of the file, all others in the order of the validation rules.
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
            Self::Decode(DecodeError { kubernetes_message, .. }) => {
                write!(
                    f,
                    "failed to load ExternalAuthorizationHookConfiguration from file: {kubernetes_message}"
                )
            }
            Self::Invalid(diagnostics) => {
                let messages: Vec<_> = diagnostics.iter().map(|d| d.fault.to_string()).collect();
                f.write_str(&field_errors::aggregate_messages(&messages))
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Reports whether a file is a hook file. Such a file has no other interpretation, even if it is
/// invalid.
///
/// The API group decides. For a file that is not well-formed, [`FileKind::detect_file_kind`] decides by its
/// text.
pub fn is_authorization_hook_configuration(source: &Source<'_>) -> bool {
    if source.file_bytes.len() > DOCUMENT_BYTES_MAX {
        return false;
    }
    let (text, malformed) = source.decode_text();
    match parse_document(source, &text, malformed, &mut Vec::new()) {
        Ok(tree) => TypeMeta::from_root_node(&tree.root_node).is_ok_and(|meta| meta.group == GROUP),
        Err(_) => FileKind::detect_file_kind(source) == Some(FileKind::HookConfiguration),
    }
}

/// Loads a hook file.
///
/// 1. The text is parsed: JSON if its first character is `{`, else YAML.
/// 2. Kind and version are identified, and the tree is checked against the schema of the kind.
/// 3. The validation rules run and convert the hooks.
///
/// The first step that finds a fault ends loading with all faults of that step.
pub fn load_authorization_hooks(source: &Source<'_>) -> LoadedAuthorizationHooks {
    if source.file_bytes.len() > DOCUMENT_BYTES_MAX {
        let error = SpannedDecodeError::file_too_large_error()
            .into_decode_error(source.name, &LineIndex::new(""));
        return LoadedAuthorizationHooks {
            authorization_hooks: Err(LoadError::Decode(error)),
            warnings: Vec::new(),
        };
    }
    let (text, malformed) = source.decode_text();
    let lines = LineIndex::new(&text);
    let diagnose = |faults: Vec<SpannedFault>| -> Vec<Diagnostic> {
        faults
            .into_iter()
            .map(|fault| fault.into_positioned_diagnostic(source.name, &lines))
            .collect()
    };
    let mut report = ValidationReport::default();
    let hooks = match decode_authorization_hooks(source, &text, malformed, &mut report.warnings) {
        Err(error) => Err(LoadError::Decode(error.into_decode_error(source.name, &lines))),
        Ok(configuration) => {
            let hooks = convert_authorization_hooks(&configuration, &lines, &mut report);
            match std::mem::take(&mut report.faults) {
                faults if faults.is_empty() => Ok(hooks),
                faults => Err(LoadError::Invalid(diagnose(faults))),
            }
        }
    };
    let warnings = report
        .warnings
        .into_iter()
        .map(|warning| warning.into_positioned_warning(source.name, &lines))
        .collect();
    LoadedAuthorizationHooks { authorization_hooks: hooks, warnings }
}

fn decode_authorization_hooks(
    source: &Source<'_>,
    text: &str,
    malformed: Option<usize>,
    warnings: &mut Vec<SpannedWarning>,
) -> Result<UnvalidatedAuthorizationHookConfig, SpannedDecodeError> {
    let ParsedDocument { root_node: root, duplicate_keys } =
        parse_document(source, text, malformed, warnings)?;
    let version = identify_api_version(text, &root)?;
    let problems = check_against_schema(text, version, &root, &HOOK_CONFIGURATION, &NodePath::ROOT);
    DecodeProblems { duplicate_keys, ..problems }.into_result()?;
    Ok(UnvalidatedAuthorizationHookConfig::read(&root))
}
