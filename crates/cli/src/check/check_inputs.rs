//! Checks inputs: each by the loader of its kind, and manifests also together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::path::PathBuf;

use authz_chain::{AuthorizerConfiguration, Configuration};
use authz_webhook::ConnectionInfo;
use config::FileKind;
use config::authorization_config::{self, LoadError, LoadOptions};
use config::authorization_hooks;
use document::{DOCUMENT_BYTES_MAX, Diagnostic, Source};
use manifests::abac;
use manifests::{DuplicateObjects, ManifestObject, ManifestReadOptions, UnstructuredObject};

use super::admission_configurations::{AdmissionConfigurations, initializer_order_findings};
use super::check_webhook_connection_files;
use super::cluster_manifests::{self, ClusterManifests};
use super::finding::{
    CheckOutcome, CheckedFile, ContentSummary, FileFindings, Finding, is_missing_file_fault,
};
use super::read_input::{CheckInput, InputContent};
use crate::file_kinds::describe_known_file_kinds;

/// The flags that apply to all inputs.
pub(super) struct CheckOptions<'a> {
    pub(super) load_options: LoadOptions<'a>,
    /// Whether to check the files that a file names, such as kubeconfig files and certificates.
    pub(super) checks_referenced_files: bool,
    /// The kind of all files. If it is `None`, the kind of each file is detected from its content.
    pub(super) kind: Option<FileKind>,
    /// Whether the default roles of Kubernetes exist in addition to the roles in the files.
    pub(super) has_bootstrap_policy: bool,
    /// Whether warnings count as errors.
    pub(super) warnings_are_errors: bool,
    /// The namespace of objects that have none.
    pub(super) namespace: Option<&'a str>,
}

/// Reads and checks all inputs. The objects of a cluster complete those of files; without files they are checked
/// themselves.
pub(super) fn check_inputs(
    inputs: &[CheckInput],
    stdin: &mut dyn Read,
    options: &CheckOptions<'_>,
    cluster: Option<&ClusterManifests>,
) -> Vec<CheckedFile> {
    let mut gathered = CrossFileObjects::default();
    let mut checked: Vec<CheckedFile> =
        inputs.iter().map(|input| check_input(input, stdin, options, &mut gathered)).collect();
    let stored_roles = match cluster {
        None if options.has_bootstrap_policy => OtherExistingRoles::Defaults,
        None => OtherExistingRoles::None,
        Some(cluster) => {
            let stored = cluster.check(options, &mut gathered);
            if inputs.is_empty() {
                checked = stored;
            }
            if cluster.is_rbac_partial {
                OtherExistingRoles::SomeUnknown
            } else {
                OtherExistingRoles::None
            }
        }
    };
    check_across_files(&mut checked, &gathered, stored_roles);
    if inputs.is_empty() {
        checked = cluster_manifests::summarize_objects_without_findings(checked);
    }
    if options.checks_referenced_files {
        let is_input = |path: &PathBuf| inputs.iter().any(|input| input.is_same_file(path));
        let named =
            gathered.authorization_webhook_kubeconfig_paths.iter().filter(|path| !is_input(path));
        checked.extend(
            named.filter_map(|path| {
                check_webhook_connection_files::check_referenced_kubeconfig(path)
            }),
        );
    }
    for checked in &mut checked {
        if let CheckOutcome::Read(file) = &mut checked.check_outcome {
            file.warnings.sort_by_key(|warning| warning.source_position);
            if options.warnings_are_errors {
                file.errors.append(&mut file.warnings);
            }
        }
    }
    checked
}

/// The roles that exist in addition to those that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OtherExistingRoles {
    None,
    /// The default roles of Kubernetes.
    Defaults,
    /// Roles of a cluster that could not be read.
    SomeUnknown,
}

/// Objects and file names that are checked after all inputs are read.
#[derive(Default)]
pub(super) struct CrossFileObjects {
    pub(super) authorization_objects: Vec<ManifestObject>,
    admission_configurations: AdmissionConfigurations,
    /// The connection files of webhooks.
    authorization_webhook_kubeconfig_paths: BTreeSet<PathBuf>,
}

fn check_input(
    input: &CheckInput,
    stdin: &mut dyn Read,
    options: &CheckOptions<'_>,
    gathered: &mut CrossFileObjects,
) -> CheckedFile {
    let name = input.name();
    let outcome = match input.read(stdin, options.kind) {
        Err(error) => CheckOutcome::Unreadable { message: error.to_string() },
        Ok(InputContent { content_bytes: bytes, kind }) => {
            let source = Source { name: &name, file_bytes: &bytes };
            let path = input.path().filter(|_| options.checks_referenced_files);
            // Without content the program that should have written to the pipe has failed.
            let is_failed_pipe = input.is_stdin() && bytes.is_empty();
            let file = match (kind, path) {
                (Some(FileKind::Manifest), _) => check_manifest(&source, options, gathered),
                (Some(FileKind::AbacPolicy), _) => check_abac_policies(&source),
                (Some(FileKind::HookConfiguration | FileKind::Kubeconfig), Some(path)) => {
                    check_webhook_connection_files::check_webhook_connection_file(&source, path)
                }
                (Some(FileKind::HookConfiguration), None) => check_authorization_hook_file(&source),
                (Some(FileKind::Kubeconfig), None) => check_kubeconfig(&source),
                (None, _)
                    if !is_failed_pipe
                        && bytes.len() <= DOCUMENT_BYTES_MAX
                        && manifests::read(&source).has_no_objects =>
                {
                    empty_file_findings()
                }
                // An unknown kind is most likely an invalid AuthorizationConfiguration.
                (Some(FileKind::AuthorizationConfiguration) | None, _) => {
                    let named = &mut gathered.authorization_webhook_kubeconfig_paths;
                    check_authorization_configuration(&source, &options.load_options, named)
                }
            };
            CheckOutcome::Read(Box::new(FileFindings {
                file_text: decode_text(&name, bytes),
                ..file
            }))
        }
    };
    CheckedFile { name, check_outcome: outcome }
}

/// Decodes the text that positions refer to. It does not copy valid UTF-8, because the file may be large.
fn decode_text(name: &str, bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| Source { name, file_bytes: error.as_bytes() }.text().into_owned())
}

fn check_authorization_configuration(
    source: &Source<'_>,
    options: &LoadOptions<'_>,
    named: &mut BTreeSet<PathBuf>,
) -> FileFindings {
    let loaded = authorization_config::load_authorization_configuration(source, options);
    let warnings = loaded.warnings.into_iter().map(Finding::from).collect();
    match loaded.configuration {
        Ok(configuration) => {
            named.extend(authorization_webhook_kubeconfig_paths(&configuration));
            let names = configuration.authorizers().iter().map(AuthorizerConfiguration::name);
            let authorizers = names.map(str::to_owned).collect();
            let api_version = loaded.api_version;
            let summary = Some(ContentSummary::Configuration { api_version, authorizers });
            FileFindings { content_summary: summary, warnings, ..FileFindings::default() }
        }
        Err(error) => {
            let kubernetes_message = Some(error.to_string());
            let errors = configuration_error_findings(error, source.file_bytes.is_empty());
            FileFindings {
                kubernetes_error_message: kubernetes_message,
                errors,
                warnings,
                ..FileFindings::default()
            }
        }
    }
}

/// Returns the paths of the connection files of all webhooks.
fn authorization_webhook_kubeconfig_paths(configuration: &Configuration) -> Vec<PathBuf> {
    let file = |authorizer: &AuthorizerConfiguration| match authorizer {
        AuthorizerConfiguration::Webhook(webhook) => {
            match &webhook.webhook_settings.connection_info {
                ConnectionInfo::KubeConfigFile(path) => Some(path.as_path().to_owned()),
                ConnectionInfo::InClusterConfig => None,
            }
        }
        AuthorizerConfiguration::Abac
        | AuthorizerConfiguration::AlwaysAllow
        | AuthorizerConfiguration::AlwaysDeny
        | AuthorizerConfiguration::Node
        | AuthorizerConfiguration::Rbac
        | AuthorizerConfiguration::Plugin(_) => None,
    };
    configuration.authorizers().iter().filter_map(file).collect()
}

fn configuration_error_findings(error: LoadError, is_empty: bool) -> Vec<Finding> {
    let names_no_kind = is_unknown_kind_error(&error);
    let diagnostics = match error {
        LoadError::Decode(error) => error.diagnostics,
        LoadError::Invalid(diagnostics) | LoadError::Server(diagnostics) => diagnostics,
    };
    let mut findings: Vec<_> =
        diagnostics.into_iter().map(finding_with_missing_file_hint).collect();
    if let [only] = findings.as_mut_slice() {
        if names_no_kind {
            only.add_hint(&format!("known kinds: {}", describe_known_file_kinds()));
        } else if is_empty {
            only.add_hint("the input is empty");
        }
    }
    findings
}

/// Adds a hint to the finding if the file that a configuration names does not exist here, which is usual
/// in CI.
fn finding_with_missing_file_hint(diagnostic: Diagnostic) -> Finding {
    let is_about_a_file = is_missing_file_fault(&diagnostic.fault);
    let mut finding = Finding::from(diagnostic);
    if is_about_a_file {
        finding.add_hint("if the file exists only on the server, use `--assume-files-exist`");
    }
    finding
}

/// Reports whether the only error is about `kind` or `apiVersion`.
fn is_unknown_kind_error(error: &LoadError) -> bool {
    match error {
        LoadError::Decode(error) => match error.diagnostics.as_slice() {
            [only] => matches!(only.fault.field(), "kind" | "apiVersion"),
            _ => false,
        },
        LoadError::Invalid(_) | LoadError::Server(_) => false,
    }
}

fn check_abac_policies(source: &Source<'_>) -> FileFindings {
    match abac::load_abac_policies(source, &abac::AbacPolicyLoadOptions::default()) {
        Ok(loaded) => {
            let n_policies = loaded.abac_policy_snapshot.policies().len();
            let discovery =
                abac::warn_of_ungranted_discovery_paths(source, &loaded.abac_policy_snapshot);
            let warnings = loaded.warnings.into_iter().chain(discovery);
            FileFindings {
                content_summary: Some(ContentSummary::AbacPolicy { n_policies }),
                warnings: warnings.map(Finding::from).collect(),
                n_omitted_warnings: loaded.n_warnings_dropped,
                ..FileFindings::default()
            }
        }
        Err(error) => {
            let kubernetes_message = Some(error.to_string());
            let errors = vec![Finding::from(*error.diagnostic)];
            FileFindings {
                kubernetes_error_message: kubernetes_message,
                errors,
                ..FileFindings::default()
            }
        }
    }
}

fn check_authorization_hook_file(source: &Source<'_>) -> FileFindings {
    let loaded = authorization_hooks::load_authorization_hooks(source);
    let warnings = loaded.warnings.into_iter().map(Finding::from).collect();
    match loaded.authorization_hooks {
        Ok(hooks) => {
            let names = hooks.into_iter().map(|hook| hook.name).collect();
            FileFindings {
                content_summary: Some(ContentSummary::Hooks { names }),
                warnings,
                ..FileFindings::default()
            }
        }
        Err(error) => {
            let kubernetes_message = Some(error.to_string());
            let errors = error.diagnostics().iter().cloned().map(Finding::from).collect();
            FileFindings {
                kubernetes_error_message: kubernetes_message,
                errors,
                warnings,
                ..FileFindings::default()
            }
        }
    }
}

/// Decodes a kubeconfig without checking the files that it names.
fn check_kubeconfig(source: &Source<'_>) -> FileFindings {
    match kubeconfig::decode_kubeconfig(source) {
        Ok(decoded) => FileFindings {
            content_summary: Some(ContentSummary::Kubeconfig),
            warnings: decoded.warnings.into_iter().map(Finding::from).collect(),
            ..FileFindings::default()
        },
        Err(error) => {
            let kubernetes_message = Some(error.kubernetes_message);
            let errors = error.diagnostics.into_iter().map(Finding::from).collect();
            FileFindings {
                kubernetes_error_message: kubernetes_message,
                errors,
                ..FileFindings::default()
            }
        }
    }
}

/// The findings of a file that contains nothing to check.
fn empty_file_findings() -> FileFindings {
    FileFindings { content_summary: Some(ContentSummary::NoObjects), ..FileFindings::default() }
}

pub(super) fn check_manifest(
    source: &Source<'_>,
    options: &CheckOptions<'_>,
    gathered: &mut CrossFileObjects,
) -> FileFindings {
    let read_options = ManifestReadOptions {
        kind_handler: &crate::admission_validation::decide_admission_kind_handling,
        default_namespace: options.namespace,
    };
    let read = manifests::read_manifests_with_options(source, read_options);
    if read.has_no_objects {
        return empty_file_findings();
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let kinds = read.authorizer_objects.iter().map(|found| found.authorizer_object.kind_name());
    for kind in kinds.chain(read.unstructured_objects.iter().map(UnstructuredObject::kind_name)) {
        *counts.entry(kind.to_owned()).or_default() += 1;
    }
    gathered.authorization_objects.extend(read.authorizer_objects);
    let mut file = FileFindings {
        errors: read.errors.into_iter().map(Finding::from).collect(),
        warnings: read.warnings.into_iter().map(Finding::from).collect(),
        n_omitted_warnings: read.n_warnings_dropped,
        ..FileFindings::default()
    };
    gathered
        .admission_configurations
        .check_and_keep_admission_configurations(read.unstructured_objects, &mut file);
    if file.errors.is_empty() {
        let (kinds, n_unused_objects) = (counts.into_iter().collect(), read.n_unused_objects);
        file.content_summary = Some(ContentSummary::Manifest { kinds, n_unused_objects });
    }
    file
}

/// Checks references between files. If any file has an error it skips the check for missing roles,
/// because a role in that file may not have been read. The same holds for a cluster that is read in part.
fn check_across_files(
    checked: &mut [CheckedFile],
    gathered: &CrossFileObjects,
    stored_roles: OtherExistingRoles,
) {
    let is_clean = checked.iter().all(|checked| match &checked.check_outcome {
        CheckOutcome::Unreadable { .. } => false,
        CheckOutcome::Read(file) => file.errors.is_empty(),
    });
    let mut files = HashMap::new();
    for CheckedFile { name, check_outcome: outcome } in checked {
        if let CheckOutcome::Read(file) = outcome {
            files.entry(name.as_str()).or_insert(file);
        }
    }
    let CrossFileObjects {
        authorization_objects: objects,
        admission_configurations: configurations,
        ..
    } = gathered;
    let (cycles, unknown) = initializer_order_findings(configurations);
    let DuplicateObjects { errors: mut faults, mut warnings } =
        manifests::find_duplicate_objects(objects);
    let duplicate_configurations = configurations.find_duplicate_admission_configurations();
    faults.extend(duplicate_configurations.errors);
    warnings.extend(duplicate_configurations.warnings);
    faults.extend(cycles);
    for warning in warnings {
        if let Some(file) = files.get_mut(warning.file_name.as_str()) {
            file.warnings.push(warning.into());
        }
    }
    for fault in faults {
        if let Some(file) = files.get_mut(fault.file_name.as_str()) {
            file.errors.push(fault.into());
        }
    }
    if !is_clean || stored_roles == OtherExistingRoles::SomeUnknown {
        return;
    }
    let has_default_roles = stored_roles == OtherExistingRoles::Defaults;
    for warning in manifests::lint_role_references(objects, has_default_roles) {
        if let Some(file) = files.get_mut(warning.file_name.as_str()) {
            file.warnings.push(warning.into());
        }
    }
    for (name, finding) in unknown {
        if let Some(file) = files.get_mut(name) {
            file.warnings.push(finding);
        }
    }
}
