//! The record of a request while it is processed, for the log, the metrics and the audit log.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use admission_hooks::{AnnotationLevel, SessionReport};
use api_object::{Status, Tree};
use api_resources::Resource;
use audit::{Event, EventWriteReceipt, ReceivedRequest, Stage};
use authn::{ImpersonationMode, Unauthenticated};
use authz::{Decision, RequestInfo, UnavailableCause, User};
use component_base::{AuditId, LogLevel};
use http::Method;
use http::request::Parts;
use http::uri::PathAndQuery;
use jiff::Timestamp;
use serde_json::Value;

use crate::authorize::AuthorizationRecord;
use crate::hook_trace;
use crate::metrics::{RequestMetricLabels, metric_verb};
use crate::request_error::RequestError;
use crate::respond::Reply;
use crate::rest::Query;
use crate::route::Route;
use crate::server_state::ServerState;

/// The audit annotation with the authorization webhooks that were skipped because a match condition is false.
const WEBHOOK_SKIPPED: &str = "authorization.k8s.io/webhook-skipped";
/// The audit annotation with the authorization webhooks whose failure was ignored, and how they failed.
const FAILED_OPEN_BY: &str = "authorization.portcullis.io/failed-open-by";

/// The record of one request.
pub(crate) struct RequestRecord {
    method: Method,
    uri: Option<PathAndQuery>,
    client_address: SocketAddr,
    audit_id: AuditId,
    verb: Cow<'static, str>,
    user: Option<Arc<User>>,
    route_metric_labels: Option<RouteMetricLabels>,
    /// `None` if the audit policy leaves the request out.
    audit_event: Option<Box<Event>>,
}

/// The metric labels of a request that was routed to a resource.
struct RouteMetricLabels {
    resource: Arc<Resource>,
    subresource: String,
    scope_label: &'static str,
    is_dry_run: bool,
}

/// The record of a stream after its response has begun. Dropping it records the end of the stream, however
/// it ended.
pub(crate) struct WatchStreamRecord {
    server: Arc<ServerState>,
    audit_event: Option<Box<Event>>,
}

impl RequestRecord {
    pub(crate) fn new(parts: &Parts, peer: SocketAddr, audit_id: AuditId) -> Self {
        Self {
            method: parts.method.clone(),
            uri: parts.uri.path_and_query().cloned(),
            client_address: peer,
            audit_id,
            verb: Cow::Borrowed(""),
            user: None,
            route_metric_labels: None,
            audit_event: None,
        }
    }

    /// The user name that limits count the request under. All unauthenticated requests share one name.
    pub(crate) fn user_limit_key(&self) -> &str {
        self.user.as_ref().map_or("system:anonymous", |user| authz::user_limit_key(&user.name))
    }

    fn uri(&self) -> &str {
        self.uri.as_ref().map_or("/", PathAndQuery::as_str)
    }

    /// Records the target of the request.
    pub(crate) fn record_request_target(&mut self, info: &RequestInfo) {
        self.verb = info.verb.clone();
    }

    /// Records that authentication failed.
    pub(crate) fn record_unauthenticated(
        &mut self,
        server: &ServerState,
        error: &Unauthenticated,
        info: &RequestInfo,
        parts: &Parts,
        now: Timestamp,
    ) {
        server.log.info(
            "a request is not authenticated",
            &[("why", error), ("auditID", &self.audit_id), ("source", &self.client_address)],
        );
        self.begin_audit_event(server, None, info, parts, now);
        if let Some(event) = &mut self.audit_event {
            let status = serde_json::to_value(Status::unauthorized()).ok();
            event.set_response_status(401, status.as_ref());
        }
        drop(self.write_audit_event_of_stage(server, Stage::ResponseStarted));
    }

    /// Records the authenticated user, and writes the first audit event.
    ///
    /// # Errors
    /// 500 if the audit event is not written although it must be, as in Kubernetes.
    pub(crate) async fn record_user(
        &mut self,
        server: &ServerState,
        user: &Arc<User>,
        info: &RequestInfo,
        parts: &Parts,
        now: Timestamp,
    ) -> Result<(), RequestError> {
        self.user = Some(Arc::clone(user));
        self.begin_audit_event(server, Some(user), info, parts, now);
        let Some(event) = &self.audit_event else { return Ok(()) };
        let recorded =
            write_audit_event(server, event, Stage::RequestReceived).wait_until_written().await;
        recorded.map_err(|error| {
            server.metrics.audit_rejected_requests.inc();
            self.audit_event = None;
            let uri = go_compat::quote(self.uri());
            RequestError::Text(500, format!("Internal Server Error: {uri}: {error}\n"))
        })
    }

    fn begin_audit_event(
        &mut self,
        server: &ServerState,
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
            audit::source_ips(text("x-forwarded-for"), text("x-real-ip"), self.client_address.ip());
        let received = ReceivedRequest {
            audit_id: self.audit_id.as_str(),
            request_uri: self.uri(),
            attributes: info.to_attributes_for_user(user),
            source_ips: &source_ips,
            user_agent: text("user-agent"),
            at: now,
        };
        self.audit_event = auditor.begin_event(&received).map(Box::new);
    }

    /// Records the impersonated user.
    pub(crate) fn record_impersonation(&mut self, user: &Arc<User>, mode: ImpersonationMode) {
        self.user = Some(Arc::clone(user));
        if let Some(event) = &mut self.audit_event {
            event.set_impersonated_user(user, if mode.is_constrained() { mode.verb() } else { "" });
        }
    }

    /// Records the decision of the authorizer chain.
    pub(crate) fn record_authorization_decision(
        &mut self,
        server: &ServerState,
        record: &AuthorizationRecord,
    ) {
        server
            .authorization_metrics
            .record_chain_decision(&record.authorizer_decision, record.authorization_duration);
        if let Some(event) = &mut self.audit_event {
            event.add_decision_annotations(&record.authorizer_decision);
            if let Some(names) = &record.skipped_authorizer_webhooks {
                event.add_annotation(WEBHOOK_SKIPPED, names);
            }
            if let Some(causes) = &record.failed_open_authorizer_webhooks {
                event.add_annotation(FAILED_OPEN_BY, causes);
            }
        }
    }

    /// Records that the chain did not decide in time.
    pub(crate) fn record_undecided_authorization(
        &mut self,
        server: &ServerState,
        waited: Duration,
    ) {
        let late = Decision::authorizer_unavailable(UnavailableCause::DeadlineExceeded);
        server.authorization_metrics.record_chain_decision(&late, waited);
    }

    /// Records the reports of the hooks, one for each attempt to write.
    pub(crate) fn record_hook_reports(&mut self, reports: &[SessionReport]) {
        if let Some(event) = &mut self.audit_event {
            add_hook_reports_to_audit_event(event, reports);
        }
    }

    /// Records the resource of the request.
    pub(crate) fn record_route(&mut self, route: &Route<'_>, query: &Query) {
        let scope = match (&route.name, &route.namespace) {
            (Some(_), _) => "resource",
            (None, Some(_)) => "namespace",
            (None, None) => "cluster",
        };
        self.route_metric_labels = Some(RouteMetricLabels {
            resource: Arc::clone(&route.resource),
            subresource: route.subresource.unwrap_or_default().to_owned(),
            scope_label: scope,
            is_dry_run: query.get("dryRun").is_some_and(|own| !own.is_empty()),
        });
    }

    /// Whether the audit event contains request bodies.
    pub(crate) fn audits_request_objects(&self) -> bool {
        self.audit_event.as_ref().is_some_and(|event| event.records_request_object())
    }

    /// Records the object in the request body.
    pub(crate) fn record_request_object(&mut self, tree: &Tree) {
        if let Some(event) = &mut self.audit_event {
            event.set_request_object(&Value::Object(tree.clone()));
        }
    }

    /// Records the patch in the request body.
    pub(crate) fn record_request_patch(&mut self, bytes: &[u8]) {
        if let Some(event) = &mut self.audit_event
            && event.records_request_object()
            && let Ok(patch) = codec::parse_json(bytes)
        {
            event.set_request_patch(&patch.value);
        }
    }

    /// Records the error of the request.
    pub(crate) fn record_error(&mut self, status: &Status) {
        if let Some(event) = &mut self.audit_event {
            let value = serde_json::to_value(status).ok();
            event.set_response_status(status.code, value.as_ref());
            if let Some(value) = &value {
                event.set_response_object(value);
            }
        }
    }

    /// Records the reply of the request.
    pub(crate) fn record_reply(&mut self, reply: &Reply) {
        if let Reply::Status(status) = reply {
            return self.record_error(status);
        }
        let Some(event) = &mut self.audit_event else { return };
        let (code, object) = match reply {
            Reply::Object { code, tree, .. } | Reply::Tree { code, tree } => {
                let is_wanted = event.records_response_object();
                (*code, is_wanted.then(|| Value::Object(tree.clone())))
            }
            Reply::Json { code, json } => {
                let is_wanted = event.records_response_object();
                (
                    *code,
                    is_wanted.then(|| codec::parse_json(json).ok().map(|own| own.value)).flatten(),
                )
            }
            Reply::List { page, .. } => {
                let is_wanted = event.records_response_object();
                let items = || {
                    let parse = |item: &store::Item| {
                        codec::decode_stored_object(&item.entry.value).ok().map(Value::Object)
                    };
                    let items: Vec<Value> = page.items.iter().filter_map(parse).collect();
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

    /// Records that a stream begins; dropping the returned value records its end.
    pub(crate) fn record_watch_stream_begin(
        &mut self,
        server: &Arc<ServerState>,
    ) -> WatchStreamRecord {
        if let Some(event) = &mut self.audit_event {
            event.set_response_status(200, None);
        }
        drop(self.write_audit_event_of_stage(server, Stage::ResponseStarted));
        WatchStreamRecord { server: Arc::clone(server), audit_event: self.audit_event.take() }
    }

    /// Records that the response to a request that could become a stream begins. Audit logs of Kubernetes have
    /// this stage for all such requests, whether they succeed or not.
    pub(crate) fn record_response_started(&mut self, server: &ServerState) {
        drop(self.write_audit_event_of_stage(server, Stage::ResponseStarted));
    }

    /// Records that the request caused a panic.
    pub(crate) fn record_panic(&mut self, server: &ServerState) {
        if let Some(event) = &mut self.audit_event {
            event.set_response_status(500, None);
        }
        drop(self.write_audit_event_of_stage(server, Stage::Panic));
        self.audit_event = None;
    }

    fn write_audit_event_of_stage(&self, server: &ServerState, stage: Stage) -> EventWriteReceipt {
        let event = self.audit_event.as_ref();
        event.map(|event| write_audit_event(server, event, stage)).unwrap_or_default()
    }

    /// Records the end of the request: the last audit event, the metrics and the log line. The caller waits for the
    /// receipt before it sends the response.
    pub(crate) fn record_request_end(
        &mut self,
        server: &ServerState,
        code: u16,
        took: Duration,
    ) -> EventWriteReceipt {
        if let Some(event) = &mut self.audit_event
            && !event.has_response_status()
        {
            event.set_response_status(code, None);
        }
        let receipt = match self.user {
            Some(_) => self.write_audit_event_of_stage(server, Stage::ResponseComplete),
            None => EventWriteReceipt::default(),
        };
        let is_connection = |own: &RouteMetricLabels| {
            let part = own.resource.find_subresource(&own.subresource);
            part.is_some_and(|part| part.connect_options_kind().is_some())
        };
        let verb = match &self.route_metric_labels {
            Some(own) if is_connection(own) => "CONNECT",
            Some(_) | None => metric_verb(&self.verb, self.method.as_str()),
        };
        let labels = match &self.route_metric_labels {
            None => RequestMetricLabels { verb, ..RequestMetricLabels::default() },
            Some(own) => RequestMetricLabels {
                verb,
                dry_run_label: if own.is_dry_run { "All" } else { "" },
                group: &own.resource.group,
                version: &own.resource.version,
                resource: &own.resource.plural,
                subresource: &own.subresource,
                scope_label: own.scope_label,
            },
        };
        server.metrics.count_request(&labels, code, took);
        if server.log.least_severe_level >= LogLevel::Info {
            let user = self.user.as_ref().map_or("", |user| user.name.as_str());
            let micros = took.as_micros();
            server.log.info(
                "request",
                &[
                    ("method", &self.method),
                    ("uri", &audit::redact_uri(self.uri())),
                    ("verb", &self.verb),
                    ("code", &code),
                    ("micros", &micros),
                    ("user", &user),
                    ("auditID", &self.audit_id),
                    ("source", &self.client_address),
                ],
            );
        }
        receipt
    }
}

impl Drop for WatchStreamRecord {
    fn drop(&mut self) {
        if let Some(event) = &self.audit_event {
            drop(write_audit_event(&self.server, event, Stage::ResponseComplete));
        }
    }
}

/// Adds the reports of hooks to an audit event.
pub(crate) fn add_hook_reports_to_audit_event(event: &mut Event, reports: &[SessionReport]) {
    if let Some(trace) = hook_trace::hook_trace_annotation(reports) {
        event.add_annotation(hook_trace::TRACE_ANNOTATION, &trace);
    }
    let has_bodies = event.records_request_object();
    for annotation in reports.iter().flat_map(|report| &report.annotations) {
        if annotation.annotation_level == AnnotationLevel::Metadata {
            event.add_annotation(annotation.key.clone(), &annotation.value);
        } else if has_bodies {
            event.add_patch_annotation(annotation.key.clone(), &annotation.value);
        }
    }
}

/// Passes an audit event to the audit backends. A caller that cannot wait drops the receipt.
pub(crate) fn write_audit_event(
    server: &ServerState,
    event: &Event,
    stage: Stage,
) -> EventWriteReceipt {
    let auditor = server.auditor.as_ref();
    auditor.map(|own| own.record_event(event, stage, Timestamp::now())).unwrap_or_default()
}
