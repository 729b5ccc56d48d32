//! One version of a key in memory.

use bytes::Bytes;
use store::{Entry, Item, Key, Revision};

/// A version, shared by the tree of current versions and by the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) key: Key,
    pub(crate) value: Bytes,
    pub(crate) mod_rev: Revision,
    pub(crate) create_rev: Revision,
    /// Expiry time in milliseconds since 1970.
    pub(crate) expires_at_ms: Option<u64>,
}

impl Version {
    pub(crate) fn entry(&self) -> Entry {
        Entry { value: self.value.clone(), mod_rev: self.mod_rev, create_rev: self.create_rev }
    }

    pub(crate) fn to_item(&self) -> Item {
        Item { key: self.key.clone(), entry: self.entry() }
    }
}
