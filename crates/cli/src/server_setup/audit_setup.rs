//! Builds the auditor from flags, the audit policy file and the kubeconfig of the audit webhook.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use audit::{Auditor, Backend, LOG_BACKEND, LogRotationOptions, Policy};
use component_base::{AUDIT_WEBHOOK_BACKEND, AuditWebhook, Log};
use https_client::{Client, Limits, NoCertificateObserver};
use kubeconfig::LoadedConnections;

use super::audit_flags::AuditFlags;
use super::read_text_file;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Builds the auditor; `None` if no audit policy is given.
///
/// # Errors
/// The policy or the kubeconfig is invalid, the log cannot be written, or the flags contradict each other.
pub(crate) fn build_auditor(
    flags: &AuditFlags,
    connect_timeout: Duration,
    log: &Log,
) -> anyhow::Result<Option<Auditor>> {
    flags.check_flag_conflicts()?;
    let Some(path) = &flags.audit_policy_file else { return Ok(None) };
    let (policy, warnings) = Policy::parse(read_text_file(path)?.as_bytes())
        .with_context(|| format!("audit policy `{}`", path.display()))?;
    for warning in warnings {
        log.warn("audit policy warning", &[("why", &warning)]);
    }
    let mut backends = Vec::new();
    if let Some(target) = &flags.audit_log_path {
        let sink = Arc::new(open_audit_log(flags, target)?);
        backends.push(Backend::start(LOG_BACKEND, sink, flags.audit_log_options())?);
    }
    if let Some(path) = &flags.audit_webhook_config_file {
        let client = build_audit_webhook_client(path, connect_timeout, log)
            .with_context(|| format!("audit webhook kubeconfig `{}`", path.display()))?;
        let sink = Arc::new(AuditWebhook::new(client, flags.audit_webhook_initial_backoff));
        backends.push(Backend::start(AUDIT_WEBHOOK_BACKEND, sink, flags.audit_webhook_options())?);
    }
    Ok(Some(Auditor::new(policy, backends)))
}

fn open_audit_log(flags: &AuditFlags, target: &Path) -> Result<audit::AuditLog, audit::LogError> {
    if target == Path::new("-") {
        return Ok(audit::AuditLog::log_to_stdout());
    }
    audit::AuditLog::open_log_file(
        target,
        LogRotationOptions {
            file_bytes_max: (flags.audit_log_maxsize > 0)
                .then(|| flags.audit_log_maxsize.saturating_mul(1 << 20)),
            backup_age_max: u32::try_from(flags.audit_log_maxage)
                .ok()
                .filter(|days| *days > 0)
                .map(|days| DAY * days),
            backups_max: Some(flags.audit_log_maxbackup).filter(|count| *count > 0),
        },
    )
}

/// Builds the client of the audit webhook. The operator wrote the address, so every address is allowed.
fn build_audit_webhook_client(
    path: &Path,
    connect_timeout: Duration,
    log: &Log,
) -> anyhow::Result<Client> {
    let loaded = kubeconfig::load_connections(path, &kubeconfig::read_file)?;
    let LoadedConnections::Kubeconfig(connection) = loaded else {
        anyhow::bail!("the file is not a kubeconfig");
    };
    for warning in &connection.warnings {
        log.warn("audit webhook kubeconfig warning", &[("why", &warning.message)]);
    }
    let limits = Limits {
        response_body_bytes_max: AuditWebhook::RESPONSE_BYTES_MAX,
        connect_timeout,
        ..Limits::default()
    };
    Ok(Client::new(connection.client_target, None, limits, Arc::new(NoCertificateObserver))?)
}
