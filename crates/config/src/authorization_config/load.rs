//! From the bytes of a file to a configuration that a chain can be built from.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use authz_chain::{AuthorizerType, Configuration};
use document::{
    DOCUMENT_BYTES_MAX, DecodeError, DecodeFailure, DecodeProblems, Diagnostic, Fault, LineIndex,
    NodePath, ParsedDocument, Source, Span, SpannedFault, SpannedWarning, ValidationReport,
    Warning, check_against_schema, file_problem, parse_document,
};

use super::api_version::identify_api_version;
use super::defaults::set_defaults;
use super::file_state::{FileState, stat_file};
use super::normalize::normalize;
use super::schema::{API_VERSIONS, AUTHORIZATION_CONFIGURATION, AUTHORIZER_TYPES, VERSIONS};
use super::server_rules;
use super::unvalidated;
use super::validate::{ValidationRules, convert_authorizers};

/// What a server says when it is given a file while the gate of the feature is closed.
pub const CONFIG_FILE_NEEDS_GATE: &str = "--authorization-config cannot be used without enabling \
    StructuredAuthorizationConfiguration feature flag";

/// What loading depends on besides the file. The default is the main server at its start.
#[derive(Clone, Copy)]
pub struct LoadOptions<'a> {
    /// The types of authorizers that exist.
    pub known_types: &'a [&'a str],
    /// Those of them that may occur more than once.
    pub repeatable_types: &'a [&'a str],
    /// The server that the file is for.
    pub role: ServerRole,
    /// Built-in types that must be there: those of the start when a file is reloaded.
    pub required_types: &'a [AuthorizerType],
    /// Looks at the files that the configuration names.
    pub stat_file: &'a dyn Fn(&Path) -> FileState,
    /// Whether match conditions are allowed: the gate `StructuredAuthorizationConfiguration`.
    pub allows_match_conditions: bool,
}

impl Default for LoadOptions<'_> {
    fn default() -> Self {
        Self {
            known_types: &AUTHORIZER_TYPES,
            repeatable_types: &["Webhook"],
            role: ServerRole::Main,
            required_types: &[],
            stat_file: &stat_file,
            allows_match_conditions: true,
        }
    }
}

/// The part that a server plays in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerRole {
    /// The server that others delegate to.
    Main,
    /// A server that delegates to the main one.
    Delegated,
}

/// What came of a file.
#[derive(Debug)]
pub struct Loaded {
    /// The API version, if the file can be decoded and says one.
    pub api_version: Option<&'static str>,
    /// The configuration, or why there is none.
    pub outcome: Result<Configuration, LoadError>,
    /// What is accepted but should be changed, in any case.
    pub warnings: Vec<Warning>,
}

/// Why a file gives no configuration. Displays as Kubernetes' message.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadError {
    /// It can not be decoded.
    Decode(DecodeError),
    /// It breaks rules of the format.
    Invalid(Vec<Diagnostic>),
    /// It breaks rules of this server.
    Server(Vec<Diagnostic>),
}

impl LoadError {
    /// Every fault: those of decoding in the order of the file, all others in Kubernetes' order.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Decode(error) => &error.diagnostics,
            Self::Invalid(diagnostics) | Self::Server(diagnostics) => diagnostics,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(DecodeError { kubernetes_message, .. }) => {
                write!(
                    f,
                    "failed to load AuthorizationConfiguration from file: {kubernetes_message}"
                )
            }
            Self::Invalid(diagnostics) | Self::Server(diagnostics) => {
                let messages: Vec<_> = diagnostics.iter().map(|d| d.fault.to_string()).collect();
                f.write_str(&field_errors::aggregate(&messages))
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Loads a configuration.
///
/// 1. The text becomes a tree: JSON if its first character is `{`, else YAML. An empty file is an
///    empty configuration.
/// 2. Kind and version are found, and the tree is checked against the table of the kind.
/// 3. The tree is read, two deviations are made regular with a warning, and defaults are set.
/// 4. The rules of the format are looked at, which converts the configuration.
/// 5. The rules of the server are looked at.
///
/// The first of the steps 1, 2, 4 and 5 that finds a fault ends the walk with all its faults.
pub fn load(source: &Source<'_>, options: &LoadOptions<'_>) -> Loaded {
    if source.bytes.len() > DOCUMENT_BYTES_MAX {
        return too_large(source);
    }
    let (text, malformed) = source.decode_text();
    let lines = LineIndex::new(&text);
    let diagnose = |faults: Vec<SpannedFault>| -> Vec<Diagnostic> {
        faults.into_iter().map(|fault| fault.into_diagnostic(source.name, &lines)).collect()
    };
    let mut report = ValidationReport::default();
    let (api_version, outcome) = match decode(source, &text, malformed, &mut report.warnings) {
        Err(undecodable) => {
            let problems = undecodable.problems.into_iter().map(SpannedFault::from).collect();
            let error = DecodeError {
                kubernetes_message: undecodable.kubernetes_message,
                diagnostics: diagnose(problems),
            };
            (None, Err(LoadError::Decode(error)))
        }
        Ok((api_version, configuration)) => {
            let converted = convert_configuration(configuration, options, &mut report);
            let outcome = converted.map_err(|faults| match faults {
                BrokenRules::Format(faults) => LoadError::Invalid(diagnose(faults)),
                BrokenRules::Server(faults) => LoadError::Server(diagnose(faults)),
            });
            (api_version, outcome)
        }
    };
    let warnings = report
        .warnings
        .into_iter()
        .map(|warning| warning.into_warning(source.name, &lines))
        .collect();
    Loaded { api_version, outcome, warnings }
}

/// The answer to a file that is not even looked at.
fn too_large(source: &Source<'_>) -> Loaded {
    let kubernetes_message = format!("file is larger than {DOCUMENT_BYTES_MAX} bytes");
    let fault = SpannedFault::from(file_problem(kubernetes_message.clone(), Span::default()));
    let diagnostics = vec![fault.into_diagnostic(source.name, &LineIndex::new(""))];
    let outcome = Err(LoadError::Decode(DecodeError { kubernetes_message, diagnostics }));
    Loaded { api_version: None, outcome, warnings: Vec::new() }
}

/// The API version, if the file says one, and what else it says.
fn decode(
    source: &Source<'_>,
    text: &str,
    malformed: Option<usize>,
    warnings: &mut Vec<SpannedWarning>,
) -> Result<(Option<&'static str>, unvalidated::Configuration), DecodeFailure> {
    if source.bytes.is_empty() {
        return Ok((None, unvalidated::Configuration::default()));
    }
    let ParsedDocument { root, duplicate_keys } =
        parse_document(source, text, malformed, warnings)?;
    let version = identify_api_version(text, &root)?;
    let problems =
        check_against_schema(text, version, &root, &AUTHORIZATION_CONFIGURATION, &NodePath::ROOT);
    let problems = DecodeProblems { duplicate_keys, ..problems };
    match problems.kubernetes_message() {
        None => {
            let mut versions = VERSIONS.into_iter().zip(API_VERSIONS);
            let api_version = versions.find(|(it, _)| *it == version).map(|(_, full)| full);
            Ok((api_version, unvalidated::Configuration::read(&root)))
        }
        Some(kubernetes_message) => {
            Err(DecodeFailure { kubernetes_message, problems: problems.into_sorted() })
        }
    }
}

/// Which rules are broken.
enum BrokenRules {
    Format(Vec<SpannedFault>),
    Server(Vec<SpannedFault>),
}

fn convert_configuration(
    mut configuration: unvalidated::Configuration,
    options: &LoadOptions<'_>,
    report: &mut ValidationReport,
) -> Result<Configuration, BrokenRules> {
    normalize(&mut configuration, report);
    set_defaults(&mut configuration);
    let rules = ValidationRules {
        known_types: options.known_types.iter().copied().collect(),
        repeatable_types: options.repeatable_types.iter().copied().collect(),
        stat_file: options.stat_file,
        allows_match_conditions: options.allows_match_conditions,
    };
    let authorizers = convert_authorizers(&configuration, &rules, report);
    if !report.faults.is_empty() {
        return Err(BrokenRules::Format(std::mem::take(&mut report.faults)));
    }
    let required: BTreeSet<_> = options.required_types.iter().copied().collect();
    let faults = server_rules::check_server_rules(&configuration, options.role, &required);
    if !faults.is_empty() {
        return Err(BrokenRules::Server(faults));
    }
    Configuration::new(authorizers).map_err(|error| {
        // The rules above leave only types that the options know and the chain does not.
        let fault = Fault::Server { field: "authorizers".to_owned(), message: error.to_string() };
        let span = configuration.authorizers_span;
        BrokenRules::Server(vec![SpannedFault { fault, span, hint: None, notes: Vec::new() }])
    })
}
