//! What is remembered of a request while it lives: for the log, the numbers and the audit.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use admission_hooks::{AnnotationLevel, Notes};
use api_object::{Status, Tree};
use audit::{Event, ReceivedRequest, Stage};
use authn::{ImpersonationMode, Unauthenticated};
use authz::{Decision, RequestInfo, Unavailable, User};
use http::request::Parts;
use jiff::Timestamp;
use serde_json::Value;
use store::Store;

use crate::authorize::Decided;
use crate::hook_trace;
use crate::log::Level;
use crate::metrics::{RequestLabels, metric_verb};
use crate::respond::Reply;
use crate::rest::Query;
use crate::route::Route;
use crate::server_state::ServerState;

/// Which webhooks were not asked about a request, because a match condition is false.
const WEBHOOK_SKIPPED: &str = "authorization.k8s.io/webhook-skipped";
/// Which webhooks failed and were passed over because of their failure policy, and how they failed.
const FAILED_OPEN_BY: &str = "authorization.portcullis.io/failed-open-by";

/// The record of one request.
pub(crate) struct Record {
    method: String,
    uri: String,
    peer: SocketAddr,
    audit_id: String,
    verb: String,
    user: Option<Arc<User>>,
    route: Option<Routed>,
    /// `None` if nobody wants to know.
    event: Option<Box<Event>>,
}

/// What is known once a request has a resource.
struct Routed {
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    is_dry_run: bool,
}

/// The record of a stream after its answer has begun. Dropping it records the end of the stream,
/// however that came about.
pub(crate) struct StreamRecord<S> {
    server: Arc<ServerState<S>>,
    event: Option<Box<Event>>,
}

impl Record {
    pub(crate) fn new(parts: &Parts, peer: SocketAddr, audit_id: String) -> Self {
        Self {
            method: parts.method.as_str().to_owned(),
            uri: parts.uri.path_and_query().map_or("/", |own| own.as_str()).to_owned(),
            peer,
            audit_id,
            verb: String::new(),
            user: None,
            route: None,
            event: None,
        }
    }

    /// What is asked for is known.
    pub(crate) fn classify(&mut self, info: &RequestInfo) {
        self.verb = info.verb.to_string();
    }

    /// Nobody is known to ask.
    pub(crate) fn unauthenticated<S>(
        &mut self,
        server: &ServerState<S>,
        refused: &Unauthenticated,
        info: &RequestInfo,
        parts: &Parts,
        now: Timestamp,
    ) {
        server.log.info(
            "a request is not authenticated",
            &[("why", refused), ("auditID", &self.audit_id), ("source", &self.peer)],
        );
        self.receive(server, None, info, parts, now);
        if let Some(event) = &mut self.event {
            let status = serde_json::to_value(Status::unauthorized()).ok();
            event.set_response_status(401, status.as_ref());
        }
        self.write(server, Stage::ResponseStarted);
    }

    /// It is known who asks.
    ///
    /// # Errors
    /// 500 if the request can not be recorded although it must be.
    pub(crate) fn begin<S>(
        &mut self,
        server: &ServerState<S>,
        user: &Arc<User>,
        info: &RequestInfo,
        parts: &Parts,
        now: Timestamp,
    ) -> Result<(), Status> {
        self.user = Some(Arc::clone(user));
        self.receive(server, Some(user), info, parts, now);
        match self.write(server, Stage::RequestReceived) {
            true => Ok(()),
            false => {
                server.metrics.audit_rejected.inc();
                self.event = None;
                Err(Status::internal("the request can not be recorded for audit"))
            }
        }
    }

    fn receive<S>(
        &mut self,
        server: &ServerState<S>,
        user: Option<&User>,
        info: &RequestInfo,
        parts: &Parts,
        now: Timestamp,
    ) {
        let Some(auditor) = &server.auditor else { return };
        let text = |name: &str| {
            parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
        };
        let source_ips =
            audit::source_ips(text("x-forwarded-for"), text("x-real-ip"), self.peer.ip());
        let received = ReceivedRequest {
            audit_id: &self.audit_id,
            uri: &self.uri,
            attributes: info.attributes(user),
            source_ips: &source_ips,
            user_agent: text("user-agent"),
            at: now,
        };
        self.event = auditor.begin(&received).map(Box::new);
    }

    /// The request is done as somebody else.
    pub(crate) fn impersonate(&mut self, user: &Arc<User>, mode: ImpersonationMode) {
        self.user = Some(Arc::clone(user));
        if let Some(event) = &mut self.event {
            event.set_impersonated_user(user, if mode.is_constrained() { mode.verb() } else { "" });
        }
    }

    /// The chain has spoken.
    pub(crate) fn decided<S>(&mut self, server: &ServerState<S>, decided: &Decided) {
        server.authorization_metrics.record_decision(&decided.decision, decided.took);
        if let Some(event) = &mut self.event {
            event.annotate_decision(&decided.decision);
            if let Some(names) = &decided.skipped {
                event.annotate(WEBHOOK_SKIPPED, names);
            }
            if let Some(causes) = &decided.failed_open_by {
                event.annotate(FAILED_OPEN_BY, causes);
            }
        }
    }

    /// The chain did not answer in time.
    pub(crate) fn undecided<S>(&mut self, server: &ServerState<S>, waited: Duration) {
        let late = Decision::unavailable(Unavailable::DeadlineExceeded);
        server.authorization_metrics.record_decision(&late, waited);
    }

    /// What hooks have left behind, for each object of the request.
    pub(crate) fn admission(&mut self, all: &[Notes]) {
        if let Some(event) = &mut self.event {
            admitted(event, all);
        }
    }

    /// The resource is known.
    pub(crate) fn route(&mut self, route: &Route<'_>, query: &Query) {
        let resource = &route.resource;
        let scope = match (&route.name, &route.namespace) {
            (Some(_), _) => "resource",
            (None, Some(_)) => "namespace",
            (None, None) => "cluster",
        };
        self.route = Some(Routed {
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.plural.clone(),
            subresource: route.subresource.unwrap_or_default().to_owned(),
            scope,
            is_dry_run: query.get("dryRun").is_some_and(|own| !own.is_empty()),
        });
    }

    /// Whether somebody wants to see what is in the bodies.
    pub(crate) fn wants_objects(&self) -> bool {
        self.event.as_ref().is_some_and(|event| event.wants_request_object())
    }

    /// The object in the body.
    pub(crate) fn request_object(&mut self, tree: &Tree) {
        if let Some(event) = &mut self.event {
            event.set_request_object(&Value::Object(tree.clone()));
        }
    }

    /// The patch in the body.
    pub(crate) fn request_patch(&mut self, bytes: &[u8]) {
        if let Some(event) = &mut self.event
            && event.wants_request_object()
            && let Ok(patch) = codec::json_tree(bytes)
        {
            event.set_request_patch(&patch.value);
        }
    }

    /// The request came to nothing.
    pub(crate) fn failed(&mut self, status: &Status) {
        if let Some(event) = &mut self.event {
            let value = serde_json::to_value(status).ok();
            event.set_response_status(status.code, value.as_ref());
            if let Some(value) = &value {
                event.set_response_object(value);
            }
        }
    }

    /// What the request came to.
    pub(crate) fn response<S: Store>(&mut self, reply: &Reply<S>) {
        if let Reply::Status(status) = reply {
            return self.failed(status);
        }
        let Some(event) = &mut self.event else { return };
        let (code, object) = match reply {
            Reply::Object { code, tree, .. } | Reply::Tree { code, tree } => {
                let is_wanted = event.wants_response_object();
                (*code, is_wanted.then(|| Value::Object(tree.clone())))
            }
            Reply::Json { code, json } => {
                let is_wanted = event.wants_response_object();
                (
                    *code,
                    is_wanted.then(|| codec::json_tree(json).ok().map(|own| own.value)).flatten(),
                )
            }
            Reply::List { listed, .. } => {
                let is_wanted = event.wants_response_object();
                let items = || {
                    let parse = |item: &store::Item| {
                        codec::from_stored(&item.entry.value).ok().map(Value::Object)
                    };
                    let items: Vec<Value> = listed.items.iter().filter_map(parse).collect();
                    serde_json::json!({"items": items})
                };
                (200, is_wanted.then(items))
            }
            Reply::Watch { .. } | Reply::Document(_) | Reply::Status(_) => (200, None),
        };
        event.set_response_status(code, None);
        if let Some(object) = object {
            event.set_response_object(&object);
        }
    }

    /// A stream has begun; what is returned ends it.
    pub(crate) fn stream_begun<S>(&mut self, server: &Arc<ServerState<S>>) -> StreamRecord<S> {
        if let Some(event) = &mut self.event {
            event.set_response_status(200, None);
        }
        self.write(server, Stage::ResponseStarted);
        StreamRecord { server: Arc::clone(server), event: self.event.take() }
    }

    /// The server failed on the request.
    pub(crate) fn panicked<S>(&mut self, server: &ServerState<S>) {
        if let Some(event) = &mut self.event {
            event.set_response_status(500, None);
        }
        self.write(server, Stage::Panic);
        self.event = None;
    }

    fn write<S>(&self, server: &ServerState<S>, stage: Stage) -> bool {
        self.event.as_ref().is_none_or(|event| write(server, event, stage))
    }

    /// The answer is known.
    pub(crate) fn finish<S>(&mut self, server: &ServerState<S>, code: u16, took: Duration) {
        if let Some(event) = &mut self.event
            && !event.has_response()
        {
            event.set_response_status(code, None);
        }
        if self.user.is_some() {
            self.write(server, Stage::ResponseComplete);
        }
        let verb = metric_verb(&self.verb, &self.method);
        let labels = match &self.route {
            None => RequestLabels { verb, ..RequestLabels::default() },
            Some(own) => RequestLabels {
                verb,
                dry_run: if own.is_dry_run { "All" } else { "" },
                group: &own.group,
                version: &own.version,
                resource: &own.resource,
                subresource: &own.subresource,
                scope: own.scope,
            },
        };
        server.metrics.count_request(&labels, code, took);
        if server.log.level >= Level::Info {
            let user = self.user.as_ref().map_or("", |user| user.name.as_str());
            let micros = took.as_micros();
            server.log.info(
                "request",
                &[
                    ("method", &self.method),
                    ("uri", &audit::redact_uri(&self.uri)),
                    ("verb", &self.verb),
                    ("code", &code),
                    ("micros", &micros),
                    ("user", &user),
                    ("auditID", &self.audit_id),
                    ("source", &self.peer),
                ],
            );
        }
    }
}

impl<S> Drop for StreamRecord<S> {
    fn drop(&mut self) {
        if let Some(event) = &self.event {
            write(&self.server, event, Stage::ResponseComplete);
        }
    }
}

/// Adds what hooks have left behind to an event.
pub(crate) fn admitted(event: &mut Event, all: &[Notes]) {
    if let Some(trace) = hook_trace::trace_annotation(all) {
        event.annotate(hook_trace::TRACE_ANNOTATION, &trace);
    }
    let has_bodies = event.wants_request_object();
    for annotation in all.iter().flat_map(|notes| &notes.annotations) {
        if annotation.level == AnnotationLevel::Metadata {
            event.annotate(annotation.key.clone(), &annotation.value);
        } else if has_bodies {
            event.annotate_patch(annotation.key.clone(), &annotation.value);
        }
    }
}

/// Writes an event; `false` if that failed, which is counted and logged.
pub(crate) fn write<S>(server: &ServerState<S>, event: &Event, stage: Stage) -> bool {
    let Some(auditor) = &server.auditor else { return true };
    match auditor.record(event, stage, Timestamp::now()) {
        Ok(()) => {
            server.metrics.audit_events.inc();
            true
        }
        Err(error) => {
            server.log.error("an audit event can not be written", &[("why", &error)]);
            false
        }
    }
}
