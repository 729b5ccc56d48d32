//! What writers ask for.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::{Key, Revision};

/// What a writer believes about a key; the write happens only if it is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The key does not exist.
    Absent,
    /// The key exists and this revision wrote its version.
    At(Revision),
}

/// A key that stands for many others, and what a write has to do with it.
///
/// It tells what a list would tell at far greater cost: whether any of many keys was written, and when
/// last. Everybody who writes one of them names the same mark; then the `mod_rev` of the mark is that of
/// the last such write. Who reads the mark, then the keys, and writes with the mark expected to be where
/// it was, has decided on what is still so. Who writes something else by what these keys say has the mark
/// kept: the write happens only if none of them was written since.
///
/// A write and the move of its mark are one [`Transaction`](crate::Transaction): both are there or
/// neither. Moving writes an empty value, which creates the mark if need be, and takes a time to live from
/// it if it had one. Watches tell it as the write of a key that it is. Keys that expire move no mark.
///
/// A write may name its own key. Then it is the write that moves the mark, and nothing else is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// It moves with the write.
    Move {
        /// Where it lies.
        key: Key,
        /// What must hold of it, besides what must hold of the written key; absent means nothing.
        expect: Option<Expect>,
    },
    /// It must not have moved, and stays where it is.
    Keep {
        /// Where it lies.
        key: Key,
        /// What must hold of it, besides what must hold of the written key.
        expect: Expect,
    },
}

/// A version to be written.
#[derive(Clone, PartialEq, Eq)]
pub struct Put {
    /// The key.
    pub key: Key,
    /// The new bytes.
    pub value: Bytes,
    /// What must hold.
    pub expect: Expect,
    /// When set, the key is deleted after this time by an ordinary delete, unless it is written again
    /// before. It may live somewhat longer, never shorter. Keys that expire together may be deleted in
    /// one revision. A version without it lives until somebody deletes it, even if the one before had
    /// it.
    pub ttl: Option<Duration>,
    /// What moves together with it, or must not have moved.
    pub mark: Option<Mark>,
}

/// A key to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    /// The key.
    pub key: Key,
    /// What must hold.
    pub expect: Expect,
    /// What moves together with it, or must not have moved.
    pub mark: Option<Mark>,
}

/// Tells the length of the value, not the value.
impl fmt::Debug for Put {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, expect, ttl, mark } = self;
        f.debug_struct("Put")
            .field("key", key)
            .field("value", &format_args!("{} bytes", value.len()))
            .field("expect", expect)
            .field("ttl", ttl)
            .field("mark", mark)
            .finish()
    }
}
