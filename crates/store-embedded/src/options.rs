//! Options of the embedded store.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::free_space::FreeSpaceSource;
use crate::tenant::TenantResolver;

/// Number of revisions that a restart skips after a run with sync mode `interval`, because a client may have
/// seen revisions that never reached the disk. Such a run syncs before it is that far ahead.
pub const REVISION_GAP: u64 = 10_000;

/// Options for opening an embedded store.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The time at which writes become durable.
    pub sync_mode: SyncMode,
    /// The source of the time.
    pub clock: Clock,
    /// Limits of history and space.
    pub limits: Limits,
    /// Assigns keys to tenants for fair limits.
    pub tenant_resolver: TenantResolver,
    /// The source of the free disk space.
    pub free_space_source: FreeSpaceSource,
}

/// The time at which writes become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// Before the store acknowledges or shows them.
    #[default]
    Always,
    /// At this interval. A crash of the machine loses the last acknowledged writes; a crash of the process
    /// alone does not.
    Interval(Duration),
}

/// The error of a text that is not a [`SyncMode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("want `always` or `interval:<milliseconds>` with 1 to {SYNC_INTERVAL_MS_MAX} milliseconds")]
pub struct SyncModeError;

/// Longest interval between syncs, in milliseconds.
const SYNC_INTERVAL_MS_MAX: u64 = 60_000;

impl FromStr for SyncMode {
    type Err = SyncModeError;

    fn from_str(text: &str) -> Result<Self, SyncModeError> {
        if text == "always" {
            return Ok(Self::Always);
        }
        let ms = text.strip_prefix("interval:").ok_or(SyncModeError)?;
        match ms.parse() {
            Ok(ms @ 1..=SYNC_INTERVAL_MS_MAX) => Ok(Self::Interval(Duration::from_millis(ms))),
            Ok(_) | Err(_) => Err(SyncModeError),
        }
    }
}

impl fmt::Display for SyncMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::Interval(interval) => write!(f, "interval:{}", interval.as_millis()),
        }
    }
}

/// The clock for expiry of keys and age of history.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The clock of the operating system.
    #[default]
    System,
    /// Milliseconds since 1970, set by tests.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    pub(crate) fn now_ms(&self) -> u64 {
        match self {
            Self::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            Self::Manual(ms) => ms.load(Ordering::SeqCst),
        }
    }
}

/// Limits of history, memory and disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// States younger than this stay readable.
    pub history_age_min: Duration,
    /// This many states stay readable even if they are older.
    pub history_revisions_min: u64,
    /// Maximum number of readable states, so that a burst of writes does not fill memory and disk.
    pub history_revisions_max: u64,
    /// Maximum bytes of history. A change counts its new and its old version.
    pub history_bytes_max: u64,
    /// History beyond this many bytes moves from memory to files.
    pub history_memory_bytes_max: usize,
    /// Size at which the writer starts a new log file.
    pub log_file_bytes_max: u64,
    /// Minimum bytes of log that a snapshot must free; it must also free at least its own size.
    pub checkpoint_bytes_min: u64,
    /// Maximum bytes of the current versions of all keys.
    pub quota_bytes: u64,
    /// Free disk space to keep, in addition to the size of a snapshot, so that deletes find space. 0 disables the
    /// check.
    pub disk_free_bytes_min: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            history_age_min: Duration::from_secs(5 * 60),
            history_revisions_min: 1000,
            history_revisions_max: 1_000_000,
            history_bytes_max: 1024 * 1024 * 1024,
            history_memory_bytes_max: 64 * 1024 * 1024,
            log_file_bytes_max: 16 * 1024 * 1024,
            checkpoint_bytes_min: 64 * 1024 * 1024,
            quota_bytes: 2 * 1024 * 1024 * 1024,
            disk_free_bytes_min: 256 * 1024 * 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_modes_are_read_and_printed() {
        for text in ["always", "interval:1", "interval:60000"] {
            assert_eq!(text.parse::<SyncMode>().map(|mode| mode.to_string()).as_deref(), Ok(text));
        }
        for text in
            ["", "never", "interval", "interval:", "interval:0", "interval:60001", "interval:-1"]
        {
            assert_eq!(text.parse::<SyncMode>(), Err(SyncModeError), "{text}");
        }
    }
}
