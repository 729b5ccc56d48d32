//! What an operator or a test can choose.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::disk::Disk;
use crate::tenant::TenantOf;

/// After a run that acknowledged writes before they were durable, the counter skips this many
/// revisions, because a client may have seen revisions that the disk never did. Such a run syncs
/// before it is that far ahead.
pub const REVISION_GAP: u64 = 10_000;

/// How a store behaves.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// When writes are made durable.
    pub sync: SyncMode,
    /// What time it is.
    pub clock: Clock,
    /// How much is kept.
    pub limits: Limits,
    /// Which share of the store a key counts for.
    pub tenant_of: TenantOf,
    /// Where the free space of the disk is looked up.
    pub disk: Disk,
}

/// When writes are made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// Before they are acknowledged and before anybody sees them.
    #[default]
    Always,
    /// So often. A crash of the machine loses the last writes though they were acknowledged; a crash
    /// of the process alone does not.
    Interval(Duration),
}

/// Why a text is not a [`SyncMode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("want `always` or `interval:<milliseconds>` with 1 to {SYNC_INTERVAL_MS_MAX} milliseconds")]
pub struct SyncModeError;

/// Longest interval between syncs. More would be no promise at all.
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

/// Where the time comes from that keys expire by and history ages by.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The machine.
    #[default]
    System,
    /// A test: milliseconds since 1970.
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

/// How much is kept, in memory and on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// States younger than this can be read again.
    pub history_age: Duration,
    /// So many states can be read again even if they are older.
    pub history_revisions_min: u64,
    /// More states than this are not kept even if they are younger, so that a burst of writes does not
    /// fill memory and disk.
    pub history_revisions_max: u64,
    /// More bytes of changes than this are not kept even if they are younger. A change counts the
    /// version that it made and the version that it ended.
    pub history_bytes_max: u64,
    /// Old versions beyond this are moved from memory to files.
    pub history_memory_bytes_max: usize,
    /// A log file of this size is followed by a new one.
    pub log_file_bytes_max: u64,
    /// A snapshot is written when it frees at least so many bytes of log, and as many as it takes.
    pub checkpoint_bytes_min: u64,
    /// The current versions of all keys may take up so many bytes, in memory and in a snapshot.
    pub quota_bytes: u64,
    /// So much of the disk is left free, beside what a snapshot takes, so that deletes find room. With 0
    /// the disk is not looked at.
    pub disk_free_bytes_min: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            history_age: Duration::from_secs(5 * 60),
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
