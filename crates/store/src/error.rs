//! What can go wrong, and whose fault it is.

use std::sync::Arc;
use std::time::Duration;

use crate::{Entry, Key, Revision};

/// The store can not do its work. It is neither the client's fault nor a matter of the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store is unavailable: {reason}")]
pub struct Unavailable {
    /// Why, for the operator. It may name files and hosts, so clients do not get to see it.
    pub reason: Arc<str>,
}

/// Why there is no answer to a question about a revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The state is older than the compaction floor.
    #[error("revision {requested} has been compacted, the oldest is {floor}")]
    Compacted {
        /// What was asked for.
        requested: Revision,
        /// The oldest state there is.
        floor: Revision,
    },
    /// The state does not exist yet.
    #[error("revision {requested} is in the future, the newest is {current}")]
    Future {
        /// What was asked for.
        requested: Revision,
        /// The newest state there is.
        current: Revision,
    },
    /// The store can not answer.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The store did not answer in time.
    #[error("the store did not answer in time")]
    Timeout,
}

/// Why a write is not acknowledged.
///
/// After [`Self::Conflict`], [`Self::ConditionFailed`], [`Self::ValueTooLarge`], [`Self::NoSpace`] and
/// [`Self::Throttled`] nothing was written and no revision was used. After the others the outcome is
/// unknown: the write may turn out to be there, and a caller who must know reads again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The key is not what the writer expected.
    #[error("the key has changed")]
    Conflict {
        /// What it is instead, which feeds the next attempt.
        current: Option<Entry>,
    },
    /// The key is what the writer expected, but another key is not that the write depends on: a
    /// [`Condition`](crate::Condition) or a [`Mark`](crate::Mark).
    #[error("`{key}`, which the write depends on, has changed")]
    ConditionFailed {
        /// The other key.
        key: Key,
        /// What it is instead; absent when it does not exist.
        current: Option<Entry>,
    },
    /// The value is larger than [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX).
    #[error("the value has {bytes} bytes, at most {max} are allowed", max = crate::VALUE_BYTES_MAX)]
    ValueTooLarge {
        /// Its length.
        bytes: usize,
    },
    /// There is no room for what the write would add. Removals are accepted.
    #[error("database space exceeded")]
    NoSpace {
        /// The namespace, or the prefix of other keys, that has used up its share; absent when
        /// everybody together has used up all.
        share: Option<Arc<str>>,
    },
    /// One namespace has written more than its share of the history. Writes of others are accepted.
    #[error("`{share}` has written more than its share of the history")]
    Throttled {
        /// The namespace, or the prefix of other keys.
        share: Arc<str>,
        /// When to try again.
        retry_after: Duration,
    },
    /// The store can not write.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The store did not answer in time.
    #[error("the store did not answer in time")]
    Timeout,
}

/// Why a watch ends. It tells no event after the first that it can not tell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The events after this revision are gone.
    #[error("events after revision {after} have been compacted, the oldest state is {floor}")]
    Compacted {
        /// How far the watch had come.
        after: Revision,
        /// The oldest state there is.
        floor: Revision,
    },
    /// The store can not tell events any more, or was closed.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
