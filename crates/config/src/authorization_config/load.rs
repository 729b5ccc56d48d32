//! From the bytes of a file to a configuration that a chain can be built from.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use authz_chain::{AuthorizerType, Configuration};
use document::decode::{self, At, Problems};
use document::tree::{self, Tree, Undecodable};
use document::{
    Caution, DOCUMENT_BYTES_MAX, DecodeError, Diagnostic, Fault, Finding, Lines, Report, Source,
    Span, Warning,
};

use super::defaults::set_defaults;
use super::identity::identify;
use super::normalize::normalize;
use super::probe::{FileState, stat};
use super::server_rules;
use super::shapes::{API_VERSIONS, AUTHORIZATION_CONFIGURATION, AUTHORIZER_TYPES, VERSIONS};
use super::validate::{Rules, convert};
use super::wire;

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
    pub role: Role,
    /// Built-in types that must be there: those of the start when a file is reloaded.
    pub required_types: &'a [AuthorizerType],
    /// Looks at the files that the configuration names.
    pub probe: &'a dyn Fn(&Path) -> FileState,
    /// Whether match conditions are allowed: the gate `StructuredAuthorizationConfiguration`.
    pub allows_match_conditions: bool,
}

impl Default for LoadOptions<'_> {
    fn default() -> Self {
        Self {
            known_types: &AUTHORIZER_TYPES,
            repeatable_types: &["Webhook"],
            role: Role::Main,
            required_types: &[],
            probe: &stat,
            allows_match_conditions: true,
        }
    }
}

/// The part that a server plays in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
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
            Self::Decode(DecodeError { cause, .. }) => {
                write!(f, "failed to load AuthorizationConfiguration from file: {cause}")
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
    let (text, malformed) = source.decode();
    let lines = Lines::new(&text);
    let diagnose = |findings: Vec<Finding>| -> Vec<Diagnostic> {
        findings.into_iter().map(|finding| finding.locate(source.name, &lines)).collect()
    };
    let mut report = Report::default();
    let (api_version, outcome) = match decode(source, &text, malformed, &mut report.cautions) {
        Err(undecodable) => {
            let problems = undecodable.problems.into_iter().map(Finding::from).collect();
            let error = DecodeError { cause: undecodable.cause, diagnostics: diagnose(problems) };
            (None, Err(LoadError::Decode(error)))
        }
        Ok((api_version, configuration)) => {
            let converted = convert_configuration(configuration, options, &mut report);
            let outcome = converted.map_err(|faults| match faults {
                Faults::Format(findings) => LoadError::Invalid(diagnose(findings)),
                Faults::Server(findings) => LoadError::Server(diagnose(findings)),
            });
            (api_version, outcome)
        }
    };
    let warnings =
        report.cautions.into_iter().map(|caution| caution.locate(source.name, &lines)).collect();
    Loaded { api_version, outcome, warnings }
}

/// The answer to a file that is not even looked at.
fn too_large(source: &Source<'_>) -> Loaded {
    let cause = format!("file is larger than {DOCUMENT_BYTES_MAX} bytes");
    let finding = Finding::from(tree::whole_file(cause.clone(), Span::default()));
    let diagnostics = vec![finding.locate(source.name, &Lines::new(""))];
    let outcome = Err(LoadError::Decode(DecodeError { cause, diagnostics }));
    Loaded { api_version: None, outcome, warnings: Vec::new() }
}

/// The API version, if the file says one, and what else it says.
fn decode(
    source: &Source<'_>,
    text: &str,
    malformed: Option<usize>,
    cautions: &mut Vec<Caution>,
) -> Result<(Option<&'static str>, wire::Configuration), Undecodable> {
    if source.bytes.is_empty() {
        return Ok((None, wire::Configuration::default()));
    }
    let Tree { root, duplicate_keys } = tree::read(source, text, malformed, cautions)?;
    let version = identify(text, &root)?;
    let problems = decode::check(text, version, &root, &AUTHORIZATION_CONFIGURATION, &At::ROOT);
    let problems = Problems { duplicate_keys, ..problems };
    match problems.cause() {
        None => {
            let mut versions = VERSIONS.into_iter().zip(API_VERSIONS);
            let api_version = versions.find(|(it, _)| *it == version).map(|(_, full)| full);
            Ok((api_version, wire::Configuration::read(&root)))
        }
        Some(cause) => Err(Undecodable { cause, problems: problems.into_sorted() }),
    }
}

/// Which rules are broken.
enum Faults {
    Format(Vec<Finding>),
    Server(Vec<Finding>),
}

fn convert_configuration(
    mut configuration: wire::Configuration,
    options: &LoadOptions<'_>,
    report: &mut Report,
) -> Result<Configuration, Faults> {
    normalize(&mut configuration, report);
    set_defaults(&mut configuration);
    let rules = Rules {
        known_types: options.known_types.iter().copied().collect(),
        repeatable_types: options.repeatable_types.iter().copied().collect(),
        probe: options.probe,
        allows_match_conditions: options.allows_match_conditions,
    };
    let authorizers = convert(&configuration, &rules, report);
    if !report.findings.is_empty() {
        return Err(Faults::Format(std::mem::take(&mut report.findings)));
    }
    let required: BTreeSet<_> = options.required_types.iter().copied().collect();
    let findings = server_rules::check(&configuration, options.role, &required);
    if !findings.is_empty() {
        return Err(Faults::Server(findings));
    }
    Configuration::new(authorizers).map_err(|error| {
        // The rules above leave only types that the options know and the chain does not.
        let fault = Fault::Server { field: "authorizers".to_owned(), message: error.to_string() };
        let span = configuration.authorizers_span;
        Faults::Server(vec![Finding { fault, span, hint: None, notes: Vec::new() }])
    })
}
