//! Checks the connection files of webhooks and the files that they name.

use std::path::Path;
use std::sync::Arc;

use document::{Diagnostic, Fault, ReadError, Source, SourcePosition, Warning};
use https_client::{Client, Limits, NoCertificateObserver};
use kubeconfig::{LoadError, LoadedConnections, ServerConnection};

use super::finding::{CheckOutcome, CheckedFile, ContentSummary, FileFindings, Finding};

/// The start of a file, as position of errors that concern the whole file.
const FILE_START: SourcePosition = SourcePosition { line: 1, column: 1, start: 0, end_offset: 0 };

/// Checks a file that a configuration names as `kubeConfigFile`. Returns `None` if it has no finding.
pub(super) fn check_referenced_kubeconfig(path: &Path) -> Option<CheckedFile> {
    let name = path.to_string_lossy().into_owned();
    let bytes = match kubeconfig::read_file(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = ReadError::new(path, &error).to_string();
            return Some(CheckedFile { name, check_outcome: CheckOutcome::Unreadable { message } });
        }
    };
    let source = Source { name: &name, file_bytes: &bytes };
    let loaded = kubeconfig::parse_connections(&source, path, &kubeconfig::read_file);
    let loaded = loaded.and_then(|loaded| {
        loaded.into_single_connection().map(Box::new).map(LoadedConnections::Kubeconfig)
    });
    let file = connection_file_findings(&source, loaded);
    let text = source.text().into_owned();
    let outcome = CheckOutcome::Read(Box::new(FileFindings { file_text: text, ..file }));
    match &outcome {
        CheckOutcome::Read(file) if file.n_findings() == 0 => None,
        CheckOutcome::Read(_) | CheckOutcome::Unreadable { .. } => {
            Some(CheckedFile { name, check_outcome: outcome })
        }
    }
}

/// Checks a kubeconfig or a hook file and the files that it names, as a server would.
pub(super) fn check_webhook_connection_file(source: &Source<'_>, path: &Path) -> FileFindings {
    connection_file_findings(
        source,
        kubeconfig::parse_connections(source, path, &kubeconfig::read_file),
    )
}

fn connection_file_findings(
    source: &Source<'_>,
    loaded: Result<LoadedConnections, LoadError>,
) -> FileFindings {
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            let kubernetes_message = Some(error.to_string());
            let errors = match error.diagnostics() {
                [] => vec![whole_file_finding(source, &error.to_string())],
                diagnostics => diagnostics.iter().cloned().map(Finding::from).collect(),
            };
            return FileFindings {
                kubernetes_error_message: kubernetes_message,
                errors,
                ..FileFindings::default()
            };
        }
    };
    let (summary, connections) = match loaded {
        LoadedConnections::Kubeconfig(connection) => {
            (ContentSummary::Kubeconfig, vec![*connection])
        }
        LoadedConnections::Hooks(hooks) => {
            let names = hooks.iter().map(|hook| hook.name.clone()).collect();
            let connections = hooks.into_iter().map(|hook| hook.server_connection).collect();
            (ContentSummary::Hooks { names }, connections)
        }
    };
    let mut warnings: Vec<Warning> = Vec::new();
    let mut errors = Vec::new();
    for ServerConnection { client_target: target, warnings: more, .. } in connections {
        warnings.extend(more);
        let client = Client::new(target, None, Limits::default(), Arc::new(NoCertificateObserver));
        errors.extend(client.err().map(|error| whole_file_finding(source, &error.to_string())));
    }
    // Each hook repeats the warnings about the whole file.
    warnings.dedup();
    FileFindings {
        content_summary: errors.is_empty().then_some(summary),
        errors,
        warnings: warnings.into_iter().map(Finding::from).collect(),
        ..FileFindings::default()
    }
}

fn whole_file_finding(source: &Source<'_>, message: &str) -> Finding {
    Finding::from(Diagnostic {
        fault: Fault::Server { field: String::new(), message: message.to_owned() },
        file_name: source.name.to_owned(),
        position: FILE_START,
        hint: None,
        expression_issues: Vec::new(),
    })
}
