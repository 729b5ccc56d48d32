//! The `Status` of a failed request, with the texts of Kubernetes.

use std::borrow::Cow;

use authz::UnavailableCause;
use field_errors::FieldErrors;
use serde::Serialize;

use crate::group_version::{GroupKind, GroupResource};

/// The response to a failed request, and to a deletion without a remaining object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason; empty when there is none.
    pub reason: Cow<'static, str>,
    /// The message for users.
    pub message: String,
    /// The object concerned; `None` omits the member.
    pub details: Option<Box<Details>>,
    /// The token with which an expired list can continue; otherwise empty.
    pub continue_token: String,
    /// Set if a webhook chose the contents; `None` for failures of this server.
    pub webhook_status: Option<Box<WebhookStatus>>,
}

/// Members of a [`Status`] that a webhook sets freely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookStatus {
    /// The value of `status`, usually `Failure`.
    pub status: String,
    /// The code, which need not be a valid HTTP code.
    pub code: i32,
}

/// The object that a [`Status`] is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// The name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group of the object; left out for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource of the object, or the kind for validation errors.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The uid of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The individual field errors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// Seconds after which a retry may succeed; 0 if a retry does not help.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One field error of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StatusCause {
    /// The type of the error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The message for users.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The JSON form of a status.
#[derive(Serialize)]
struct StatusJson<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    metadata: StatusMetadataJson<'a>,
    status: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Details>,
    code: i32,
}

#[derive(Serialize)]
struct StatusMetadataJson<'a> {
    #[serde(rename = "continue", skip_serializing_if = "str::is_empty")]
    continue_token: &'a str,
}

impl Serialize for Status {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = StatusJson {
            kind: "Status",
            api_version: "v1",
            metadata: StatusMetadataJson { continue_token: &self.continue_token },
            status: self.webhook_status.as_ref().map_or("Failure", |own| own.status.as_str()),
            message: &self.message,
            reason: &self.reason,
            details: self.details.as_deref(),
            code: self.webhook_status.as_ref().map_or(i32::from(self.code), |own| own.code),
        };
        wire.serialize(serializer)
    }
}

impl Status {
    /// Reports whether this server chose the contents, rather than a webhook.
    #[must_use]
    pub fn is_status_from_this_server(&self) -> bool {
        self.webhook_status.is_none()
    }

    fn new(code: u16, reason: &'static str, message: String, details: Option<Details>) -> Self {
        let details = details.map(Box::new);
        Self {
            code,
            reason: Cow::Borrowed(reason),
            message,
            details,
            continue_token: String::new(),
            webhook_status: None,
        }
    }

    /// The object does not exist.
    #[must_use]
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {} not found", go_compat::quote(name));
        Self::new(404, "NotFound", message, Some(resource_status_details(resource, name)))
    }

    /// The resource or the subresource does not exist.
    #[must_use]
    pub fn unknown_resource() -> Self {
        let message = "the server could not find the requested resource".to_owned();
        Self::new(404, "NotFound", message, Some(Details::default()))
    }

    /// An object with this name already exists.
    #[must_use]
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {} already exists", go_compat::quote(name));
        Self::new(409, "AlreadyExists", message, Some(resource_status_details(resource, name)))
    }

    /// The object changed, or has another uid than the client expects.
    #[must_use]
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        let name_quoted = go_compat::quote(name);
        let message = format!("Operation cannot be fulfilled on {resource} {name_quoted}: {why}");
        Self::new(409, "Conflict", message, Some(resource_status_details(resource, name)))
    }

    /// The object is invalid.
    #[must_use]
    pub fn invalid_object(kind: &GroupKind, name: &str, errors: &FieldErrors) -> Self {
        // The name itself may be invalid.
        let name = name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default();
        let causes = errors.iter().map(|error| StatusCause {
            reason: error.kind.reason().to_owned(),
            message: error.message_without_path(),
            field: error.path.clone(),
        });
        let rest = errors
            .omitted_errors_summary()
            .map(|message| StatusCause { message, ..StatusCause::default() });
        let details = Details {
            name: name.to_owned(),
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            causes: causes.chain(rest).collect(),
            ..Details::default()
        };
        let message = format!("{kind} {} is invalid: {errors}", go_compat::quote(name));
        Self::new(422, "Invalid", message, Some(details))
    }

    /// A policy forbids the request; an empty name is omitted.
    #[must_use]
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = match name {
            "" => format!("{resource} is forbidden: {why}"),
            _ => format!("{resource} {} is forbidden: {why}", go_compat::quote(name)),
        };
        Self::new(403, "Forbidden", message, Some(resource_status_details(resource, name)))
    }

    /// A policy forbids a request for a non-resource path.
    #[must_use]
    pub fn forbidden_path(why: &str) -> Self {
        let message = format!("forbidden: {why}");
        Self::new(403, "Forbidden", message, Some(Details::default()))
    }

    /// The request has no authenticated user.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized".to_owned(), None)
    }

    /// The request is malformed.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into(), None)
    }

    /// The resource does not offer the method.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self::new(405, "MethodNotAllowed", message, Some(Details::default()))
    }

    /// A custom resource does not offer the verb.
    #[must_use]
    pub fn method_not_supported(resource: &GroupResource, verb: &str) -> Self {
        let quoted = go_compat::quote(&resource.to_string());
        let message = format!("{verb} is not supported on resources of kind {quoted}");
        Self::new(405, "MethodNotAllowed", message, Some(resource_status_details(resource, "")))
    }

    /// No response format that the client accepts is available.
    #[must_use]
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message.into(), None)
    }

    /// The media type of the body is not supported.
    #[must_use]
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message.into(), None)
    }

    /// The body or the object exceeds this limit of bytes.
    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        Self::too_large_with_reason(&format!("limit is {limit}"))
    }

    /// A part of the request exceeds its limit.
    #[must_use]
    pub fn too_large_with_reason(why: &str) -> Self {
        let message = format!("Request entity too large: {why}");
        Self::new(413, "RequestEntityTooLarge", message, None)
    }

    /// The client must wait before it retries.
    #[must_use]
    pub fn too_many_requests(why: &str, retry_after_seconds: u32) -> Self {
        let details = Details { retry_after_seconds, ..Details::default() };
        Self::new(429, "TooManyRequests", format!("Too many requests: {why}"), Some(details))
    }

    /// The store has no space for the write.
    #[must_use]
    pub fn insufficient_storage(why: &str) -> Self {
        Self::new(507, "InsufficientStorage", format!("Insufficient storage: {why}"), None)
    }

    /// The request took too long.
    #[must_use]
    pub fn timeout() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout".to_owned();
        Self::new(504, "Timeout", message, None)
    }

    /// The client did not send its request in time.
    #[must_use]
    pub fn request_timeout(why: &str) -> Self {
        Self::new(408, "Timeout", format!("Timeout: {why}"), None)
    }

    /// The client names a resourceVersion that this server has not reached yet.
    #[must_use]
    pub fn too_large_resource_version(requested: u64, current: u64) -> Self {
        let message =
            format!("Timeout: Too large resource version: {requested}, current: {current}");
        let cause = StatusCause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let details = Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() };
        Self::new(504, "Timeout", message, Some(details))
    }

    /// The store is unreachable.
    #[must_use]
    pub fn store_unavailable(resource: &GroupResource, operation: &str) -> Self {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, \
             please try again."
        );
        let details =
            Details { retry_after_seconds: 2, ..resource_status_details(resource, operation) };
        Self::new(503, "ServiceUnavailable", message, Some(details))
    }

    /// The requested resourceVersion is no longer available.
    #[must_use]
    pub fn resource_version_expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into(), None)
    }

    /// The server failed for an internal reason.
    #[must_use]
    pub fn internal_error(why: &str) -> Self {
        let cause = StatusCause { message: why.to_owned(), ..StatusCause::default() };
        let details = Details { causes: vec![cause], ..Details::default() };
        Self::new(500, "InternalError", format!("Internal error occurred: {why}"), Some(details))
    }

    /// An error without a specific reason.
    #[must_use]
    pub fn error_without_reason(message: impl Into<String>) -> Self {
        Self::new(500, "", message.into(), None)
    }

    /// The server does not serve at the moment.
    #[must_use]
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message.into(), None)
    }

    /// No authorization decision was possible because this server failed to get one.
    #[must_use]
    pub fn authorization_undecided(why: UnavailableCause) -> Self {
        match why {
            UnavailableCause::TooManyCalls => {
                Self::too_many_requests("an authorization webhook has too many calls in flight", 1)
            }
            UnavailableCause::OutOfResources => {
                let message = "the server is currently unable to authorize the request".to_owned();
                let details = Details { retry_after_seconds: 1, ..Details::default() };
                Self::new(503, "ServiceUnavailable", message, Some(details))
            }
            UnavailableCause::DeadlineExceeded => Self::timeout(),
        }
    }

    /// The operations of a JSON Patch cannot be applied.
    #[must_use]
    pub fn unprocessable_patch() -> Self {
        let message = "the server rejected our request due to an error in our request".to_owned();
        Self::new(422, "Invalid", message, Some(Details::default()))
    }

    /// Seconds after which a retry may succeed, if it may.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u32> {
        let details = self.details.as_ref()?;
        (details.retry_after_seconds > 0).then_some(details.retry_after_seconds)
    }
}

/// Upper bound on the bytes of an invalid name in a message. Valid names are shorter.
const NAME_BYTES_MAX: usize = 1024;

fn resource_status_details(resource: &GroupResource, name: &str) -> Details {
    Details {
        name: name.to_owned(),
        group: resource.group.clone(),
        kind: resource.resource.clone(),
        ..Details::default()
    }
}

#[cfg(test)]
mod tests {
    use field_errors::FieldPath;
    use serde_json::json;

    use super::*;

    fn roles() -> GroupResource {
        GroupResource::new("rbac.authorization.k8s.io", "roles")
    }

    #[test]
    fn a_missing_object_of_the_core_group_has_no_group() {
        let status = Status::not_found(&GroupResource::new("", "configmaps"), "a");
        let want = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "configmaps \"a\" not found", "reason": "NotFound",
            "details": {"name": "a", "kind": "configmaps"}, "code": 404,
        });
        assert_eq!(serde_json::to_value(&status).unwrap(), want);
    }

    #[test]
    fn faults_of_an_object_are_causes() {
        let mut errors = FieldErrors::new();
        errors.push(FieldPath::root("metadata").child("name").required("name is required"));
        let status = Status::invalid_object(&GroupKind::new("", "ConfigMap"), "", &errors);
        assert_eq!(
            status.message,
            "ConfigMap \"\" is invalid: metadata.name: Required value: name is required"
        );
        let details = serde_json::to_value(status.details).unwrap();
        let want = json!({"kind": "ConfigMap", "causes": [{
            "reason": "FieldValueRequired",
            "message": "Required value: name is required",
            "field": "metadata.name",
        }]});
        assert_eq!(details, want);
    }

    #[test]
    fn templates_are_those_of_kubernetes() {
        for (status, code, message) in [
            (
                Status::conflict(&roles(), "x", "why"),
                409,
                "Operation cannot be fulfilled on roles.rbac.authorization.k8s.io \"x\": why",
            ),
            (Status::too_large(3), 413, "Request entity too large: limit is 3"),
            (
                Status::store_unavailable(&roles(), "get"),
                503,
                "The get operation against roles.rbac.authorization.k8s.io could not be completed \
                 at this time, please try again.",
            ),
            (
                Status::forbidden(&roles(), "", "no"),
                403,
                "roles.rbac.authorization.k8s.io is forbidden: no",
            ),
        ] {
            assert_eq!((status.code, status.message.as_str()), (code, message));
        }
    }

    #[test]
    fn an_expired_list_says_where_to_go_on() {
        let mut status = Status::resource_version_expired("too old");
        status.continue_token = "abc".to_owned();
        let wire = serde_json::to_value(&status).unwrap();
        assert_eq!(wire["metadata"], json!({"continue": "abc"}));
        assert!(wire.get("details").is_none());
    }
}
