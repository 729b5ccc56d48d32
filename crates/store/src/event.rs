//! Events that watches deliver.

use crate::{Entry, Key, Revision};

/// One successful write of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The key that was written.
    pub key: Key,
    /// The revision of the write. A new entry has it as its `mod_rev`.
    pub revision: Revision,
    /// Whether the key was created, updated or deleted.
    pub change: Change,
}

/// The effect of a write on its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The key did not exist before.
    Create(Entry),
    /// The key has a new version.
    Update {
        /// The version after the write.
        entry: Entry,
        /// The version before the write.
        prev: Entry,
    },
    /// The key was deleted, by request or by its time to live.
    Delete {
        /// The last version before the delete.
        prev: Entry,
    },
}

impl Change {
    /// The version after the write; `None` for a delete.
    #[must_use]
    pub fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Create(entry) | Self::Update { entry, .. } => Some(entry),
            Self::Delete { .. } => None,
        }
    }

    /// The version before the write; `None` for a create.
    #[must_use]
    pub fn previous_entry(&self) -> Option<&Entry> {
        match self {
            Self::Create(_) => None,
            Self::Update { prev, .. } | Self::Delete { prev } => Some(prev),
        }
    }
}

/// The next events of a watch and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchBatch {
    /// Events in the order of their revisions. Empty for a pure progress notification.
    pub events: Vec<Event>,
    /// After these events the watch has delivered everything up to this revision. It never decreases and
    /// is never less than the last event.
    pub complete_through_revision: Revision,
}
