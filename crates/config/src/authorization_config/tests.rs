//! Loading and validation of configurations, with the positions, hints and warnings that Kubernetes does not
//! have.

mod loading;
mod positions;
mod validation;

use std::path::Path;

use document::{Source, WarningCode};

use super::{
    FileState, LoadError, LoadOptions, LoadedAuthorizationConfiguration, ServerRole,
    load_authorization_configuration,
};

const HEADER: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n";

/// The fields of a valid webhook, `W` in the tables.
const WEBHOOK: [(&str, &str); 5] = [
    ("timeout", "5s"),
    ("failurePolicy", "NoOpinion"),
    ("subjectAccessReviewVersion", "v1"),
    ("matchConditionSubjectAccessReviewVersion", "v1"),
    ("connectionInfo", "{type: KubeConfigFile, kubeConfigFile: /good}"),
];

/// A file with the given list of authorizers.
fn file(authorizers: &str) -> String {
    format!("{HEADER}authorizers:\n{authorizers}")
}

/// A webhook named `w` with some fields changed; an empty value leaves the field out.
fn webhook(changes: &[(&str, &str)]) -> String {
    let changed = |name: &str| changes.iter().find(|(field, _)| *field == name);
    let kept = WEBHOOK.iter().filter(|(name, _)| changed(name).is_none());
    let mut text = "- type: Webhook\n  name: w\n  webhook:\n".to_owned();
    for (name, value) in kept.chain(changes).filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("    {name}: {value}\n"));
    }
    text
}

/// The files that exist for these tests.
fn probe(path: &Path) -> FileState {
    match path.to_str() {
        Some("/good" | "/empty" | "/link") => FileState::Regular,
        Some("/dir") => FileState::Irregular,
        _ => FileState::Unreadable { error: "no such file".to_owned() },
    }
}

/// Loads with the rules of the format only, without the rules of a server.
fn generic() -> LoadOptions<'static> {
    LoadOptions { role: ServerRole::Delegated, stat_file: &probe, ..LoadOptions::default() }
}

/// The default options, which include the rules of a server.
fn server() -> LoadOptions<'static> {
    LoadOptions { stat_file: &probe, ..LoadOptions::default() }
}

fn load_text(text: &str, options: &LoadOptions<'_>) -> LoadedAuthorizationConfiguration {
    load_authorization_configuration(
        &Source { name: "test.yaml", file_bytes: text.as_bytes() },
        options,
    )
}

/// Returns the message of every fault; empty if the file is accepted.
fn faults(text: &str, options: &LoadOptions<'_>) -> Vec<String> {
    match load_text(text, options).configuration {
        Ok(_) => Vec::new(),
        Err(error) => error.diagnostics().iter().map(|d| d.fault.to_string()).collect(),
    }
}

/// Returns the text of a decode error.
fn decode_error(text: &str) -> String {
    match load_text(text, &generic()).configuration {
        Err(error @ LoadError::Decode(_)) => error.to_string(),
        other => panic!("expected a decode error of {text:?}, got {other:?}"),
    }
}

fn warnings(text: &str, options: &LoadOptions<'_>) -> Vec<WarningCode> {
    load_text(text, options).warnings.iter().map(|warning| warning.code).collect()
}
