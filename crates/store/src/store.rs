//! The operations of a store and their guarantees.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::{
    At, Delete, GetResult, Key, ListPage, ListRequest, Prefix, Put, ReadError, Revision,
    StoreStatus, Transaction, Unavailable, WakeOrder, WatchBatch, WatchError, WriteError,
};

/// Maximum time in seconds until a watch without events reports progress. The API sends bookmarks once a
/// minute, so they carry a fresh revision.
pub const PROGRESS_SECONDS_MAX: u64 = 10;

/// The future of an operation. It is boxed, so that one compiled server works with every engine.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A store of versioned values.
///
/// Guarantees of every engine:
/// - There is one revision counter. An empty store is at [`Revision::FIRST`]; each successful write
///   adds one; no revision is used twice, not even after a crash. Reads and failed writes use none.
/// - A write is acknowledged only when it is durable, and no read or watch shows it earlier.
/// - An operation whose future is dropped has either not happened or happened whole.
///
/// A write changes one object. A [`Transaction`] adds conditions on other keys, and writes of keys that
/// hold no object, such as a [`KeyGroupRevisionAction`](crate::KeyGroupRevisionAction) or a reservation.
pub trait Store: Send + Sync + 'static {
    /// Reads one key in the given state.
    fn get<'a>(&'a self, key: &'a Key, at: At) -> StoreFuture<'a, Result<GetResult, ReadError>>;

    /// Reads the keys under a prefix.
    fn list<'a>(
        &'a self,
        prefix: &'a Prefix,
        request: ListRequest,
    ) -> StoreFuture<'a, Result<ListPage, ReadError>>;

    /// Applies the whole transaction in one revision and returns that revision, or applies nothing.
    ///
    /// A transaction that deletes its key with [`Expect::Absent`](crate::Expect::Absent) never succeeds.
    fn write(&self, transaction: Transaction) -> StoreFuture<'_, Result<Revision, WriteError>>;

    /// Writes a version and returns its revision.
    fn put(&self, put: Put) -> StoreFuture<'_, Result<Revision, WriteError>> {
        self.write(put.into())
    }

    /// Deletes a key and returns the revision of the deletion.
    fn delete(&self, delete: Delete) -> StoreFuture<'_, Result<Revision, WriteError>> {
        self.write(delete.into())
    }

    /// Starts a watch that delivers all events after a revision, and is woken with the write. It waits for a revision in
    /// the future.
    ///
    /// If the events are compacted, this call or the first call of [`Watch::next`] reports it. A watch
    /// from just below the floor may be refused or served; from further below it is refused.
    fn watch(
        &self,
        prefix: Prefix,
        after: Revision,
    ) -> StoreFuture<'_, Result<Box<dyn Watch>, WatchError>> {
        self.watch_with_wake_order(prefix, after, WakeOrder::AtOnce)
    }

    /// Like [`watch`](Self::watch), with a choice of when the watch is woken.
    fn watch_with_wake_order(
        &self,
        prefix: Prefix,
        after: Revision,
        order: WakeOrder,
    ) -> StoreFuture<'_, Result<Box<dyn Watch>, WatchError>>;

    /// The newest revision, linearizable like [`At::Newest`].
    fn current_rev(&self) -> StoreFuture<'_, Result<Revision, ReadError>>;

    /// Waits until the store has reached a revision and returns the newest one. The caller limits the wait
    /// by dropping the future.
    fn wait_for_revision(&self, revision: Revision)
    -> StoreFuture<'_, Result<Revision, ReadError>>;

    /// Drops the states before a revision and returns the compaction floor, which never decreases. The
    /// newest version of every key stays. A revision in the future is an error.
    ///
    /// An engine also compacts by itself. Watches that are further behind end with an error.
    fn compact(&self, revision: Revision) -> StoreFuture<'_, Result<Revision, ReadError>>;

    /// The oldest state that can be read.
    fn compaction_floor(&self) -> StoreFuture<'_, Result<Revision, ReadError>>;

    /// Checks that the store can read and write.
    fn check_health(&self) -> StoreFuture<'_, Result<(), Unavailable>>;

    /// Usage, alarms and failed maintenance. Does not block.
    fn status(&self) -> StoreStatus {
        StoreStatus::default()
    }

    /// Finishes running writes, makes them durable and releases files and connections. Later operations and
    /// running watches get [`Unavailable`]. Closing twice is harmless.
    fn close(&self) -> StoreFuture<'_, ()>;
}

/// A running watch. Dropping it ends it.
pub trait Watch: fmt::Debug + Send + 'static {
    /// Waits for the next events, or for progress within [`PROGRESS_SECONDS_MAX`] seconds.
    ///
    /// Events arrive in the order of their revisions, each exactly once. Events of one revision are in one
    /// batch, the main write before the additional writes. Dropping the future loses nothing: the next call
    /// returns the events. After an error every further call returns an error.
    fn next(&mut self) -> StoreFuture<'_, Result<WatchBatch, WatchError>>;
}
