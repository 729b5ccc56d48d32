//! Values, and how they are asked for and answered.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Bound;

use bytes::Bytes;

use crate::{Key, Revision};

/// Largest value, in bytes. It is what a stored object may have, whatever the engine.
pub const VALUE_BYTES_MAX: usize = 1_572_864;

/// One version of a value.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The stored bytes. A clone shares them.
    pub value: Bytes,
    /// The revision that wrote this version.
    pub mod_rev: Revision,
    /// The revision that created the key, in this life of it: a key that is deleted and created again
    /// starts anew.
    pub create_rev: Revision,
}

/// Tells the length of the value, not the value: errors carry entries, and errors end up in logs.
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

/// A key and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The key.
    pub key: Key,
    /// What it holds.
    pub entry: Entry,
}

/// Which state a read wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum At {
    /// The newest. Linearizable: it shows every write that was acknowledged before the read began.
    #[default]
    Newest,
    /// Any state that is at least this new, which an engine may answer from what it has at hand.
    NotOlderThan(Revision),
    /// This very state.
    Exactly(Revision),
}

/// The answer to a get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Got {
    /// What the key holds; absent when it does not exist.
    pub entry: Option<Entry>,
    /// The state that was read.
    pub revision: Revision,
}

/// Which part of a list is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRequest {
    /// Where to begin. A key before the prefix begins with the first, one past it gives nothing.
    pub from: Bound<Key>,
    /// At most so many items; absent means all.
    pub limit: Option<NonZeroUsize>,
    /// The state to read. All pages of one list name the revision of the first.
    pub at: At,
}

impl Default for ListRequest {
    /// Everything, as it is now.
    fn default() -> Self {
        Self { from: Bound::Unbounded, limit: None, at: At::Newest }
    }
}

/// The answer to a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The items in the order of their keys.
    pub items: Vec<Item>,
    /// How many more items of the prefix come after the last of these.
    pub remaining: u64,
    /// The state that was read, which may be newer than every item.
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
