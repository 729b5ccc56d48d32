//! The Status responses about objects with pending initializers.

use api_object::{Cause, Details, ForeignStatus, GroupResource, Status, Tree};
use serde_json::Value;

use super::initializers_field::Initializers;
use crate::json_members::{read_object, read_objects, read_string};

/// An object with pending initializers, in the last state that the server saw.
#[derive(Debug, Clone, Copy)]
pub struct UninitializedObject<'a> {
    /// The resource of the object.
    pub resource: &'a GroupResource,
    /// The object as JSON.
    pub tree: &'a Tree,
    /// The resourceVersion of the object.
    pub revision: u64,
}

/// Why a create request stops waiting for initializers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeoutCause {
    /// The initializer at this position of the pending list did not act in time, and its failure policy is `Fail`.
    Step(usize),
    /// The deadline of the request has passed.
    Deadline,
    /// The server lost the watch on the object.
    WatchLost,
}

/// The HTTP status codes of failures.
const FAILURE_CODES: std::ops::RangeInclusive<u16> = 400..=599;

/// The response to a create request whose object is not initialized in time. The object stays; the response has the
/// resourceVersion from which a client can watch it.
#[must_use]
pub fn initialization_timeout_status(
    awaited: &UninitializedObject<'_>,
    cause: TimeoutCause,
) -> Status {
    let idx = match cause {
        TimeoutCause::Step(idx) => idx,
        TimeoutCause::Deadline | TimeoutCause::WatchLost => 0,
    };
    let message = match cause {
        TimeoutCause::Step(_) | TimeoutCause::WatchLost => format!(
            "Timeout: server has timed out waiting for the initialization of {} {}",
            awaited.resource,
            api_object::name(awaited.tree)
        ),
        TimeoutCause::Deadline => {
            "Timeout: request did not complete within requested timeout".to_owned()
        }
    };
    let mut details = awaited.details();
    if let Some(entry) = Initializers::from_object(awaited.tree).pending.get(idx) {
        let cause = Cause {
            reason: "InitializationTimeout".to_owned(),
            message: entry.name.clone(),
            field: format!("metadata.initializers.pending[{idx}]"),
        };
        details.causes.insert(0, cause);
    }
    Status { message, details: Some(Box::new(details)), ..Status::timeout() }
}

/// The response to a read of an object with pending initializers, if the server hides such objects.
#[must_use]
pub fn being_initialized_status(awaited: &UninitializedObject<'_>) -> Status {
    let name = go_compat::quote(api_object::name(awaited.tree));
    Status {
        code: 202,
        reason: "".into(),
        message: format!("{} {name} is being initialized", awaited.resource),
        details: Some(Box::new(awaited.details())),
        continue_token: String::new(),
        foreign: Some(Box::new(ForeignStatus { status: "Success".to_owned(), code: 202 })),
    }
}

/// The response to a create request whose object was deleted: the failure that an initializer wrote, or an internal error.
#[must_use]
pub fn deleted_while_waiting_status(last: &Tree) -> Status {
    let gone = || Status::internal("object deleted while waiting for creation");
    initialization_failure_status(last).unwrap_or_else(gone)
}

/// The Status that an initializer wrote into `metadata.initializers.result`, if any. A code that is not an HTTP failure is
/// shown in the body but not used as the status code.
#[must_use]
pub fn initialization_failure_status(tree: &Tree) -> Option<Status> {
    let result = Initializers::from_object(tree).result?;
    let shown =
        result.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let shown = shown.filter(|code| *code != 0).unwrap_or(500);
    let code = u16::try_from(shown).ok().filter(|code| FAILURE_CODES.contains(code));
    let code = code.unwrap_or(500);
    let status = api_object::string_member(&result, "status").to_owned();
    let is_own = i32::from(code) == shown && status == "Failure";
    Some(Status {
        code,
        reason: api_object::string_member(&result, "reason").to_owned().into(),
        message: api_object::string_member(&result, "message").to_owned(),
        details: read_object(&result, "details").map(|own| Box::new(read_details(own))),
        continue_token: String::new(),
        foreign: (!is_own).then(|| Box::new(ForeignStatus { status, code: shown })),
    })
}

/// The response to a client without the permission to set initializers on create.
#[must_use]
pub fn create_denied_status(resource: &GroupResource, name: &str, reason: &str) -> Status {
    Status::forbidden(resource, name, &format!("create with initializers denied: {reason}"))
}

/// The response to a client without the permission to change an object with pending initializers.
#[must_use]
pub fn denied_update_status(resource: &GroupResource, name: &str, reason: &str) -> Status {
    let why = format!("update to uninitialized resource denied: {reason}");
    Status::forbidden(resource, name, &why)
}

impl UninitializedObject<'_> {
    fn details(&self) -> Details {
        Details {
            name: api_object::name(self.tree).to_owned(),
            group: self.resource.group.clone(),
            kind: self.resource.resource.clone(),
            uid: api_object::uid(self.tree).to_owned(),
            causes: vec![Cause {
                reason: "ResourceVersion".to_owned(),
                message: self.revision.to_string(),
                field: String::new(),
            }],
            retry_after_seconds: 0,
        }
    }
}

fn read_details(tree: &Tree) -> Details {
    let own = |tree: &Tree, member: &str| read_string(tree, member).unwrap_or_default().to_owned();
    let causes = read_objects(tree, "causes").into_iter().map(|cause| Cause {
        reason: own(cause, "reason"),
        message: own(cause, "message"),
        field: own(cause, "field"),
    });
    Details {
        name: own(tree, "name"),
        group: own(tree, "group"),
        kind: own(tree, "kind"),
        uid: own(tree, "uid"),
        causes: causes.collect(),
        retry_after_seconds: u32::try_from(api_object::integer_member(tree, "retryAfterSeconds"))
            .unwrap_or_default(),
    }
}
