//! What watches tell.

use crate::{Entry, Key, Revision};

/// One successful write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What was written.
    pub key: Key,
    /// The revision the write made. A new entry has it as its `mod_rev`.
    pub revision: Revision,
    /// What happened to the key.
    pub change: Change,
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The key did not exist before.
    Create(Entry),
    /// The key has a new version.
    Update {
        /// The new version.
        entry: Entry,
        /// The version before it.
        prev: Entry,
    },
    /// The key is gone, by request or because its time was over.
    Delete {
        /// The last version.
        prev: Entry,
    },
}

impl Change {
    /// The version there is afterwards.
    #[must_use]
    pub fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Create(entry) | Self::Update { entry, .. } => Some(entry),
            Self::Delete { .. } => None,
        }
    }

    /// The version there was before.
    #[must_use]
    pub fn prev(&self) -> Option<&Entry> {
        match self {
            Self::Create(_) => None,
            Self::Update { prev, .. } | Self::Delete { prev } => Some(prev),
        }
    }
}

/// The next events of a watch, and how far it has come with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Events in the order of their revisions. Empty when there is only progress to tell.
    pub events: Vec<Event>,
    /// With these events, everything up to this revision has been told. Never less than before, never
    /// less than the last event.
    pub through: Revision,
}
