//! `config-load`: an AuthorizationConfiguration file as the server loads it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use config::authorization_config::{
    self, LoadError, LoadOptions, LoadedAuthorizationConfiguration, ServerRole,
};
use document::{Diagnostic, Fault, Source};
use serde_json::{Value, json};

use super::field_error_json::field_error_to_json;
use super::replace_texts::replace_texts;
use super::{AnswerPair, Warning};
use crate::compare::length_through;
use crate::vectors::{UnusableVector, Vector};

/// The folder of paths in the vectors; it stands for a temporary folder.
const PLACEHOLDER: &str = "/conformance";

/// The last words of Kubernetes before the text of a decoder, a compiler or the operating system.
const MARKERS: [&str; 3] = [
    "failed to load AuthorizationConfiguration from file: ",
    "compilation failed: ",
    "error loading file: ",
];

pub(super) fn exact_length(text: &str) -> usize {
    length_through(text, &MARKERS)
}

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let folder = tempfile::tempdir()
        .map_err(|error| UnusableVector::new(format!("no folder for files: {error}")))?;
    let folder = folder.path();
    let shown = folder
        .to_str()
        .ok_or_else(|| UnusableVector::new("the folder for files has a name that is not UTF-8"))?;
    make_files(vector, folder)?;
    let text = vector.text("text")?.replace(PLACEHOLDER, shown);
    let loaded = load(&text);
    let mut got = result_to_json(&loaded);
    replace_texts(&mut got, shown, PLACEHOLDER);
    let warnings = loaded.warnings.iter().map(|warning| Warning {
        code: warning.code.name().to_owned(),
        field: warning.field.clone(),
    });
    Ok(AnswerPair { want: vector.member("expect")?.clone(), got, warnings: warnings.collect() })
}

/// Loads as a delegated server does. The main server also refuses `InClusterConfig`, while Kubernetes' validation
/// accepts it and the process fails later.
pub(super) fn load(text: &str) -> LoadedAuthorizationConfiguration {
    let source = Source { name: "config", file_bytes: text.as_bytes() };
    let options = LoadOptions { role: ServerRole::Delegated, ..LoadOptions::default() };
    authorization_config::load_authorization_configuration(&source, &options)
}

fn result_to_json(loaded: &LoadedAuthorizationConfiguration) -> Value {
    let error = match &loaded.configuration {
        Ok(configuration) => {
            return json!({
                "result": "valid",
                "effective": authorization_config::authorization_configuration_to_json(configuration),
            });
        }
        Err(error) => error,
    };
    match error {
        LoadError::Decode(_) => json!({ "result": "decodeError", "error": error.to_string() }),
        LoadError::Invalid(diagnostics) => json!({
            "result": "invalid",
            "error": error.to_string(),
            "errors": diagnostics.iter().map(diagnostic_to_json).collect::<Vec<_>>(),
        }),
        LoadError::Server(diagnostics) => {
            let messages = diagnostics.iter().map(|diagnostic| diagnostic.fault.to_string());
            json!({
                "result": "nameError",
                "error": error.to_string(),
                "nameErrors": messages.collect::<Vec<_>>(),
            })
        }
    }
}

/// Converts a validation error. The vectors cannot express other diagnostics, so those never equal a recorded
/// answer.
pub(super) fn diagnostic_to_json(diagnostic: &Diagnostic) -> Value {
    match &diagnostic.fault {
        Fault::Field(error) => field_error_to_json(error),
        other @ (Fault::Decode { .. } | Fault::Server { .. }) => {
            json!({ "unexpected": other.to_string() })
        }
    }
}

/// The files that existed in every recording, whether a vector lists them or not.
const PERMANENT_FILES: [(&str, &str); 5] = [
    ("authz.kubeconfig", "regular"),
    ("dir", "directory"),
    ("empty.kubeconfig", "regular"),
    ("link.kubeconfig", "symlink"),
    ("second.kubeconfig", "regular"),
];

/// Makes the files that the vector lists, and those that always exist.
fn make_files(vector: &Vector, folder: &Path) -> Result<(), UnusableVector> {
    let mut files = BTreeMap::from(PERMANENT_FILES);
    if let Some(listed) = vector.body.get("files") {
        let listed =
            listed.as_object().ok_or_else(|| UnusableVector::new("`files` is not an object"))?;
        for (path, kind) in listed {
            let below = path.strip_prefix(PLACEHOLDER).and_then(|rest| rest.strip_prefix('/'));
            let name = below
                .filter(|name| !name.is_empty() && !name.contains(['/', '\\']) && *name != "..")
                .ok_or_else(|| {
                    UnusableVector::new(format!("`{path}` is not a file right below {PLACEHOLDER}"))
                })?;
            files.insert(name, kind.as_str().unwrap_or_default());
        }
    }
    for (name, kind) in files {
        make_file(&folder.join(name), kind).map_err(|error| {
            UnusableVector::new(format!("cannot make `{PLACEHOLDER}/{name}` ({kind}): {error}"))
        })?;
    }
    Ok(())
}

fn make_file(path: &Path, kind: &str) -> io::Result<()> {
    match kind {
        "regular" => fs::write(path, ""),
        "directory" => fs::create_dir(path),
        "symlink" => {
            let mut target = path.as_os_str().to_owned();
            target.push(".target");
            fs::write(&target, "")?;
            std::os::unix::fs::symlink(&target, path)
        }
        _ => Err(io::Error::other("unknown kind of file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(files: Value) -> Vector {
        let body = json!({"text": "", "files": files, "expect": {}});
        let Value::Object(body) = body else { panic!("the body is an object") };
        Vector { id: "v".to_owned(), feature: "f".to_owned(), body }
    }

    #[test]
    fn files_are_made_as_described() {
        let folder = tempfile::tempdir().unwrap();
        let files = json!({
            "/conformance/a": "regular", "/conformance/b": "directory",
            "/conformance/c": "symlink",
        });
        make_files(&vector(files), folder.path()).unwrap();
        let kind = |name: &str| fs::symlink_metadata(folder.path().join(name)).unwrap();
        assert!(kind("a").is_file() && kind("b").is_dir() && kind("c").is_symlink());
        assert!(fs::metadata(folder.path().join("c")).unwrap().is_file());
        assert!(kind("authz.kubeconfig").is_file(), "always there");
    }

    #[test]
    fn files_elsewhere_and_of_unknown_kinds_are_refused() {
        for (path, kind) in [
            ("/etc/passwd", "regular"),
            ("/conformance/../x", "regular"),
            ("/conformance/..", "regular"),
            ("/conformance/", "regular"),
            ("/conformancex", "regular"),
            ("/conformance/a", "socket"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let error = make_files(&vector(json!({ path: kind })), folder.path()).unwrap_err();
            assert!(error.to_string().contains(&format!("`{path}`")), "{error}");
        }
    }
}
