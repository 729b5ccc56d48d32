//! What is known of a request so far, and how it is written down.

mod wire;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use authz::{Attributes, Decision, User, Verdict};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::policy::RequestAuditConfig;
use crate::redact::{Copier, REDACTED, Subject, redact_uri, without_quotes};
use crate::stage::{Level, Stage};

/// The longest line of the log, in bytes. A longer one is written without bodies and says so.
pub const EVENT_BYTES_MAX: usize = 10 << 20;

/// The longest user agent that is written in full, in bytes.
const USER_AGENT_BYTES_MAX: usize = 1024;

/// The most annotations of an event. Admission has a few for each policy and webhook.
const ANNOTATIONS_MAX: usize = 256;

/// The longest value of an annotation, in bytes. Kubernetes allows what admission may say as much.
const ANNOTATION_BYTES_MAX: usize = 10 << 10;

/// The annotation of an event whose bodies were left out for their length.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// The annotation whose value is `allow` or `forbid`.
const DECISION_ANNOTATION: &str = "authorization.k8s.io/decision";

/// The annotation with the reason of the decision.
const REASON_ANNOTATION: &str = "authorization.k8s.io/reason";

/// A request as it came in.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// What the request is found by.
    pub audit_id: &'a str,
    /// The path and the query, as they were sent.
    pub uri: &'a str,
    /// Who asks for what. The user is `None` if authentication failed.
    pub attributes: Attributes<'a>,
    /// Where it came from; see [`source_ips`](crate::source_ips).
    pub source_ips: &'a [IpAddr],
    /// What the client calls itself.
    pub user_agent: &'a str,
    /// When it came.
    pub at: Timestamp,
}

/// A request that is recorded. It is filled while the request is worked on, and written at each
/// stage with what it has by then. It holds no secrets: they are masked when they are put in.
#[derive(Debug, Clone)]
pub struct Event {
    config: RequestAuditConfig,
    subject: Subject,
    audit_id: String,
    uri: String,
    verb: String,
    user: Option<User>,
    impersonated: Option<Impersonated>,
    source_ips: Vec<IpAddr>,
    user_agent: String,
    object: Option<ObjectRef>,
    response_status: Option<Value>,
    request_object: Option<Value>,
    response_object: Option<Value>,
    received: Timestamp,
    annotations: BTreeMap<Cow<'static, str>, String>,
}

#[derive(Debug, Clone)]
struct Impersonated {
    user: User,
    /// The mode of constrained impersonation that allowed it; empty for the unconstrained one.
    constraint: String,
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
    pub(crate) fn new(received: &Received<'_>, config: RequestAuditConfig) -> Self {
        let attributes = &received.attributes;
        let object = attributes.resource().map(|resource| ObjectRef {
            resource: resource.resource.to_owned(),
            namespace: resource.namespace.to_owned(),
            name: resource.name.to_owned(),
            api_group: resource.api_group.to_owned(),
            api_version: resource.api_version.to_owned(),
            subresource: resource.subresource.to_owned(),
            ..ObjectRef::default()
        });
        let subject = attributes.resource().map_or(Subject::Plain, |resource| {
            Subject::of_resource(resource.api_group, resource.resource, resource.subresource)
        });
        Self {
            config,
            subject,
            audit_id: received.audit_id.to_owned(),
            uri: redact_uri(received.uri).into_owned(),
            verb: attributes.verb.to_owned(),
            user: attributes.user.cloned(),
            impersonated: None,
            source_ips: received.source_ips.to_vec(),
            user_agent: shortened(received.user_agent),
            object,
            response_status: None,
            request_object: None,
            response_object: None,
            received: received.at,
            annotations: BTreeMap::new(),
        }
    }

    /// Reports whether there is an event of a stage.
    pub fn is_recorded(&self, stage: Stage) -> bool {
        self.config.level > Level::None && !self.config.omit_stages.contains(stage)
    }

    /// Reports whether the body of the request is recorded.
    pub fn wants_request_object(&self) -> bool {
        self.config.level >= Level::Request && self.object.is_some()
    }

    /// Reports whether the body of the answer is recorded.
    pub fn wants_response_object(&self) -> bool {
        self.config.level >= Level::RequestResponse && self.object.is_some()
    }

    /// The user asked to act as another. `constraint` is the mode that allowed it, or empty.
    pub fn impersonate(&mut self, user: &User, constraint: &str) {
        let constraint = constraint.to_owned();
        self.impersonated = Some(Impersonated { user: user.clone(), constraint });
    }

    /// Adds an annotation, and reports whether it was: the first value of a key stays, and there
    /// is room for a limited number. A long value is cut.
    pub fn annotate(&mut self, key: impl Into<Cow<'static, str>>, value: &str) -> bool {
        let key = key.into();
        if self.annotations.contains_key(&key) || self.annotations.len() >= ANNOTATIONS_MAX {
            return false;
        }
        let end = value.floor_char_boundary(ANNOTATION_BYTES_MAX);
        self.annotations.insert(key, value[..end].to_owned());
        true
    }

    /// Adds an annotation whose value is JSON with a JSON patch of the object in the member `patch`.
    /// Values of secrets are masked in it, as they are in the object.
    pub fn annotate_patch(&mut self, key: impl Into<Cow<'static, str>>, value: &str) -> bool {
        if self.subject == Subject::Plain {
            return self.annotate(key, value);
        }
        match serde_json::from_str::<Map<String, Value>>(value) {
            Ok(mut members) => {
                if let Some(patch) = members.get_mut("patch") {
                    *patch = self.copier().copy(patch, self.subject);
                }
                self.annotate(key, &Value::Object(members).to_string())
            }
            Err(_) => self.annotate(key, REDACTED),
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
    pub fn annotate_decision(&mut self, decision: &Decision) {
        let allow_or_forbid = match (decision.verdict, &decision.error) {
            (Verdict::Allow, _) => "allow",
            (Verdict::Unavailable(_), _) => {
                self.annotate(REASON_ANNOTATION, "unavailable");
                return;
            }
            (Verdict::Deny | Verdict::NoOpinion, Some(_)) => {
                self.annotate(REASON_ANNOTATION, "internal error");
                return;
            }
            (Verdict::Deny | Verdict::NoOpinion, None) => "forbid",
        };
        self.annotate(DECISION_ANNOTATION, allow_or_forbid);
        self.annotate(REASON_ANNOTATION, &decision.reason.to_string());
    }

    /// The object that came with a request to create or to replace one, or the options of a
    /// deletion. Whatever the level, what the URL does not say about the object is taken from it.
    pub fn request_object(&mut self, object: &Value) {
        if let Some(reference) = &mut self.object {
            reference.complete(object);
        }
        if self.wants_request_object() {
            self.request_object = Some(self.copier().copy(object, self.subject));
        }
    }

    /// The patch that came with a request: an object, or the list of operations of a JSON patch.
    pub fn request_patch(&mut self, patch: &Value) {
        if self.wants_request_object() {
            self.request_object = Some(self.copier().copy(patch, self.subject));
        }
    }

    /// The HTTP code of the answer. `status` is the Status that it carries, if that is what it
    /// carries.
    pub fn respond(&mut self, code: u16, status: Option<&Value>) {
        let status = status.map(|status| without_quotes(status, self.subject));
        let mut members = match status {
            Some(Value::Object(status)) => status,
            Some(_) | None => Map::from_iter([("metadata".to_owned(), Value::Object(Map::new()))]),
        };
        members.retain(|name, _| name != "kind" && name != "apiVersion");
        members.insert("code".to_owned(), code.into());
        self.response_status = Some(Value::Object(members));
    }

    /// Reports whether the code of the answer is known.
    pub fn has_response(&self) -> bool {
        self.response_status.is_some()
    }

    /// The object of the answer.
    pub fn response_object(&mut self, object: &Value) {
        if self.wants_response_object() {
            let copy = self.copier().copy(object, self.subject);
            let is_status = copy.get("kind").and_then(Value::as_str) == Some("Status");
            self.response_object =
                Some(if is_status { without_quotes(&copy, self.subject) } else { copy });
        }
    }

    /// The line for a stage, with its end.
    pub fn line(&self, stage: Stage, now: Timestamp) -> Vec<u8> {
        let line = wire::encode(self, stage, now);
        if line.len() <= EVENT_BYTES_MAX {
            return line;
        }
        let mut short = Self { request_object: None, response_object: None, ..self.clone() };
        short.annotations.insert(TRUNCATED.into(), "true".to_owned());
        wire::encode(&short, stage, now)
    }

    fn copier(&self) -> Copier {
        Copier { omit_managed_fields: self.config.omit_managed_fields }
    }
}

impl ObjectRef {
    fn complete(&mut self, object: &Value) {
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

fn shortened(user_agent: &str) -> String {
    if user_agent.len() <= USER_AGENT_BYTES_MAX {
        return user_agent.to_owned();
    }
    let end = user_agent.floor_char_boundary(USER_AGENT_BYTES_MAX);
    format!("{}...TRUNCATED", &user_agent[..end])
}

#[cfg(test)]
mod tests;
