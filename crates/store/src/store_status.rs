//! Usage, alarms and failed maintenance of a store.

use std::sync::Arc;

/// The reason why a store refuses creates and growing updates. An alarm clears by itself when there is space
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// The current versions of all keys exceed the quota.
    Quota,
    /// The disk has too little free space.
    Disk,
}

impl Alarm {
    /// All alarms, for metrics.
    pub const ALL: [Self; 2] = [Self::Quota, Self::Disk];

    /// The name of the alarm in metrics and log lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Disk => "disk",
        }
    }
}

/// The status of a store in addition to its health.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Active alarms; empty if the store accepts all writes.
    pub alarms: Vec<Alarm>,
    /// Whether the store refuses every write because its disk fails. It reads, and tries the disk again and
    /// again.
    pub is_read_only: bool,
    /// Failed maintenance that the store retries and that blocks no request, such as moving history to a
    /// file. For the operator: it may name files.
    pub maintenance_failure_text: Option<Arc<str>>,
    /// Space usage; `None` for an external store such as etcd.
    pub space_usage: Option<SpaceUsage>,
}

/// Space usage of a store in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpaceUsage {
    /// Size of the current versions of all keys.
    pub live_bytes: u64,
    /// The maximum of `live_bytes`.
    pub quota_bytes: u64,
    /// Size of the changes that watches can still read.
    pub history_bytes: u64,
    /// The maximum of `history_bytes`.
    pub history_bytes_max: u64,
    /// The part of `history_bytes` that is in memory and not in files.
    pub history_memory_bytes: u64,
    /// Size of all files of the store.
    pub disk_bytes: u64,
    /// Free space of the disk; `None` if the system does not report it.
    pub disk_free_bytes: Option<u64>,
    /// Number of writes refused for lack of space.
    pub n_refused_writes: u64,
    /// Number of writes throttled because one tenant had written too much.
    pub n_throttled_writes: u64,
}
