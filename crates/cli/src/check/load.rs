//! Checks inputs: each by the loader of its kind, and manifests also together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::path::PathBuf;

use authz_chain::{Authorizer, Configuration};
use authz_webhook::Connection;
use config::FileKind;
use config::authorization_config::{self, LoadError, LoadOptions};
use config::authorization_hooks;
use document::{Diagnostic, Source};
use manifests::abac;
use manifests::{ManifestObject, WholeObject};

use super::admission::{Configurations, check_order};
use super::connection;
use super::finding::{Checked, Finding, Outcome, ReadFile, Summary, is_missing_file};
use super::input::{Content, Input};
use crate::kind::known_kinds;

/// What a check depends on besides the files.
pub(super) struct Options<'a> {
    pub(super) configuration: LoadOptions<'a>,
    /// Files that are named in files are here and can be looked at.
    pub(super) has_named_files: bool,
    /// What all files are; if not given, their content tells.
    pub(super) kind: Option<FileKind>,
    /// The default roles of Kubernetes exist beside those of the files.
    pub(super) has_bootstrap_policy: bool,
    /// Warnings are errors.
    pub(super) is_strict: bool,
}

/// Reads and checks all inputs.
pub(super) fn check(inputs: &[Input], stdin: &mut dyn Read, options: &Options<'_>) -> Vec<Checked> {
    let mut gathered = Gathered::default();
    let mut checked: Vec<Checked> =
        inputs.iter().map(|input| check_input(input, stdin, options, &mut gathered)).collect();
    check_together(&mut checked, &gathered, options.has_bootstrap_policy);
    if options.has_named_files {
        let is_input = |path: &PathBuf| inputs.iter().any(|input| input.is_file(path));
        let named = gathered.connection_files.iter().filter(|path| !is_input(path));
        checked.extend(named.filter_map(|path| connection::check_named(path)));
    }
    for checked in &mut checked {
        if let Outcome::Read(file) = &mut checked.outcome {
            file.warnings.sort_by_key(|warning| warning.place);
            if options.is_strict {
                file.errors.append(&mut file.warnings);
            }
        }
    }
    checked
}

/// What files have that has to be looked at after them.
#[derive(Default)]
struct Gathered {
    objects: Vec<ManifestObject>,
    configurations: Configurations,
    /// The files that say how webhooks are reached.
    connection_files: BTreeSet<PathBuf>,
}

fn check_input(
    input: &Input,
    stdin: &mut dyn Read,
    options: &Options<'_>,
    gathered: &mut Gathered,
) -> Checked {
    let name = input.name();
    let outcome = match input.read(stdin, options.kind) {
        Err(message) => Outcome::Unreadable { message },
        Ok(Content { bytes, kind }) => {
            let source = Source { name: &name, bytes: &bytes };
            let path = input.path().filter(|_| options.has_named_files);
            let file = match (kind, path) {
                (Some(FileKind::Manifest), _) => check_manifest(&source, gathered),
                (Some(FileKind::AbacPolicy), _) => check_policies(&source),
                (Some(FileKind::HookConfiguration | FileKind::Kubeconfig), Some(path)) => {
                    connection::check(&source, path)
                }
                (Some(FileKind::HookConfiguration), None) => check_hooks(&source),
                (Some(FileKind::Kubeconfig), None) => check_kubeconfig(&source),
                // What can not be told is most likely a configuration that is quite wrong.
                (Some(FileKind::AuthorizationConfiguration) | None, _) => {
                    let named = &mut gathered.connection_files;
                    check_configuration(&source, &options.configuration, named)
                }
            };
            Outcome::Read(Box::new(ReadFile { text: into_text(&name, bytes), ..file }))
        }
    };
    Checked { name, outcome }
}

/// The text that places refer to, without a copy of what may be a large file.
fn into_text(name: &str, bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| Source { name, bytes: error.as_bytes() }.text().into_owned())
}

fn check_configuration(
    source: &Source<'_>,
    options: &LoadOptions<'_>,
    named: &mut BTreeSet<PathBuf>,
) -> ReadFile {
    let loaded = authorization_config::load(source, options);
    let warnings = loaded.warnings.into_iter().map(Finding::from).collect();
    match loaded.configuration {
        Ok(configuration) => {
            named.extend(connection_files(&configuration));
            let names = configuration.authorizers().iter().map(Authorizer::name);
            let authorizers = names.map(str::to_owned).collect();
            let api_version = loaded.api_version;
            let summary = Some(Summary::Configuration { api_version, authorizers });
            ReadFile { summary, warnings, ..ReadFile::default() }
        }
        Err(error) => {
            let refusal = Some(error.to_string());
            let errors = configuration_errors(error, source.bytes.is_empty());
            ReadFile { refusal, errors, warnings, ..ReadFile::default() }
        }
    }
}

/// The files that say how webhooks are reached.
fn connection_files(configuration: &Configuration) -> Vec<PathBuf> {
    let file = |authorizer: &Authorizer| match authorizer {
        Authorizer::Webhook(webhook) => match &webhook.settings.connection {
            Connection::KubeConfigFile(path) => Some(path.as_path().to_owned()),
            Connection::InClusterConfig => None,
        },
        Authorizer::Abac
        | Authorizer::AlwaysAllow
        | Authorizer::AlwaysDeny
        | Authorizer::Node
        | Authorizer::Rbac => None,
    };
    configuration.authorizers().iter().filter_map(file).collect()
}

fn configuration_errors(error: LoadError, is_empty: bool) -> Vec<Finding> {
    let names_no_kind = is_about_the_kind(&error);
    let diagnostics = match error {
        LoadError::Decode(error) => error.diagnostics,
        LoadError::Invalid(diagnostics) | LoadError::Server(diagnostics) => diagnostics,
    };
    let mut findings: Vec<_> = diagnostics.into_iter().map(hinted).collect();
    if let [only] = findings.as_mut_slice() {
        if names_no_kind {
            only.add_hint(&format!("known kinds: {}", known_kinds()));
        } else if is_empty {
            only.add_hint("the input is empty");
        }
    }
    findings
}

/// The finding with what a flag of the program can do about it. Files that a configuration names are
/// on the server, so a missing one is the first fault that people meet in CI.
fn hinted(diagnostic: Diagnostic) -> Finding {
    let is_about_a_file = is_missing_file(&diagnostic.fault);
    let mut finding = Finding::from(diagnostic);
    if is_about_a_file {
        finding.add_hint("away from the server, `--assume-files-exist` leaves this to its start");
    }
    finding
}

/// Whether the one thing wrong is what the file says it is.
fn is_about_the_kind(error: &LoadError) -> bool {
    match error {
        LoadError::Decode(error) => match error.diagnostics.as_slice() {
            [only] => matches!(only.fault.field(), "kind" | "apiVersion"),
            _ => false,
        },
        LoadError::Invalid(_) | LoadError::Server(_) => false,
    }
}

fn check_policies(source: &Source<'_>) -> ReadFile {
    match abac::load(source, &abac::LoadOptions::default()) {
        Ok(loaded) => {
            let n_policies = loaded.snapshot.policies().len();
            ReadFile {
                summary: Some(Summary::AbacPolicy { n_policies }),
                warnings: loaded.warnings.into_iter().map(Finding::from).collect(),
                n_warnings_dropped: loaded.n_warnings_dropped,
                ..ReadFile::default()
            }
        }
        Err(error) => {
            let refusal = Some(error.to_string());
            let errors = vec![Finding::from(*error.diagnostic)];
            ReadFile { refusal, errors, ..ReadFile::default() }
        }
    }
}

fn check_hooks(source: &Source<'_>) -> ReadFile {
    let loaded = authorization_hooks::load(source);
    let warnings = loaded.warnings.into_iter().map(Finding::from).collect();
    match loaded.hooks {
        Ok(hooks) => {
            let names = hooks.into_iter().map(|hook| hook.name).collect();
            ReadFile { summary: Some(Summary::Hooks { names }), warnings, ..ReadFile::default() }
        }
        Err(error) => {
            let refusal = Some(error.to_string());
            let errors = error.diagnostics().iter().cloned().map(Finding::from).collect();
            ReadFile { refusal, errors, warnings, ..ReadFile::default() }
        }
    }
}

/// Whether it can be decoded, where nothing is known of what it refers to.
fn check_kubeconfig(source: &Source<'_>) -> ReadFile {
    match kubeconfig::decode(source) {
        Ok(decoded) => ReadFile {
            summary: Some(Summary::Kubeconfig),
            warnings: decoded.warnings.into_iter().map(Finding::from).collect(),
            ..ReadFile::default()
        },
        Err(error) => {
            let refusal = Some(error.kubernetes_message);
            let errors = error.diagnostics.into_iter().map(Finding::from).collect();
            ReadFile { refusal, errors, ..ReadFile::default() }
        }
    }
}

fn check_manifest(source: &Source<'_>, gathered: &mut Gathered) -> ReadFile {
    let read = manifests::read_and_keep_kinds(source, &crate::admission::keeps);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let kinds = read.objects.iter().map(|found| found.object.kind_name());
    for kind in kinds.chain(read.whole_objects.iter().map(WholeObject::kind_name)) {
        *counts.entry(kind.to_owned()).or_default() += 1;
    }
    gathered.objects.extend(read.objects);
    let mut file = ReadFile {
        errors: read.errors.into_iter().map(Finding::from).collect(),
        warnings: read.warnings.into_iter().map(Finding::from).collect(),
        n_warnings_dropped: read.n_warnings_dropped,
        ..ReadFile::default()
    };
    gathered.configurations.check(read.whole_objects, &mut file);
    if file.errors.is_empty() {
        let (kinds, n_other_objects) = (counts.into_iter().collect(), read.n_other_objects);
        file.summary = Some(Summary::Manifest { kinds, n_other_objects });
    }
    file
}

/// Checks what no file shows by itself. A role that could not be read is not missing, so with an
/// error anywhere nobody asks for missing roles.
fn check_together(checked: &mut [Checked], gathered: &Gathered, has_bootstrap_policy: bool) {
    let is_clean = checked.iter().all(|checked| match &checked.outcome {
        Outcome::Unreadable { .. } => false,
        Outcome::Read(file) => file.errors.is_empty(),
    });
    let mut files = HashMap::new();
    for Checked { name, outcome } in checked {
        if let Outcome::Read(file) = outcome {
            files.entry(name.as_str()).or_insert(file);
        }
    }
    let Gathered { objects, configurations, .. } = gathered;
    let (circles, unknown) = check_order(configurations);
    let mut faults = manifests::duplicate_objects(objects);
    faults.extend(configurations.duplicates());
    faults.extend(circles);
    for fault in faults {
        if let Some(file) = files.get_mut(fault.file.as_str()) {
            file.errors.push(fault.into());
        }
    }
    if !is_clean {
        return;
    }
    for warning in manifests::lint_role_references(objects, has_bootstrap_policy) {
        if let Some(file) = files.get_mut(warning.file.as_str()) {
            file.warnings.push(warning.into());
        }
    }
    for (name, finding) in unknown {
        if let Some(file) = files.get_mut(name) {
            file.warnings.push(finding);
        }
    }
}
