//! How full a store is, and which of its duties it can not do at present.

use std::sync::Arc;

/// Why a store refuses writes that add to it. It clears by itself when there is room again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// The current versions of all keys take up the quota.
    Quota,
    /// The disk has too little free space.
    Disk,
}

impl Alarm {
    /// Every alarm there is.
    pub const ALL: [Self; 2] = [Self::Quota, Self::Disk];

    /// Its name in metrics and log lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Disk => "disk",
        }
    }
}

/// The state of a store, beside whether it can be read and written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Why writes that add are refused; empty when they are not.
    pub alarms: Vec<Alarm>,
    /// A duty that the store tries again and that holds up no request, such as moving history to a
    /// file. For the operator: it may name files.
    pub degraded: Option<Arc<str>>,
    /// Its usage; absent for a store that another program looks after.
    pub usage: Option<Usage>,
}

/// The space that a store takes up, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The current versions of all keys.
    pub live_bytes: u64,
    /// The most that these may take up.
    pub quota_bytes: u64,
    /// The changes that can still be told to watches.
    pub history_bytes: u64,
    /// The most that these take up.
    pub history_bytes_max: u64,
    /// The part of them that is in memory and not in files.
    pub history_memory_bytes: u64,
    /// All files of the store.
    pub disk_bytes: u64,
    /// The free space of its disk; absent where nobody knows.
    pub disk_free_bytes: Option<u64>,
    /// How many writes were refused because there was no room for them.
    pub n_refused: u64,
    /// How many writes were put off because one share of the keys had written too much.
    pub n_throttled: u64,
}
