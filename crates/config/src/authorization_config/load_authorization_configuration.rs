//! Loads a configuration of an authorizer chain from the bytes of a file.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use authz_chain::{AuthorizerType, Configuration, PluginType};
use document::{
    DOCUMENT_BYTES_MAX, DecodeError, DecodeProblems, Diagnostic, Fault, LineIndex, NodePath,
    ParsedDocument, Source, SpannedDecodeError, SpannedFault, SpannedWarning, ValidationReport,
    Warning, check_against_schema, parse_document,
};

use super::api_version::identify_api_version;
use super::defaults::set_defaults;
use super::file_state::{FileState, stat_file};
use super::normalize_kep_forms::normalize_kep_forms;
use super::schema::{API_VERSIONS, AUTHORIZATION_CONFIGURATION, AUTHORIZER_TYPES, VERSIONS};
use super::server_authorizer_rules;
use super::unvalidated_config;
use super::validate_authorizers::{ValidationOptions, convert_authorizers};

/// The error of a server that gets a configuration file while the feature gate is disabled.
pub const CONFIG_FILE_WITHOUT_GATE_ERROR: &str = "--authorization-config cannot be used without enabling \
    StructuredAuthorizationConfiguration feature flag";

/// Inputs of validation besides the file. The default is that of the main server at startup.
#[derive(Clone, Copy)]
pub struct LoadOptions<'a> {
    /// The types of authorizers that exist.
    pub known_authorizer_types: &'a [&'a str],
    /// The types that the program adds to the built-in ones.
    pub plugin_authorizer_types: &'a [PluginType],
    /// The types that may occur more than once.
    pub repeatable_authorizer_types: &'a [&'a str],
    /// The server that the file is for.
    pub role: ServerRole,
    /// Built-in types that the file must contain. A reload passes the types of the startup configuration.
    pub required_authorizer_types: &'a [AuthorizerType],
    /// Whether the server has a file of ABAC policies, which the type `ABAC` needs.
    pub has_abac_policy_file: bool,
    /// Returns the state of a file that the configuration refers to.
    pub stat_file: &'a dyn Fn(&Path) -> FileState,
    /// Whether the feature gate `StructuredAuthorizationConfiguration` allows match conditions.
    pub allows_match_conditions: bool,
}

impl Default for LoadOptions<'_> {
    fn default() -> Self {
        Self {
            known_authorizer_types: &AUTHORIZER_TYPES,
            plugin_authorizer_types: &[],
            repeatable_authorizer_types: &["Webhook"],
            role: ServerRole::Main,
            required_authorizer_types: &[],
            has_abac_policy_file: true,
            stat_file: &stat_file,
            allows_match_conditions: true,
        }
    }
}

/// The role of a server in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerRole {
    /// The main API server, to which other servers delegate authorization.
    Main,
    /// A server that delegates authorization to the main server.
    Delegated,
}

/// The result of loading a file.
#[derive(Debug)]
pub struct LoadedAuthorizationConfiguration {
    /// The API version, if the file can be decoded and declares one.
    pub api_version: Option<&'static str>,
    /// The configuration, or the error that prevents its use.
    pub configuration: Result<Configuration, LoadError>,
    /// Warnings, whether loading succeeds or fails.
    pub warnings: Vec<Warning>,
}

/// The error of a file that gives no configuration. Displays as Kubernetes' message.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadError {
    /// The file cannot be decoded.
    Decode(DecodeError),
    /// The file breaks validation rules of the format.
    Invalid(Vec<Diagnostic>),
    /// The file breaks rules of this server.
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
                f.write_str(&field_errors::aggregate_messages(&messages))
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Loads a configuration.
///
/// 1. The text is parsed: JSON if its first character is `{`, else YAML. An empty file is an empty
///    configuration.
/// 2. Kind and version are identified, and the tree is checked against the schema of the kind.
/// 3. The fields are read, two deviations are normalized with a warning, and defaults are set.
/// 4. The validation rules of the format run and convert the configuration.
/// 5. The rules of the server run.
///
/// The first of the steps 1, 2, 4 and 5 that finds a fault ends loading with all faults of that
/// step.
pub fn load_authorization_configuration(
    source: &Source<'_>,
    options: &LoadOptions<'_>,
) -> LoadedAuthorizationConfiguration {
    if source.file_bytes.len() > DOCUMENT_BYTES_MAX {
        let error = SpannedDecodeError::file_too_large_error()
            .into_decode_error(source.name, &LineIndex::new(""));
        let configuration = Err(LoadError::Decode(error));
        return LoadedAuthorizationConfiguration {
            api_version: None,
            configuration,
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
    let (api_version, configuration) =
        match decode_authorization_configuration(source, &text, malformed, &mut report.warnings) {
            Err(error) => {
                (None, Err(LoadError::Decode(error.into_decode_error(source.name, &lines))))
            }
            Ok((api_version, configuration)) => {
                let converted =
                    convert_authorization_configuration(configuration, options, &mut report);
                let configuration = converted.map_err(|faults| match faults {
                    RuleViolations::Format(faults) => LoadError::Invalid(diagnose(faults)),
                    RuleViolations::Server(faults) => LoadError::Server(diagnose(faults)),
                });
                (api_version, configuration)
            }
        };
    let warnings = report
        .warnings
        .into_iter()
        .map(|warning| warning.into_positioned_warning(source.name, &lines))
        .collect();
    LoadedAuthorizationConfiguration { api_version, configuration, warnings }
}

/// Decodes the file. Returns its fields, and its API version if it declares one.
fn decode_authorization_configuration(
    source: &Source<'_>,
    text: &str,
    malformed: Option<usize>,
    warnings: &mut Vec<SpannedWarning>,
) -> Result<
    (Option<&'static str>, unvalidated_config::UnvalidatedAuthorizationConfiguration),
    SpannedDecodeError,
> {
    if source.file_bytes.is_empty() {
        return Ok((None, unvalidated_config::UnvalidatedAuthorizationConfiguration::default()));
    }
    let ParsedDocument { root_node: root, duplicate_keys } =
        parse_document(source, text, malformed, warnings)?;
    let version = identify_api_version(text, &root)?;
    let problems =
        check_against_schema(text, version, &root, &AUTHORIZATION_CONFIGURATION, &NodePath::ROOT);
    DecodeProblems { duplicate_keys, ..problems }.into_result()?;
    let mut versions = VERSIONS.into_iter().zip(API_VERSIONS);
    let api_version = versions.find(|(it, _)| *it == version).map(|(_, full)| full);
    Ok((api_version, unvalidated_config::UnvalidatedAuthorizationConfiguration::read(&root)))
}

/// The faults of the first step that found any.
enum RuleViolations {
    Format(Vec<SpannedFault>),
    Server(Vec<SpannedFault>),
}

fn convert_authorization_configuration(
    mut configuration: unvalidated_config::UnvalidatedAuthorizationConfiguration,
    options: &LoadOptions<'_>,
    report: &mut ValidationReport,
) -> Result<Configuration, RuleViolations> {
    normalize_kep_forms(&mut configuration, report);
    set_defaults(&mut configuration, report);
    server_authorizer_rules::warn_of_anonymous_access(&configuration, options.role, report);
    let rules = ValidationOptions {
        known_authorizer_types: options.known_authorizer_types.iter().copied().collect(),
        plugin_authorizer_types: options.plugin_authorizer_types,
        repeatable_authorizer_types: options.repeatable_authorizer_types.iter().copied().collect(),
        stat_file: options.stat_file,
        allows_match_conditions: options.allows_match_conditions,
    };
    let authorizers = convert_authorizers(&configuration, &rules, report);
    if !report.faults.is_empty() {
        return Err(RuleViolations::Format(std::mem::take(&mut report.faults)));
    }
    let required: BTreeSet<_> = options.required_authorizer_types.iter().copied().collect();
    let faults =
        server_authorizer_rules::check_server_authorizer_rules(&configuration, options, &required);
    if !faults.is_empty() {
        return Err(RuleViolations::Server(faults));
    }
    Configuration::new(authorizers).map_err(|error| {
        // All other faults are ruled out above: the only type left is one that the options accept but the chain
        // does not implement.
        let fault = Fault::Server { field: "authorizers".to_owned(), message: error.to_string() };
        let span = configuration.authorizers_span;
        RuleViolations::Server(vec![SpannedFault {
            fault,
            span,
            hint: None,
            expression_issues: Vec::new(),
        }])
    })
}
