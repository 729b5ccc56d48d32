//! Files that say how webhooks are reached, with everything that they refer to.

use std::path::Path;
use std::sync::Arc;

use document::{Diagnostic, Fault, Place, ReadError, Source, Warning};
use https_client::{Client, Limits, NoCertificateObserver};
use kubeconfig::{Connection, LoadError, LoadedConnections};

use super::finding::{Checked, Finding, Outcome, ReadFile, Summary};

/// The first byte of a file, for what is wrong with all of it.
const WHOLE_FILE: Place = Place { line: 1, column: 1, start: 0, end: 0 };

/// Checks a file that a configuration names as `kubeConfigFile`. What is in order is nothing to talk
/// about, for nobody asked about this file.
pub(super) fn check_named(path: &Path) -> Option<Checked> {
    let name = path.to_string_lossy().into_owned();
    let bytes = match kubeconfig::read_file(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = ReadError::new(path, &error).to_string();
            return Some(Checked { name, outcome: Outcome::Unreadable { message } });
        }
    };
    let source = Source { name: &name, bytes: &bytes };
    let loaded = kubeconfig::parse(&source, path, &kubeconfig::read_file);
    let loaded = loaded.and_then(|loaded| {
        loaded.into_single_connection().map(Box::new).map(LoadedConnections::Kubeconfig)
    });
    let file = read_file(&source, loaded);
    let text = source.text().into_owned();
    let outcome = Outcome::Read(Box::new(ReadFile { text, ..file }));
    match &outcome {
        Outcome::Read(file) if file.n_findings() == 0 => None,
        Outcome::Read(_) | Outcome::Unreadable { .. } => Some(Checked { name, outcome }),
    }
}

/// Checks a kubeconfig or a file of hooks as a server would use it: what it refers to is read.
pub(super) fn check(source: &Source<'_>, path: &Path) -> ReadFile {
    read_file(source, kubeconfig::parse(source, path, &kubeconfig::read_file))
}

fn read_file(source: &Source<'_>, loaded: Result<LoadedConnections, LoadError>) -> ReadFile {
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            let refusal = Some(error.to_string());
            let errors = match error.diagnostics() {
                [] => vec![whole_file(source, &error.to_string())],
                diagnostics => diagnostics.iter().cloned().map(Finding::from).collect(),
            };
            return ReadFile { refusal, errors, ..ReadFile::default() };
        }
    };
    let (summary, connections) = match loaded {
        LoadedConnections::Kubeconfig(connection) => (Summary::Kubeconfig, vec![*connection]),
        LoadedConnections::Hooks(hooks) => {
            let names = hooks.iter().map(|hook| hook.name.clone()).collect();
            let connections = hooks.into_iter().map(|hook| hook.connection).collect();
            (Summary::Hooks { names }, connections)
        }
    };
    let mut warnings: Vec<Warning> = Vec::new();
    let mut errors = Vec::new();
    for Connection { target, warnings: more, .. } in connections {
        warnings.extend(more);
        let client = Client::new(target, None, Limits::default(), Arc::new(NoCertificateObserver));
        errors.extend(client.err().map(|error| whole_file(source, &error.to_string())));
    }
    // Each hook repeats what is odd about the whole file.
    warnings.dedup();
    ReadFile {
        summary: errors.is_empty().then_some(summary),
        errors,
        warnings: warnings.into_iter().map(Finding::from).collect(),
        ..ReadFile::default()
    }
}

fn whole_file(source: &Source<'_>, message: &str) -> Finding {
    Finding::from(Diagnostic {
        fault: Fault::Server { field: String::new(), message: message.to_owned() },
        file: source.name.to_owned(),
        place: WHOLE_FILE,
        hint: None,
        notes: Vec::new(),
    })
}
