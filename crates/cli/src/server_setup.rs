//! The parts of a command that listens, which `serve` and `webhook` share: flags of the log and of audit, the authorizers and
//! their reload, the signals that stop the program, and the runtime.

mod audit_flags;
mod audit_setup;
mod authorization_log_observer;
mod authorizer_setup;
mod log_flags;
mod parse_flag_values;
mod return_freed_memory;
mod run_program;
mod stop_signals;

use std::path::Path;

use anyhow::Context;
use component_base::{Log, LogField};
use https_server::Limits;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

pub(crate) use audit_flags::AuditFlags;
pub(crate) use audit_setup::build_auditor;
pub(crate) use authorizer_setup::{
    AuthorizerSetup, AuthorizerSetupOptions, server_identity_in_metrics,
};
pub(crate) use log_flags::LogFlags;
pub(crate) use parse_flag_values::{
    parse_admission_webhook_timeout, parse_byte_size, parse_duration, parse_key_prefix,
    parse_kubernetes_version, parse_positive_byte_size, parse_positive_duration,
    parse_store_size_limit, parse_webhook_response_size_limit,
};
pub(crate) use run_program::{ServerProgram, run_server_program};
pub(crate) use stop_signals::StopSignals;

/// Raises the limit of open files, and returns the limits of connections that it allows.
pub(crate) fn raise_open_file_limit(connections_max: usize, log: Log) -> Limits {
    let descriptors = https_server::raise_descriptor_limit();
    let limits = Limits::for_connection_count(connections_max, descriptors);
    let number = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |n| n.to_string());
    let (found, current) =
        (number(descriptors.initial_open_files_max), number(descriptors.current_open_files_max));
    let allowed = limits.connections_max;
    let fields: [LogField<'_>; 3] =
        [("found", &found), ("current", &current), ("connections", &allowed)];
    match allowed < connections_max {
        true => log.warn(
            "the limit of open files allows fewer connections than --max-connections",
            &fields,
        ),
        false => log.notice("the limit of open files", &fields),
    }
    limits
}

/// Reads a text file that a flag names.
pub(crate) fn read_text_file(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// Reads the certificates of a PEM file that a flag names.
pub(crate) fn load_certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let text = read_text_file(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let found = found.with_context(|| format!("`{}` is not PEM", path.display()))?;
    anyhow::ensure!(!found.is_empty(), "`{}` holds no certificate", path.display());
    Ok(found)
}
