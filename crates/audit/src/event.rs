//! The audit event of a request, which is filled while the request is processed.

mod encode_event_json;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use authz::{Attributes, Decision, User, Verdict};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::policy::RequestAuditConfig;
use crate::redact::{
    BodySensitivity, REDACTED, RedactingBodyCopier, redact_quoted_body, redact_uri,
};
use crate::stage::{Level, Stage};

/// Upper bound on the bytes of a line. A longer event is written without bodies, with an annotation.
pub const EVENT_BYTES_MAX: usize = 10 << 20;

/// Upper bound on the bytes of the user agent; a longer one is truncated.
const USER_AGENT_BYTES_MAX: usize = 1024;

/// Upper bound on the annotations of an event. Admission adds a few for each policy and webhook.
const ANNOTATIONS_MAX: usize = 256;

/// Upper bound on the bytes of the value of an annotation, as in Kubernetes.
const ANNOTATION_BYTES_MAX: usize = 10 << 10;

/// The annotation of an event whose bodies were left out because of their length.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// The annotation whose value is `allow` or `forbid`.
const DECISION_ANNOTATION: &str = "authorization.k8s.io/decision";

/// The annotation with the reason of the decision.
const REASON_ANNOTATION: &str = "authorization.k8s.io/reason";

/// A request when it is received.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedRequest<'a> {
    /// The audit id, which all events of the request share.
    pub audit_id: &'a str,
    /// The path and the query as the client sent them.
    pub request_uri: &'a str,
    /// The attributes. The user is `None` if authentication failed.
    pub attributes: Attributes<'a>,
    /// The addresses of the client and of its proxies; see [`source_ips`](crate::source_ips).
    pub source_ips: &'a [IpAddr],
    /// The value of the header `User-Agent`.
    pub user_agent: &'a str,
    /// The time when it was received.
    pub at: Timestamp,
}

/// The audit event of a request. It is filled while the request is processed, and written at each stage. It contains no
/// secrets: they are masked when they are added.
#[derive(Debug, Clone)]
pub struct Event {
    audit_config: RequestAuditConfig,
    body_sensitivity: BodySensitivity,
    audit_id: String,
    request_uri: String,
    verb: String,
    user: Option<User>,
    impersonation: Option<Impersonation>,
    source_ips: Vec<IpAddr>,
    user_agent: String,
    object_ref: Option<ObjectRef>,
    response_status: Option<Value>,
    request_object: Option<Value>,
    response_object: Option<Value>,
    received_at: Timestamp,
    annotations: BTreeMap<Cow<'static, str>, String>,
}

#[derive(Debug, Clone)]
struct Impersonation {
    user: User,
    /// The mode of constrained impersonation that allowed it; empty without constraints.
    impersonation_mode: String,
}

#[derive(Debug, Clone, Default)]
struct ObjectRef {
    resource: String,
    namespace: String,
    name: String,
    uid: String,
    api_group: String,
    api_version: String,
    resource_version: String,
    subresource: String,
}

impl Event {
    pub(crate) fn new(received: &ReceivedRequest<'_>, config: RequestAuditConfig) -> Self {
        let attributes = &received.attributes;
        let object_ref = attributes.resource().map(|resource| ObjectRef {
            resource: resource.resource.to_owned(),
            namespace: resource.namespace.as_str().to_owned(),
            name: resource.name.to_owned(),
            api_group: resource.api_group.to_owned(),
            api_version: resource.api_version.to_owned(),
            subresource: resource.subresource.to_owned(),
            ..ObjectRef::default()
        });
        let sensitivity = attributes.resource().map_or(BodySensitivity::Plain, |resource| {
            BodySensitivity::sensitivity_of_resource(
                resource.api_group,
                resource.resource,
                resource.subresource,
            )
        });
        Self {
            audit_config: config,
            body_sensitivity: sensitivity,
            audit_id: received.audit_id.to_owned(),
            request_uri: redact_uri(received.request_uri).into_owned(),
            verb: attributes.verb.as_str().to_owned(),
            user: attributes.user.cloned(),
            impersonation: None,
            source_ips: received.source_ips.to_vec(),
            user_agent: truncate_user_agent(received.user_agent),
            object_ref,
            response_status: None,
            request_object: None,
            response_object: None,
            received_at: received.at,
            annotations: BTreeMap::new(),
        }
    }

    /// Reports whether the policy records a stage.
    pub fn records_stage(&self, stage: Stage) -> bool {
        self.audit_config.level > Level::None && !self.audit_config.omit_stages.contains(stage)
    }

    /// Reports whether the body of the request is recorded.
    pub fn records_request_object(&self) -> bool {
        self.audit_config.level >= Level::Request && self.object_ref.is_some()
    }

    /// Reports whether the body of the response is recorded.
    pub fn records_response_object(&self) -> bool {
        self.audit_config.level >= Level::RequestResponse && self.object_ref.is_some()
    }

    /// Sets the impersonated user. `constraint` is the mode that allowed it, or empty.
    pub fn set_impersonated_user(&mut self, user: &User, constraint: &str) {
        let constraint = constraint.to_owned();
        self.impersonation =
            Some(Impersonation { user: user.clone(), impersonation_mode: constraint });
    }

    /// Adds an annotation, and reports whether it did: the first value of a key stays, and the number of annotations is
    /// limited. A long value is truncated.
    pub fn add_annotation(&mut self, key: impl Into<Cow<'static, str>>, value: &str) -> bool {
        let key = key.into();
        if self.annotations.contains_key(&key) || self.annotations.len() >= ANNOTATIONS_MAX {
            return false;
        }
        let value = field_errors::truncate_to_bytes(value, ANNOTATION_BYTES_MAX);
        self.annotations.insert(key, value.to_owned());
        true
    }

    /// Adds an annotation whose value is JSON with a JSON patch of the object in the member `patch`.
    /// Values of secrets are masked in it, as they are in the object.
    pub fn add_patch_annotation(&mut self, key: impl Into<Cow<'static, str>>, value: &str) -> bool {
        if self.body_sensitivity == BodySensitivity::Plain {
            return self.add_annotation(key, value);
        }
        match serde_json::from_str::<Map<String, Value>>(value) {
            Ok(mut members) => {
                if let Some(patch) = members.get_mut("patch") {
                    *patch = self.body_copier().copy_redacted_body(patch, self.body_sensitivity);
                }
                self.add_annotation(key, &Value::Object(members).to_string())
            }
            Err(_) => self.add_annotation(key, REDACTED),
        }
    }

    /// Adds the annotations about the authorization of the request. Every program of this repository
    /// annotates decisions by this function.
    ///
    /// 1. An allowed request: `decision` is `allow`, and `reason` is the reason, also if an authorizer
    ///    failed before another one allowed the request.
    /// 2. A request that this server failed to decide: `reason` is `unavailable`, without a `decision`.
    /// 3. A request that is not allowed while an authorizer failed: `reason` is `internal error`, without a
    ///    `decision`.
    /// 4. Any other request: `decision` is `forbid`, and `reason` is the reason.
    pub fn add_decision_annotations(&mut self, decision: &Decision) {
        let allow_or_forbid = match (decision.verdict, &decision.error) {
            (Verdict::Allow, _) => "allow",
            (Verdict::Unavailable(_), _) => {
                self.add_annotation(REASON_ANNOTATION, "unavailable");
                return;
            }
            (Verdict::Deny | Verdict::NoOpinion, Some(_)) => {
                self.add_annotation(REASON_ANNOTATION, "internal error");
                return;
            }
            (Verdict::Deny | Verdict::NoOpinion, None) => "forbid",
        };
        self.add_annotation(DECISION_ANNOTATION, allow_or_forbid);
        self.add_annotation(REASON_ANNOTATION, &decision.reason.to_string());
    }

    /// Sets the object in the body of the request, or the options of a deletion. At any level, the object reference is
    /// completed from it.
    pub fn set_request_object(&mut self, object: &Value) {
        if let Some(reference) = &mut self.object_ref {
            reference.complete_object_ref(object);
        }
        if self.records_request_object() {
            self.request_object =
                Some(self.body_copier().copy_redacted_body(object, self.body_sensitivity));
        }
    }

    /// Sets the patch in the body of the request: an object, or the operations of a JSON patch.
    pub fn set_request_patch(&mut self, patch: &Value) {
        if self.records_request_object() {
            self.request_object =
                Some(self.body_copier().copy_redacted_body(patch, self.body_sensitivity));
        }
    }

    /// Sets the HTTP status code of the response, and the Status in its body, if it has one.
    pub fn set_response_status(&mut self, code: u16, status: Option<&Value>) {
        let status = status.map(|status| redact_quoted_body(status, self.body_sensitivity));
        let mut members = match status {
            Some(Value::Object(status)) => status,
            Some(_) | None => Map::from_iter([("metadata".to_owned(), Value::Object(Map::new()))]),
        };
        members.retain(|name, _| name != "kind" && name != "apiVersion");
        members.insert("code".to_owned(), code.into());
        self.response_status = Some(Value::Object(members));
    }

    /// Reports whether the status code of the response is set.
    pub fn has_response_status(&self) -> bool {
        self.response_status.is_some()
    }

    /// Sets the object in the body of the response.
    pub fn set_response_object(&mut self, object: &Value) {
        if self.records_response_object() {
            let copy = self.body_copier().copy_redacted_body(object, self.body_sensitivity);
            let is_status = copy.get("kind").and_then(Value::as_str) == Some("Status");
            self.response_object = Some(if is_status {
                redact_quoted_body(&copy, self.body_sensitivity)
            } else {
                copy
            });
        }
    }

    /// The log line for a stage, with a line feed at the end.
    pub fn encode_json_line(&self, stage: Stage, now: Timestamp) -> Vec<u8> {
        let line = encode_event_json::encode_event_line(self, stage, now);
        if line.len() <= EVENT_BYTES_MAX {
            line
        } else {
            self.encode_json_line_without_bodies(stage, now)
        }
    }

    /// The log line for a stage without the bodies of request and response, and with an annotation that says so.
    pub(crate) fn encode_json_line_without_bodies(&self, stage: Stage, now: Timestamp) -> Vec<u8> {
        let mut short = Self { request_object: None, response_object: None, ..self.clone() };
        short.annotations.insert(TRUNCATED.into(), "true".to_owned());
        encode_event_json::encode_event_line(&short, stage, now)
    }

    /// The user to whom the space of the event in a queue is attributed: the one who authenticated. Requests
    /// without an authenticated user share one name.
    pub(crate) fn queue_share_user(&self) -> &str {
        self.user.as_ref().map_or("", |user| authz::user_limit_key(&user.name))
    }

    fn body_copier(&self) -> RedactingBodyCopier {
        RedactingBodyCopier { omit_managed_fields: self.audit_config.omit_managed_fields }
    }
}

impl ObjectRef {
    fn complete_object_ref(&mut self, object: &Value) {
        let metadata = object.get("metadata");
        let fields = [
            ("name", &mut self.name),
            ("namespace", &mut self.namespace),
            ("uid", &mut self.uid),
            ("resourceVersion", &mut self.resource_version),
        ];
        for (name, field) in fields {
            let found = metadata.and_then(|metadata| metadata.get(name)).and_then(Value::as_str);
            if let Some(found) = found.filter(|_| field.is_empty()) {
                *field = found.to_owned();
            }
        }
    }
}

fn truncate_user_agent(user_agent: &str) -> String {
    if user_agent.len() <= USER_AGENT_BYTES_MAX {
        return user_agent.to_owned();
    }
    let end = user_agent.floor_char_boundary(USER_AGENT_BYTES_MAX);
    format!("{}...TRUNCATED", &user_agent[..end])
}

#[cfg(test)]
mod tests;
