//! Builds the auditor from flags and the audit policy file.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use audit::{Auditor, Policy, Rotation};
use server::Log;

use super::read_text_file;
use super::serve_flags::AuditFlags;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Builds the auditor; `None` if no audit policy is given.
///
/// # Errors
/// The policy is invalid, or the file can not be written.
pub(super) fn build_auditor(flags: &AuditFlags, log: &Log) -> anyhow::Result<Option<Auditor>> {
    let Some(path) = &flags.audit_policy_file else { return Ok(None) };
    let (policy, warnings) = Policy::parse(read_text_file(path)?.as_bytes())
        .with_context(|| format!("audit policy `{}`", path.display()))?;
    for warning in warnings {
        log.warn("audit policy warning", &[("why", &warning)]);
    }
    let Some(target) = &flags.audit_log_path else {
        anyhow::bail!("--audit-policy-file needs --audit-log-path: a file, or `-`");
    };
    let sink = match target == Path::new("-") {
        true => audit::Log::to_stdout(),
        false => audit::Log::open_file(
            target,
            Rotation {
                bytes_max: (flags.audit_log_maxsize > 0)
                    .then(|| flags.audit_log_maxsize.saturating_mul(1 << 20)),
                age_max: u32::try_from(flags.audit_log_maxage)
                    .ok()
                    .filter(|days| *days > 0)
                    .map(|days| DAY * days),
                backups_max: Some(flags.audit_log_maxbackup).filter(|count| *count > 0),
            },
        )?,
    };
    Ok(Some(Auditor::new(policy, sink)))
}
