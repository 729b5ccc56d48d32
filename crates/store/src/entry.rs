//! Values, read requests and their results.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Bound;

use bytes::Bytes;

use crate::{Key, Revision};

/// Largest value in bytes, in every engine.
pub const VALUE_BYTES_MAX: usize = 1_572_864;

/// One version of a value.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The stored bytes. A clone shares them.
    pub value: Bytes,
    /// The revision that wrote this version.
    pub mod_rev: Revision,
    /// The revision that created the key. A key that is deleted and created again gets a new one.
    pub create_rev: Revision,
}

/// Prints the length of the value, not the value: errors carry entries, and errors end up in logs.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, mod_rev, create_rev } = self;
        f.debug_struct("Entry")
            .field("value", &format_args!("{} bytes", value.len()))
            .field("mod_rev", mod_rev)
            .field("create_rev", create_rev)
            .finish()
    }
}

/// A key with its current version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The key of the item.
    pub key: Key,
    /// The newest version of the key in the state that was read.
    pub entry: Entry,
}

/// The state that a read returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum At {
    /// The newest state. Linearizable: it contains every write that was acknowledged before the read began.
    #[default]
    Newest,
    /// Any state that is at least this new. An engine may answer from memory.
    NotOlderThan(Revision),
    /// The state of exactly this revision.
    Exactly(Revision),
}

/// The result of reading one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetResult {
    /// The version of the key; `None` if the key does not exist.
    pub entry: Option<Entry>,
    /// The revision of the state that was read.
    pub revision: Revision,
}

/// The range, limit and state of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRequest {
    /// The first key to return. A key before the prefix starts at the prefix; a key after it returns nothing.
    pub from: Bound<Key>,
    /// The maximum number of items; `None` returns all.
    pub items_max: Option<NonZeroUsize>,
    /// Size limit of the page in bytes: the page ends with the item whose value reaches it. `None` means no
    /// limit.
    pub page_bytes_max: Option<NonZeroUsize>,
    /// The state to read. All pages of one list read the revision of the first page.
    pub at: At,
}

impl Default for ListRequest {
    /// Lists all keys in the newest state.
    fn default() -> Self {
        Self { from: Bound::Unbounded, items_max: None, page_bytes_max: None, at: At::Newest }
    }
}

/// The result of listing the keys under a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// The items in the order of their keys.
    pub items: Vec<Item>,
    /// The number of items of the prefix after the last one of this page.
    pub n_remaining_items: u64,
    /// The revision of the state that was read. It may be newer than every item.
    pub revision: Revision,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_printed() {
        let value = Bytes::from_static(b"secret");
        let entry = Entry { value, mod_rev: Revision::new(7), create_rev: Revision::new(3) };
        let text = format!("{entry:?}");
        assert_eq!(text, "Entry { value: 6 bytes, mod_rev: Revision(7), create_rev: Revision(3) }");
    }
}
