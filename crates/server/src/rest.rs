//! The verbs of the REST API: one function per verb over a read-only [`RequestContext`].

mod context;
mod create;
mod create_preconditions;
mod delete;
mod delete_collection;
mod filter;
mod get;
mod list;
mod object_metadata;
mod patch;
mod persist;
mod query;
mod report;
mod update;
mod watch;

pub(crate) use context::{RequestContext, VersionedObject, parse_stored};
pub(crate) use create::{WriteResult, create};
pub(crate) use create_preconditions::CreatePreconditions;
pub(crate) use delete::{DeleteResult, delete, deletion_status};
pub(crate) use delete_collection::delete_collection;
pub(crate) use filter::Filter;
pub(crate) use get::{get, get_entry};
pub(crate) use list::{ListPage, list};
pub(crate) use object_metadata::requester;
pub(crate) use patch::PatchRequest;
pub(crate) use persist::{WriteFailure, await_visible};
pub(crate) use query::{FieldValidation, Query, WatchOptions, WatchStart, WriteOptions};
pub(crate) use report::RequestReport;
pub(crate) use update::{patch, update};
pub(crate) use watch::{WatchEvent, WatchEventObject, Watcher, watch};
