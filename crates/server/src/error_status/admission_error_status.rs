//! The `Status` of requests that fail because of hook selection or initializers.

use admission::{HookSelectionError, InitializeDenied, Initializers};
use api_object::{Details, GroupResource, Status, StatusCause, Tree, WebhookStatus};
use serde_json::Value;

use super::IntoStatus;

impl IntoStatus for HookSelectionError {
    fn into_status(self) -> Status {
        match self {
            Self::UnknownKind { .. } | Self::InvalidSelector(_) => {
                Status::internal_error(&self.to_string())
            }
            Self::NamespaceNotFound(name) => {
                Status::not_found(&GroupResource::new("", "namespaces"), &name)
            }
            Self::ConditionsFailed { resource, name, cause } => {
                Status::forbidden(&resource, &name, &cause)
            }
        }
    }
}

impl IntoStatus for InitializeDenied {
    fn into_status(self) -> Status {
        Status::forbidden(&self.resource, &self.name, &self.to_string())
    }
}

/// An object with pending initializers, in the last state that the server saw.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UninitializedObject<'a> {
    /// The resource of the object.
    pub(crate) resource: &'a GroupResource,
    /// The object as JSON.
    pub(crate) object_tree: &'a Tree,
    /// The resourceVersion of the object.
    pub(crate) revision: u64,
}

/// Why a create request stops waiting for initializers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ObjectInitializationTimeoutCause {
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
pub(crate) fn object_initialization_timeout_status(
    awaited: &UninitializedObject<'_>,
    cause: ObjectInitializationTimeoutCause,
) -> Status {
    let idx = match cause {
        ObjectInitializationTimeoutCause::Step(idx) => idx,
        ObjectInitializationTimeoutCause::Deadline
        | ObjectInitializationTimeoutCause::WatchLost => 0,
    };
    let message = match cause {
        ObjectInitializationTimeoutCause::Step(_) | ObjectInitializationTimeoutCause::WatchLost => {
            format!(
                "Timeout: server has timed out waiting for the initialization of {} {}",
                awaited.resource,
                api_object::name(awaited.object_tree)
            )
        }
        ObjectInitializationTimeoutCause::Deadline => {
            "Timeout: request did not complete within requested timeout".to_owned()
        }
    };
    let mut details = awaited.details();
    if let Some(entry) =
        Initializers::from_object(awaited.object_tree).pending_initializers.get(idx)
    {
        let cause = StatusCause {
            reason: "InitializationTimeout".to_owned(),
            message: entry.name.clone(),
            field: format!("metadata.initializers.pending[{idx}]"),
        };
        details.causes.insert(0, cause);
    }
    Status { message, details: Some(Box::new(details)), ..Status::timeout() }
}

/// The response to a read of an object with pending initializers, if the server hides such objects.
pub(crate) fn object_being_initialized_status(awaited: &UninitializedObject<'_>) -> Status {
    let name = go_compat::quote(api_object::name(awaited.object_tree));
    Status {
        code: 202,
        reason: "".into(),
        message: format!("{} {name} is being initialized", awaited.resource),
        details: Some(Box::new(awaited.details())),
        continue_token: String::new(),
        webhook_status: Some(Box::new(WebhookStatus { status: "Success".to_owned(), code: 202 })),
    }
}

/// The response to a create request whose object was deleted: the failure that an initializer wrote, or an internal error.
pub(crate) fn deleted_during_initialization_status(last: &Tree) -> Status {
    let gone = || Status::internal_error("object deleted while waiting for creation");
    object_initialization_failure_status(last).unwrap_or_else(gone)
}

/// The Status that an initializer wrote into `metadata.initializers.result`, if any. A code that is not an HTTP failure is
/// shown in the body but not used as the status code.
pub(crate) fn object_initialization_failure_status(tree: &Tree) -> Option<Status> {
    let result = Initializers::from_object(tree).failure_written_by_initializer?;
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
        details: result
            .get("details")
            .and_then(Value::as_object)
            .map(|own| Box::new(read_status_details(own))),
        continue_token: String::new(),
        webhook_status: (!is_own).then(|| Box::new(WebhookStatus { status, code: shown })),
    })
}

impl UninitializedObject<'_> {
    fn details(&self) -> Details {
        Details {
            name: api_object::name(self.object_tree).to_owned(),
            group: self.resource.group.clone(),
            kind: self.resource.resource.clone(),
            uid: api_object::uid(self.object_tree).to_owned(),
            causes: vec![StatusCause {
                reason: "ResourceVersion".to_owned(),
                message: self.revision.to_string(),
                field: String::new(),
            }],
            retry_after_seconds: 0,
        }
    }
}

fn read_status_details(tree: &Tree) -> Details {
    let own = |tree: &Tree, member: &str| api_object::string_member(tree, member).to_owned();
    let empty = Tree::new();
    let causes = tree.get("causes").and_then(Value::as_array).into_iter().flatten();
    let causes = causes.map(|cause| {
        let cause = cause.as_object().unwrap_or(&empty);
        StatusCause {
            reason: own(cause, "reason"),
            message: own(cause, "message"),
            field: own(cause, "field"),
        }
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

#[cfg(test)]
mod tests {
    use admission::Operation;
    use serde_json::json;

    use super::*;

    fn pod(initializers: Value) -> Tree {
        let metadata = json!({"name": "x", "uid": "u", "initializers": initializers});
        json!({ "metadata": metadata }).as_object().cloned().unwrap()
    }

    fn pod_pending(names: &[&str]) -> Tree {
        let pending: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        pod(json!({ "pending": pending }))
    }

    #[test]
    fn each_error_of_a_hook_selection_has_its_status() {
        let pods = GroupResource::new("", "pods");
        let name = "x".to_owned();
        for (error, code, message) in [
            (
                HookSelectionError::UnknownKind { resource: "g/v, Resource=r".to_owned() },
                500,
                "Internal error occurred: unable to convert to g/v, Resource=r: unknown kind",
            ),
            (
                HookSelectionError::NamespaceNotFound("team-a".to_owned()),
                404,
                "namespaces \"team-a\" not found",
            ),
            (
                HookSelectionError::ConditionsFailed {
                    resource: pods.clone(),
                    name,
                    cause: "c".to_owned(),
                },
                403,
                "pods \"x\" is forbidden: c",
            ),
        ] {
            let status = error.into_status();
            assert_eq!((status.code, status.message.as_str()), (code, message));
        }
    }

    #[test]
    fn initializers_without_permission_are_forbidden() {
        for (operation, want) in [
            (Operation::Create, "create with initializers denied"),
            (Operation::Update, "update to uninitialized resource denied"),
        ] {
            let denied = InitializeDenied {
                operation,
                resource: GroupResource::new("", "pods"),
                name: "x".to_owned(),
                reason: "no rule".to_owned(),
            };
            let status = denied.into_status();
            let want = format!("pods \"x\" is forbidden: {want}: no rule");
            assert_eq!((status.code, status.message), (403, want));
        }
    }

    #[test]
    fn clients_learn_that_an_object_waits_for_initializers() {
        let deployments = GroupResource::new("apps", "deployments");
        let own = pod_pending(&["a.b.c", "x.y.z"]);
        let awaited =
            UninitializedObject { resource: &deployments, object_tree: &own, revision: 42 };
        let details = json!({"name": "x", "group": "apps", "kind": "deployments", "uid": "u", "causes": [
            {"reason": "InitializationTimeout", "message": "x.y.z",
             "field": "metadata.initializers.pending[1]"},
            {"reason": "ResourceVersion", "message": "42"},
        ]});
        let shown_json = |status: &Status| serde_json::to_value(status).unwrap();
        let want = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Timeout: server has timed out waiting for the initialization of deployments.apps x",
            "reason": "Timeout", "details": details, "code": 504});
        assert_eq!(
            shown_json(&object_initialization_timeout_status(
                &awaited,
                ObjectInitializationTimeoutCause::Step(1)
            )),
            want
        );
        let deadline = shown_json(&object_initialization_timeout_status(
            &awaited,
            ObjectInitializationTimeoutCause::Deadline,
        ));
        assert_eq!(
            (deadline["message"].as_str(), &deadline["code"]),
            (Some("Timeout: request did not complete within requested timeout"), &json!(504))
        );
        assert_eq!(deadline["details"]["causes"][0]["message"], "a.b.c");
        let lost = shown_json(&object_initialization_timeout_status(
            &awaited,
            ObjectInitializationTimeoutCause::WatchLost,
        ));
        assert_eq!(lost["message"], want["message"]);
        let shown = shown_json(&object_being_initialized_status(&awaited));
        assert_eq!((&shown["status"], &shown["code"]), (&json!("Success"), &json!(202)));
        assert_eq!(shown["details"]["uid"], "u");
        assert_eq!(
            shown["details"]["causes"],
            json!([{"reason": "ResourceVersion", "message": "42"}])
        );
    }

    #[test]
    fn the_failure_of_an_initializer_is_the_response() {
        let answer = |result: Value| {
            let status =
                object_initialization_failure_status(&pod(json!({"result": result}))).unwrap();
            (status.code, serde_json::to_value(&status).unwrap())
        };
        let details = json!({"name": "x", "group": "g", "kind": "k", "uid": "u",
            "causes": [{"reason": "r", "message": "m", "field": "f"}], "retryAfterSeconds": 3});
        let given = json!({"status": "Failure", "code": 403, "reason": "Odd", "message": "no",
            "details": details});
        let whole = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "no", "reason": "Odd", "details": details, "code": 403});
        assert_eq!(answer(given), (403, whole));
        for (code, http, shown) in
            [(json!(null), 500, 500), (json!(0), 500, 500), (json!(200), 500, 200)]
        {
            let (found, body) = answer(json!({"status": "Failure", "code": code}));
            assert_eq!((found, &body["code"]), (http, &json!(shown)), "{code}");
        }
        assert_eq!(object_initialization_failure_status(&pod_pending(&["a.b.c"])), None);
    }

    #[test]
    fn the_creator_of_a_deleted_object_learns_why() {
        let status = deleted_during_initialization_status(&pod_pending(&["a.b.c"]));
        let want = "Internal error occurred: object deleted while waiting for creation";
        assert_eq!((status.code, status.message.as_str()), (500, want));
        let status = deleted_during_initialization_status(&pod(
            json!({"result": {"status": "Failure", "code": 418}}),
        ));
        assert_eq!(status.code, 418);
    }
}
