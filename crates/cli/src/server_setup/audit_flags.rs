//! The flags of audit. Their names, defaults and meanings are those of kube-apiserver.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use audit::{BackendMode, BackendOptions, BatchThrottle, EVENT_BYTES_MAX};

use super::parse_flag_values::{parse_duration, parse_positive_duration, parse_positive_rate};

/// The flags of the audit policy and its backends.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Audit")]
pub(crate) struct AuditFlags {
    /// Audit policy file (audit.k8s.io/v1); without it the server writes no audit events
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_policy_file: Option<PathBuf>,

    /// File for audit events, one JSON object per line; `-` is standard output
    #[arg(long, value_name = "FILE", requires = "audit_policy_file")]
    pub(crate) audit_log_path: Option<PathBuf>,

    /// Size in MiB at which the audit log is rotated; 0 disables rotation
    #[arg(long, value_name = "MIB", default_value_t = 100)]
    pub(crate) audit_log_maxsize: u64,

    /// Days after which rotated audit logs are deleted; 0 keeps them
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    pub(crate) audit_log_maxage: u64,

    /// Number of rotated audit logs to keep; 0 keeps all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) audit_log_maxbackup: usize,

    /// Whether requests wait until the audit log has their events
    ///
    /// They wait at most 5 seconds, and not at all while the log accepts no events.
    #[arg(long, value_enum, default_value = "blocking")]
    pub(crate) audit_log_mode: AuditModeFlag,

    /// Maximum number of events that wait for the audit log, at most half of them for one user;
    /// further events are dropped and counted
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(crate) audit_log_batch_buffer_size: NonZeroUsize,

    /// Maximum number of events that are written together; only in batch mode
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) audit_log_batch_max_size: NonZeroUsize,

    /// Time after which an incomplete batch is written; only in batch mode
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pub(crate) audit_log_batch_max_wait: Duration,

    /// Limit the rate of batches; only in batch mode
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) audit_log_batch_throttle_enable: bool,

    /// Average number of batches per second, with --audit-log-batch-throttle-enable
    #[arg(long, value_name = "N", default_value = "10", value_parser = parse_positive_rate)]
    pub(crate) audit_log_batch_throttle_qps: f32,

    /// Number of batches that the server may send without a pause, with --audit-log-batch-throttle-enable
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) audit_log_batch_throttle_burst: u32,

    /// Limit the size of events; if an event is larger, the server removes its objects, and if it
    /// is still larger, drops and counts it
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) audit_log_truncate_enabled: bool,

    /// Maximum size of an event in bytes, with --audit-log-truncate-enabled
    #[arg(long, value_name = "BYTES", default_value = "102400")]
    pub(crate) audit_log_truncate_max_event_size: NonZeroUsize,

    /// Kubeconfig of a webhook that gets audit events as an EventList of audit.k8s.io/v1
    #[arg(long, value_name = "FILE", requires = "audit_policy_file")]
    pub(crate) audit_webhook_config_file: Option<PathBuf>,

    /// Whether requests wait until the audit webhook has their events
    ///
    /// They wait at most 5 seconds, and not at all while the webhook accepts no events.
    #[arg(long, value_enum, default_value = "batch")]
    pub(crate) audit_webhook_mode: AuditModeFlag,

    /// Maximum number of events that wait for the audit webhook or are sent to it, at most half of
    /// them for one user; further events are dropped and counted
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(crate) audit_webhook_batch_buffer_size: NonZeroUsize,

    /// Maximum number of events in one call of the audit webhook; only in batch mode
    #[arg(long, value_name = "N", default_value = "400")]
    pub(crate) audit_webhook_batch_max_size: NonZeroUsize,

    /// Time after which an incomplete batch is sent; only in batch mode
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub(crate) audit_webhook_batch_max_wait: Duration,

    /// Limit the rate of batches; only in batch mode
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) audit_webhook_batch_throttle_enable: bool,

    /// Average number of batches per second, with --audit-webhook-batch-throttle-enable
    #[arg(long, value_name = "N", default_value = "10", value_parser = parse_positive_rate)]
    pub(crate) audit_webhook_batch_throttle_qps: f32,

    /// Number of batches that the server may send without a pause, with
    /// --audit-webhook-batch-throttle-enable
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) audit_webhook_batch_throttle_burst: u32,

    /// Time before the first retry of a failed call of the audit webhook; each further retry waits
    /// 1.5 times as long. After 5 attempts the events are dropped and counted
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_positive_duration)]
    pub(crate) audit_webhook_initial_backoff: Duration,

    /// Limit the size of events and batches; if an event is larger, the server removes its objects,
    /// and if it is still larger, drops and counts it
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) audit_webhook_truncate_enabled: bool,

    /// Maximum size of an event in bytes, with --audit-webhook-truncate-enabled
    #[arg(long, value_name = "BYTES", default_value = "102400")]
    pub(crate) audit_webhook_truncate_max_event_size: NonZeroUsize,

    /// Maximum size of the events of one batch in bytes, with --audit-webhook-truncate-enabled; not
    /// less than that of an event
    #[arg(long, value_name = "BYTES", default_value = "10485760")]
    pub(crate) audit_webhook_truncate_max_batch_size: NonZeroUsize,
}

/// The mode of an audit backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AuditModeFlag {
    /// Requests do not wait
    Batch,
    /// Responses wait; if an event cannot be written, it is dropped and counted
    Blocking,
    /// Responses wait; if the first event of a request cannot be written, the request gets 500
    BlockingStrict,
}

impl From<AuditModeFlag> for BackendMode {
    fn from(flag: AuditModeFlag) -> Self {
        match flag {
            AuditModeFlag::Batch => Self::Batch,
            AuditModeFlag::Blocking => Self::Blocking,
            AuditModeFlag::BlockingStrict => Self::BlockingStrict,
        }
    }
}

impl AuditFlags {
    /// Converts the flags to the options of the log backend.
    pub(crate) fn audit_log_options(&self) -> BackendOptions {
        let default = BackendOptions::default();
        BackendOptions {
            backend_mode: self.audit_log_mode.into(),
            queued_events_max: self.audit_log_batch_buffer_size.get(),
            batch_events_max: self.audit_log_batch_max_size.get(),
            batch_wait_max: self.audit_log_batch_max_wait,
            batch_throttle: self.audit_log_batch_throttle_enable.then_some(BatchThrottle {
                qps: self.audit_log_batch_throttle_qps,
                burst: self.audit_log_batch_throttle_burst,
            }),
            event_bytes_max: audit_event_bytes_max(
                self.audit_log_truncate_enabled,
                self.audit_log_truncate_max_event_size,
            ),
            ..default
        }
    }

    /// Converts the flags to the options of the webhook backend.
    pub(crate) fn audit_webhook_options(&self) -> BackendOptions {
        let default = BackendOptions::default();
        let mode = self.audit_webhook_mode.into();
        BackendOptions {
            backend_mode: mode,
            queued_events_max: self.audit_webhook_batch_buffer_size.get(),
            batch_events_max: match mode {
                BackendMode::Batch => self.audit_webhook_batch_max_size.get(),
                BackendMode::Blocking | BackendMode::BlockingStrict => default.batch_events_max,
            },
            batch_wait_max: self.audit_webhook_batch_max_wait,
            batch_throttle: self.audit_webhook_batch_throttle_enable.then_some(BatchThrottle {
                qps: self.audit_webhook_batch_throttle_qps,
                burst: self.audit_webhook_batch_throttle_burst,
            }),
            event_bytes_max: audit_event_bytes_max(
                self.audit_webhook_truncate_enabled,
                self.audit_webhook_truncate_max_event_size,
            ),
            batch_bytes_max: match self.audit_webhook_truncate_enabled {
                true => self.audit_webhook_truncate_max_batch_size.get(),
                false => default.batch_bytes_max,
            },
            ..default
        }
    }

    /// Checks what kube-apiserver checks of several flags together.
    ///
    /// # Errors
    /// Flags contradict each other.
    pub(crate) fn check_flag_conflicts(&self) -> anyhow::Result<()> {
        let has_backend = self.audit_log_path.is_some() || self.audit_webhook_config_file.is_some();
        if self.audit_policy_file.is_some() && !has_backend {
            anyhow::bail!(
                "--audit-policy-file needs --audit-log-path (a file, or `-`) or \
                 --audit-webhook-config-file"
            );
        }
        let (event, batch) = (
            self.audit_webhook_truncate_max_event_size,
            self.audit_webhook_truncate_max_batch_size,
        );
        if self.audit_webhook_truncate_enabled && batch < event {
            anyhow::bail!(
                "invalid audit truncate webhook max batch size {batch}, must be greater than max \
                 event size ({event})"
            );
        }
        Ok(())
    }
}

/// Returns the size limit of an event in bytes. Without truncation it is the limit of the server, which no
/// flag raises.
fn audit_event_bytes_max(is_truncated: bool, bytes_max: NonZeroUsize) -> usize {
    match is_truncated {
        true => bytes_max.get().min(EVENT_BYTES_MAX),
        false => EVENT_BYTES_MAX,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        audit: AuditFlags,
    }

    fn options(flags: &[&str]) -> (BackendOptions, BackendOptions) {
        let args = ["serve"].iter().chain(flags);
        let Command { audit } = Command::try_parse_from(args).unwrap();
        (audit.audit_log_options(), audit.audit_webhook_options())
    }

    #[test]
    fn defaults_are_those_of_kubernetes() {
        let (log, webhook) = options(&[]);
        assert_eq!(
            (log.backend_mode, webhook.backend_mode),
            (BackendMode::Blocking, BackendMode::Batch)
        );
        assert_eq!((log.queued_events_max, webhook.queued_events_max), (10_000, 10_000));
        assert_eq!((log.batch_events_max, webhook.batch_events_max), (1, 400));
        assert_eq!(
            (log.batch_wait_max, webhook.batch_wait_max),
            (Duration::ZERO, Duration::from_secs(30))
        );
        assert_eq!(
            (log.batch_throttle, webhook.batch_throttle),
            (None, Some(BatchThrottle { qps: 10.0, burst: 15 }))
        );
    }

    #[test]
    fn each_flag_changes_something() {
        for flag in [
            "--audit-log-mode=batch",
            "--audit-log-mode=blocking-strict",
            "--audit-log-batch-buffer-size=3",
            "--audit-log-batch-max-size=3",
            "--audit-log-batch-max-wait=3s",
            "--audit-log-batch-throttle-enable",
            "--audit-log-truncate-enabled",
            "--audit-webhook-mode=blocking",
            "--audit-webhook-batch-buffer-size=3",
            "--audit-webhook-batch-max-size=3",
            "--audit-webhook-batch-max-wait=3s",
            "--audit-webhook-batch-throttle-enable=false",
            "--audit-webhook-batch-throttle-qps=0.5",
            "--audit-webhook-batch-throttle-burst=3",
            "--audit-webhook-truncate-enabled",
        ] {
            assert_ne!(options(&[flag]), options(&[]), "{flag}");
        }
        for (first, second) in [
            ("--audit-log-batch-throttle-enable", "--audit-log-batch-throttle-qps=0.5"),
            ("--audit-log-batch-throttle-enable", "--audit-log-batch-throttle-burst=3"),
            ("--audit-log-truncate-enabled", "--audit-log-truncate-max-event-size=3"),
            ("--audit-webhook-truncate-enabled", "--audit-webhook-truncate-max-event-size=3"),
            ("--audit-webhook-truncate-enabled", "--audit-webhook-truncate-max-batch-size=999999"),
        ] {
            assert_ne!(options(&[first, second]), options(&[first]), "{second}");
        }
    }

    #[test]
    fn values_without_meaning_are_refused() {
        for flag in [
            "--audit-log-mode=sometimes",
            "--audit-log-batch-buffer-size=0",
            "--audit-log-batch-max-size=0",
            "--audit-log-batch-throttle-qps=0",
            "--audit-webhook-batch-throttle-qps=NaN",
            "--audit-webhook-batch-throttle-qps=-1",
            "--audit-webhook-batch-throttle-burst=0",
            "--audit-webhook-initial-backoff=0s",
            "--audit-webhook-truncate-max-event-size=0",
            // A backend without a policy would get nothing.
            "--audit-webhook-config-file=x",
        ] {
            assert!(Command::try_parse_from(["serve", flag]).is_err(), "{flag}");
        }
    }
}
