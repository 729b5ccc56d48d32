//! What clients are told about objects that initializers have yet to act on.

use api_object::{Cause, Details, ForeignStatus, GroupResource, Status, Tree};
use serde_json::Value;

use super::initializers::Initializers;
use crate::members::{object, objects, text};

/// An object that somebody waits for, in the last state that was seen.
#[derive(Debug, Clone, Copy)]
pub struct Awaited<'a> {
    /// What it is an object of.
    pub resource: &'a GroupResource,
    /// The object.
    pub tree: &'a Tree,
    /// Its resourceVersion.
    pub revision: u64,
}

/// Why a creator does not wait any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeoutCause {
    /// The entry at this place did not act in time and must not be skipped.
    Step(usize),
    /// The time of the request is over.
    Deadline,
    /// The object can not be watched any more.
    WatchLost,
}

/// The codes that HTTP has for failures.
const FAILURE_CODES: std::ops::RangeInclusive<u16> = 400..=599;

/// The answer to a creator whose object is not initialized in time (504). The object stays, and the
/// answer says where to watch on.
#[must_use]
pub fn initialization_timeout(awaited: &Awaited<'_>, cause: TimeoutCause) -> Status {
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
    if let Some(entry) = Initializers::of(awaited.tree).pending.get(idx) {
        let cause = Cause {
            reason: "InitializationTimeout".to_owned(),
            message: entry.name.clone(),
            field: format!("metadata.initializers.pending[{idx}]"),
        };
        details.causes.insert(0, cause);
    }
    Status { message, details: Some(Box::new(details)), ..Status::timeout() }
}

/// The answer to who reads an object that is not there yet, where such objects are not shown (202).
#[must_use]
pub fn accepted(awaited: &Awaited<'_>) -> Status {
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

/// The answer to a creator whose object is gone: how it failed, or that nobody knows.
#[must_use]
pub fn deleted(last: &Tree) -> Status {
    let gone = || Status::internal("object deleted while waiting for creation");
    failure(last).unwrap_or_else(gone)
}

/// How the initialization of an object failed, if it did: the Status that an initializer wrote. A code
/// that is no failure to HTTP is shown but not used.
#[must_use]
pub fn failure(tree: &Tree) -> Option<Status> {
    let result = Initializers::of(tree).result?;
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
        details: object(&result, "details").map(|own| Box::new(details(own))),
        continue_token: String::new(),
        foreign: (!is_own).then(|| Box::new(ForeignStatus { status, code: shown })),
    })
}

/// The answer to a client who may not say whom a new object waits for (403).
#[must_use]
pub fn create_denied(resource: &GroupResource, name: &str, reason: &str) -> Status {
    Status::forbidden(resource, name, &format!("create with initializers denied: {reason}"))
}

/// The answer to a client who may not change an object before it is initialized (403).
#[must_use]
pub fn update_denied(resource: &GroupResource, name: &str, reason: &str) -> Status {
    let why = format!("update to uninitialized resource denied: {reason}");
    Status::forbidden(resource, name, &why)
}

impl Awaited<'_> {
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

fn details(tree: &Tree) -> Details {
    let own = |tree: &Tree, member: &str| text(tree, member).unwrap_or_default().to_owned();
    let causes = objects(tree, "causes").into_iter().map(|cause| Cause {
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
