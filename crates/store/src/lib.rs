//! The contract of a store: versioned keys, one revision counter, transactions and watches.
//!
//! Each engine is a crate of its own that implements [`Store`] and runs the tests of `store-contract`, so
//! engines differ only in where they keep bytes. The model is that of etcd, because Kubernetes defines
//! `resourceVersion` by it: one counter for the whole store, one increment per successful write, and every
//! state since the compaction floor can be read again.
//!
//! Owns: revisions, keys, entries, events, the guarantees and errors of each operation, and the watch
//! notifier that both engines use.
//! Must not know: what a value means, which resources exist, HTTP, how an engine keeps its data.

mod entry;
mod error;
mod event;
mod key;
mod revision;
mod store;
mod store_status;
mod transaction;
mod wake_group;
mod watch_notifier;
mod write;

pub use entry::{At, Entry, GetResult, Item, ListPage, ListRequest, VALUE_BYTES_MAX};
pub use error::{ReadError, Unavailable, WatchError, WriteError};
pub use event::{Change, Event, WatchBatch};
pub use key::{KEY_BYTES_MAX, Key, KeyError, Prefix};
pub use revision::Revision;
pub use store::{PROGRESS_SECONDS_MAX, Store, StoreFuture, Watch};
pub use store_status::{Alarm, SpaceUsage, StoreStatus};
pub use transaction::{AdditionalWrite, KeyCondition, Transaction, WriteContent};
pub use watch_notifier::{RevisionSignal, WATCHES_MAX, WakeOrder, WatchNotifier, WatchSlot};
pub use write::{Delete, ExpectedKeyState, KeyGroupRevisionAction, Put};
