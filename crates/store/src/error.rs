//! Errors of reads, writes and watches.

use std::sync::Arc;
use std::time::Duration;

use crate::{Entry, Key, Revision};

/// The store cannot serve requests. The cause is neither the client nor the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store is unavailable: {reason}")]
pub struct Unavailable {
    /// The cause, for the operator. It may name files and hosts, so clients never see it.
    pub reason: Arc<str>,
}

impl Unavailable {
    /// The error of every operation after [`Store::close`](crate::Store::close).
    #[must_use]
    pub fn store_closed() -> Self {
        Self { reason: "it is closed".into() }
    }
}

/// The reason why a read failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The state is older than the compaction floor.
    #[error("revision {requested} has been compacted, the oldest is {floor}")]
    Compacted {
        /// The revision of the request.
        requested: Revision,
        /// The oldest state that can be read.
        floor: Revision,
    },
    /// The state does not exist yet.
    #[error("revision {requested} is in the future, the newest is {current}")]
    Future {
        /// The revision of the request.
        requested: Revision,
        /// The newest revision of the store.
        current: Revision,
    },
    /// The store cannot serve the read.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The store did not answer in time.
    #[error("the store did not answer in time")]
    Timeout,
}

/// The reason why the store did not acknowledge a write.
///
/// After [`Self::Conflict`], [`Self::ConditionFailed`], [`Self::ValueTooLarge`], [`Self::NoSpace`] and
/// [`Self::Throttled`] nothing was written and no revision was used. After the others the outcome is
/// unknown: the write may have happened, and a caller that must know reads again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The key does not match the expectation of the write.
    #[error("the key has changed")]
    Conflict {
        /// The current version of the key, for the next attempt.
        current: Option<Entry>,
    },
    /// The key matches, but a condition on another key failed: a
    /// [`Condition`](crate::Condition) or a [`KeyGroupRevisionAction`](crate::KeyGroupRevisionAction).
    #[error("`{key}`, which the write depends on, has changed")]
    ConditionFailed {
        /// The key of the failed condition.
        key: Key,
        /// The current version of that key; `None` if the key does not exist.
        current: Option<Entry>,
    },
    /// The value is larger than [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX).
    #[error("the value has {bytes} bytes, at most {max} are allowed", max = crate::VALUE_BYTES_MAX)]
    ValueTooLarge {
        /// The length of the value in bytes.
        bytes: usize,
    },
    /// The store has no space for the write. It still accepts deletes.
    #[error("database space exceeded")]
    NoSpace {
        /// The tenant (a namespace, or a key prefix) that has used up its part; `None` if all tenants
        /// together have used up the space.
        tenant: Option<Arc<str>>,
    },
    /// One tenant has written more than its part of the history. The store still accepts writes of others.
    #[error("`{tenant}` has written more than its part of the history")]
    Throttled {
        /// The tenant: a namespace, or a key prefix.
        tenant: Arc<str>,
        /// Time after which the client may try again.
        retry_after: Duration,
    },
    /// The store is unavailable for writes.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The disk of the store is full, so it only reads until there is space again.
    #[error("the disk of the store is full: {reason}")]
    DiskFull {
        /// The cause, for the operator.
        reason: Arc<str>,
    },
    /// The store did not answer in time.
    #[error("the store did not answer in time")]
    Timeout,
}

/// The reason why a watch ended. A watch never delivers events after a gap.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The store no longer has the events after this revision.
    #[error("events after revision {after} have been compacted, the oldest state is {floor}")]
    Compacted {
        /// The last revision that the watch delivered.
        after: Revision,
        /// The oldest state that can be read.
        floor: Revision,
    },
    /// The store cannot deliver events any more, or was closed.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
