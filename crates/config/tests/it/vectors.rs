//! Recorded answers of Kubernetes. The conformance suite runs the same vectors with a ledger of agreed
//! differences. Here they check this crate alone, including the texts of decode errors.

use std::path::Path;

use config::authorization_config::{
    FileState, LoadError, LoadOptions, ServerRole, authorization_configuration_to_json,
    load_authorization_configuration,
};
use document::Source;
use serde_json::Value;

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/config-load.jsonl");

/// Warnings about files that Kubernetes refuses, each with the fault that Kubernetes reports.
const ACCEPTED: [(&str, &str); 2] = [
    ("missing-built-in-name", ".name: Required value"),
    ("kube-config-alias", ".connectionInfo.type: Unsupported value"),
];

#[test]
fn answers_match_the_recorded_ones() {
    let text = std::fs::read_to_string(VECTORS).unwrap();
    let vectors: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(vectors.len() > 600, "only {} vectors", vectors.len());
    let failures: Vec<String> = vectors.iter().filter_map(find_difference).collect();
    assert!(
        failures.is_empty(),
        "{} of {} fail:\n{}",
        failures.len(),
        vectors.len(),
        failures.join("\n")
    );
}

/// Loads the file of a vector. Returns a description of the difference from the recorded answer, if any.
fn find_difference(vector: &Value) -> Option<String> {
    let files = |path: &Path| probe(&vector["files"], path);
    let options =
        LoadOptions { role: ServerRole::Delegated, stat_file: &files, ..LoadOptions::default() };
    let text = vector["text"].as_str().unwrap_or_default();
    let loaded = load_authorization_configuration(
        &Source { name: "config", file_bytes: text.as_bytes() },
        &options,
    );
    let want = &vector["expect"];
    let want_error = want["error"].as_str().unwrap_or_default();

    for (code, fault) in ACCEPTED {
        if loaded.warnings.iter().any(|warning| warning.code.name() == code) {
            return (!want_error.contains(fault)).then(|| describe(vector, code));
        }
    }
    let theirs = |list: &Value, of: fn(&Value) -> &Value| -> Vec<String> {
        let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().map(|item| fixed_part(of(item).as_str().unwrap_or_default())).collect()
    };
    let ours = |error: &LoadError| -> Vec<String> {
        error.diagnostics().iter().map(|d| fixed_part(&d.fault.to_string())).collect()
    };
    let (result, is_same) = match &loaded.configuration {
        Ok(configuration) => (
            "valid",
            without_empty(&authorization_configuration_to_json(configuration))
                == without_empty(&want["effective"]),
        ),
        Err(error @ LoadError::Decode(_)) => {
            ("decodeError", is_same_decode_error(error, want_error))
        }
        Err(error @ LoadError::Invalid(_)) => {
            ("invalid", ours(error) == theirs(&want["errors"], |fault| &fault["message"]))
        }
        Err(error @ LoadError::Server(_)) => {
            ("nameError", ours(error) == theirs(&want["nameErrors"], |text| text))
        }
    };
    let is_same = result == want["result"] && is_same;
    (!is_same).then(|| {
        let configuration = loaded.configuration.map_err(|e| e.to_string());
        describe(vector, &format!("{result}: {configuration:?}"))
    })
}

fn describe(vector: &Value, got: &str) -> String {
    let want = &vector["expect"];
    format!("{}: want {want}\n  got {got}", vector["id"].as_str().unwrap_or_default())
}

/// Cuts off the message of the expression compiler, which differs.
fn fixed_part(text: &str) -> String {
    let mark = "compilation failed: ";
    text.find(mark).map_or(text, |at| &text[..at + mark.len()]).to_owned()
}

/// Compares the texts of decode errors. Two differ: this crate does not decode other kinds completely, and
/// does not format values as Go source.
fn is_same_decode_error(ours: &LoadError, theirs: &str) -> bool {
    let ours = ours.to_string();
    ours == theirs
        || ours.contains("expected AuthorizationConfiguration, got *apiserver.")
        || (ours.ends_with("yaml: invalid map key") && theirs.starts_with(&ours))
}

/// Returns the state of a path on the recorded file system. One vector names a file that always exists through
/// a folder, and lists only the folder.
fn probe(files: &Value, path: &Path) -> FileState {
    let kind = |path: &Path| match path.to_str()? {
        "/conformance/dir/../authz.kubeconfig" => Some("regular"),
        path => files[path].as_str(),
    };
    match kind(path) {
        Some("directory") => FileState::Irregular,
        Some(_) => FileState::Regular,
        None => {
            let is_below_file = path.ancestors().skip(1).any(|above| kind(above).is_some());
            let kubernetes_message =
                if is_below_file { "not a directory" } else { "no such file or directory" };
            FileState::Unreadable {
                error: format!("stat {}: {kubernetes_message}", path.display()),
            }
        }
    }
}

/// Removes members that are null, false or empty, because these mean the same as absent.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), without_empty(value)))
            .filter(|(_, value)| !is_empty(value))
            .collect(),
        Value::Array(items) => items.iter().map(without_empty).collect(),
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) | Value::Number(_) => false,
    }
}
