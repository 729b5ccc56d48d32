//! The verbs of the REST API: one function per verb over a read-only [`RequestContext`].

mod connect;
mod create;
mod create_preconditions;
mod delete;
mod delete_collection;
mod get;
mod list;
mod object_filter;
mod object_metadata;
mod patch;
mod persist;
mod query;
mod request_context;
mod request_report;
mod scale;
mod update;
mod watch;

pub(crate) use connect::answer_connect_request;
pub(crate) use create::{WriteResult, create};
pub(crate) use create_preconditions::CreatePreconditions;
pub(crate) use delete::{DeleteResult, delete, delete_admitted_object, deletion_success_status};
pub(crate) use delete_collection::delete_collection;
pub(crate) use get::{get, get_stored_entry, read_newest_entry_unless_known};
pub(crate) use list::{ListPage, list};
pub(crate) use object_filter::ObjectFilter;
pub(crate) use object_metadata::{normalize_metadata, requester_user_fields, validate_metadata};
pub(crate) use patch::PatchRequest;
pub(crate) use persist::{WriteFailure, await_write_visible, persist};
pub(crate) use query::{FieldValidation, Query, WatchOptions, WatchStart, WriteOptions};
pub(crate) use request_context::{
    RequestContext, VersionedObject, decode_stored_entry, written_kind,
};
pub(crate) use request_report::WarningsAndHookReports;
pub(crate) use scale::{SCALE, read_scale};
pub(crate) use update::{patch, update};
pub(crate) use watch::{WatchEvent, WatchEventObject, Watcher, watch};
