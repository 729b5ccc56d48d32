//! What is done to objects: one file per verb, all over a [`Call`].

mod call;
mod create;
mod create_preconditions;
mod delete;
mod filter;
mod list;
mod persist;
mod query;
mod read;
mod update;
mod watch;

pub(crate) use call::{Call, Shown};
pub(crate) use create::requester;
pub(crate) use delete::Deleted;
pub(crate) use filter::Filter;
pub(crate) use list::Listed;
pub(crate) use persist::NotWritten;
pub(crate) use query::{FieldValidation, Query, WatchOptions, WatchStart, WriteOptions};
pub(crate) use update::Change;
pub(crate) use watch::{Seen, WatchEvent, Watcher};
