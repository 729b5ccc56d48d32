//! The operations, and what each of them promises.

use std::future::Future;

use crate::{
    At, Batch, Delete, Got, Key, ListRequest, Page, Prefix, Put, ReadError, Revision, StoreStatus,
    Transaction, Unavailable, WatchError, WriteError,
};

/// After so many seconds at most, a watch without events tells that the store has advanced. Bookmarks
/// of the API are due once a minute, so they find a fresh revision.
pub const PROGRESS_SECONDS_MAX: u64 = 10;

/// A store of versioned values.
///
/// What holds for every engine:
/// - There is one revision counter. An empty store is at [`Revision::FIRST`]; each successful write
///   adds one; no revision is used twice, not even after a crash. Reads and failed writes use none.
/// - A write is acknowledged only when it is durable, and no read or watch shows it earlier.
/// - An operation whose future is dropped has either not happened or happened whole.
///
/// A write changes one object. What goes with it are conditions on other keys and writes of keys that
/// hold no object, such as a [`Mark`](crate::Mark) or a reservation; see [`Transaction`].
pub trait Store: Send + Sync + 'static {
    /// A running watch of this engine.
    type Watch: Watch;

    /// Reads one key.
    fn get(&self, key: &Key, at: At) -> impl Future<Output = Result<Got, ReadError>> + Send;

    /// Reads the keys under a prefix.
    fn list(
        &self,
        prefix: &Prefix,
        request: ListRequest,
    ) -> impl Future<Output = Result<Page, ReadError>> + Send;

    /// Does all that a transaction says, in one revision, and returns that; or nothing of it.
    ///
    /// A transaction that deletes its key with [`Expect::Absent`](crate::Expect::Absent) never succeeds.
    fn write(
        &self,
        transaction: Transaction,
    ) -> impl Future<Output = Result<Revision, WriteError>> + Send;

    /// Writes a version and returns its revision.
    fn put(&self, put: Put) -> impl Future<Output = Result<Revision, WriteError>> + Send {
        self.write(put.into())
    }

    /// Deletes a key and returns the revision of the deletion.
    fn delete(&self, delete: Delete) -> impl Future<Output = Result<Revision, WriteError>> + Send {
        self.write(delete.into())
    }

    /// Starts to tell all events after a revision. A revision in the future is waited for.
    ///
    /// That the events are compacted is said here or by the first call of [`Watch::next`]. A watch
    /// from just below the floor may be refused or served; from further below it is refused.
    fn watch(
        &self,
        prefix: Prefix,
        after: Revision,
    ) -> impl Future<Output = Result<Self::Watch, WatchError>> + Send;

    /// The newest revision, linearizable like [`At::Newest`].
    fn current_rev(&self) -> impl Future<Output = Result<Revision, ReadError>> + Send;

    /// Waits until the store has reached a revision and returns the newest. The caller sets the limit
    /// of time by dropping the future.
    fn wait_for(
        &self,
        revision: Revision,
    ) -> impl Future<Output = Result<Revision, ReadError>> + Send;

    /// Forgets the states before a revision and returns the floor, which is never lower than before.
    /// The newest version of every key stays, of course. A revision in the future is refused.
    ///
    /// An engine also compacts by itself. Watches that are further behind end with an error.
    fn compact(
        &self,
        revision: Revision,
    ) -> impl Future<Output = Result<Revision, ReadError>> + Send;

    /// The oldest state that can be read.
    fn compact_floor(&self) -> impl Future<Output = Result<Revision, ReadError>> + Send;

    /// Whether the store can read and write, and why not.
    fn health(&self) -> impl Future<Output = Result<(), Unavailable>> + Send;

    /// How full it is, and which of its duties it can not do at present. It does not wait.
    fn status(&self) -> StoreStatus {
        StoreStatus::default()
    }

    /// Finishes the writes that have begun, makes them durable and lets go of files and connections.
    /// Later operations and running watches get [`Unavailable`]. Closing twice is closing once.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// A running watch. Dropping it ends it.
pub trait Watch: Send + 'static {
    /// Waits for more to tell: events, or progress within [`PROGRESS_SECONDS_MAX`] of it.
    ///
    /// Events come in the order of their revisions, each once, none left out; those of one revision are
    /// in one batch, a write before what is written beside it. Dropping the future loses nothing: the next
    /// call tells it. After an error every further call gives an error.
    fn next(&mut self) -> impl Future<Output = Result<Batch, WatchError>> + Send;
}
