//! Puts and deletes of single keys, and their expectations.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::{Key, Revision};

/// The expected state of a key; the write happens only if it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedKeyState {
    /// The key does not exist.
    Absent,
    /// The key exists and this revision wrote its version.
    At(Revision),
}

/// How a write uses the revision key of a group of keys. The revision key is a key whose `mod_rev` is the
/// revision of the last write to any key of the group.
///
/// One read of it answers "has any key of the group changed since?", without a list. The protocol:
///
/// 1. Every write to a key of the group bumps the same shared revision.
/// 2. A reader reads the shared revision, then the keys of the group.
/// 3. It writes with the shared revision expected to be unchanged. The write succeeds only if no key of the
///    group was written since step 2.
///
/// A write and the bump are one [`Transaction`](crate::Transaction): both happen or neither does. A bump
/// writes an empty value to the revision key, which creates the key if needed and removes a time to live.
/// Watches deliver it as a write of that key. A key that expires bumps no revision key.
///
/// A write may name its own key as the revision key. Then the write itself is the bump, and nothing else is
/// written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyGroupRevisionAction {
    /// The write bumps the revision key.
    Bump {
        /// The key of the shared revision.
        key: Key,
        /// The expected state of the revision key; `None` accepts any state.
        expect: Option<ExpectedKeyState>,
    },
    /// The write requires that the revision key is unchanged.
    Unchanged {
        /// The key of the shared revision.
        key: Key,
        /// The expected state of the shared revision.
        expect: ExpectedKeyState,
    },
}

/// A write of a new version of one key.
#[derive(Clone, PartialEq, Eq)]
pub struct Put {
    /// The key that is written.
    pub key: Key,
    /// The new bytes of the key.
    pub value: Bytes,
    /// The expected state of the key.
    pub expected_state: ExpectedKeyState,
    /// Time to live. The store deletes the key after this time, unless it is written again before. The key
    /// may live somewhat longer, never shorter. Keys that expire together may be deleted in one revision. A
    /// version without a time to live stays until it is deleted, even if the previous version had one.
    pub ttl: Option<Duration>,
    /// A shared revision that the write bumps or requires unchanged.
    pub key_group_revision_action: Option<KeyGroupRevisionAction>,
}

/// The deletion of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    /// The key that is deleted.
    pub key: Key,
    /// The expected state of the key.
    pub expected_state: ExpectedKeyState,
    /// A shared revision that the write bumps or requires unchanged.
    pub key_group_revision_action: Option<KeyGroupRevisionAction>,
}

/// Prints the length of the value, not the value.
impl fmt::Debug for Put {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            value,
            expected_state: expect,
            ttl,
            key_group_revision_action: shared_revision,
        } = self;
        f.debug_struct("Put")
            .field("key", key)
            .field("value", &format_args!("{} bytes", value.len()))
            .field("expect", expect)
            .field("ttl", ttl)
            .field("shared_revision", shared_revision)
            .finish()
    }
}
