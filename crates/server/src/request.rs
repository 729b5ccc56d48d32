//! The life of a request, from its first byte to its last:
//!
//! 1. Decode the target ([`RequestInfo`]) and the deadline.
//! 2. Authenticate the user, then impersonate.
//! 3. Acquire an in-flight permit.
//! 4. Authorize. From here on there is an [`Authorized`], and the rest executes nothing else.
//! 5. Route the target to a resource, and negotiate the format of the response.
//! 6. Execute the verb: decode the body, admit the object, persist the `Admitted` ([`execute`]).
//! 7. Encode the response.
//! 8. Record the end of the request (audit event, log line and metrics), then send the response.

mod execute;
mod request_body;
mod response_slot;

use std::sync::Arc;
use std::time::Duration;

use access_reviews::AccessError;
use admission_hooks::catch_panic;
use api_object::Status;
use api_resources::Verb;
use authn::CertificateIdentity;
use authz::{RequestInfo, User};
use http::header::HeaderMap;
use http::request::Parts;
use http::{Request, Response};
use https_server::{Body, Connection, InFlightPermit, RequestKind, ResponseSender, ShutdownPhase};
use hyper::body::{Body as _, Incoming};
use jiff::Timestamp;

use self::response_slot::ResponseSlot;
use crate::admission::ADMISSION_STATUS_PATH;
use crate::audit_record_guard::AuditRecordGuard;
use crate::authorize::{Authorized, ChainAuthorizer, authorize};
use crate::discovery;
use crate::error_status::IntoStatus;
use crate::health;
use crate::hook_trace;
use crate::request_deadline::request_duration_max;
use crate::request_error::{RequestError, error_response};
use crate::request_record::RequestRecord;
use crate::respond::{PLAIN_JSON, Reply, text_response};
use crate::rest::{Query, RequestContext, RequestReport};
use crate::review;
use crate::route::{self, Route, RouteError};
use crate::server_state::ServerState;
use crate::undecodable_objects;
use crate::watch_body;
use crate::write_progress::WriteProgress;

/// The limit on the bytes of a request body.
pub(crate) const BODY_BYTES_MAX: usize = 3_145_728;

/// The path of the status of the authorizers.
const AUTHORIZATION_STATUS_PATH: &str = "/portcullis/authorization/status";

/// How long after its deadline a request is ended, so that steps that end at the deadline, such as hook
/// calls, can still report how they ended.
const DEADLINE_GRACE: Duration = Duration::from_millis(250);

/// A request that has begun to write runs this much longer, so that it learns the outcome of the write and
/// completes the steps that belong to it. A store responds within ten seconds, if only that it does not
/// know the outcome.
const WRITE_GRACE: Duration = Duration::from_secs(15);

const NOT_FOUND_TEXT: &str = "404 page not found\n";
const PANIC_TEXT: &str = "This request caused apiserver to panic. Look in the logs for details.";

/// The body of a request; `None` after a step has read it.
pub(crate) type UnreadBody = Option<Incoming>;

/// Handles a request. It runs in a task of its own, so that a client that disconnects does not end it: the
/// request ends by its deadline, and [`AuditRecordGuard`] records it whatever happens.
pub(crate) async fn handle_request(
    server: Arc<ServerState>,
    request: Request<Incoming>,
    connection: Arc<Connection<CertificateIdentity>>,
    response_sender: ResponseSender,
) {
    let (mut parts, body) = request.into_parts();
    let audit_id = server.audit_id_generator.id_for_request(&parts.headers);
    let record = RequestRecord::new(&parts, connection.peer, audit_id.clone());
    let mut record = AuditRecordGuard::new(&server, record);
    let mut slot = ResponseSlot::new(response_sender, audit_id);
    let now = Timestamp::now();
    let mut body = Some(body);
    let processing =
        process_request(&server, &mut parts, &mut body, &connection, &mut record, &mut slot, now);
    let response = match catch_panic(Box::pin(processing)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => error.into_response(&parts, &mut record, now),
        Err(message) => {
            server.metrics.panics.inc();
            server.log.error("a request made the server panic", &[("message", &message)]);
            record.record_panic(&server);
            text_response(500, PANIC_TEXT.to_owned())
        }
    };
    if let Some(body) = body.filter(|body| !body.is_end_stream()) {
        // A client that is still sending would not read the response.
        https_server::discard_body(body).await;
    }
    // 8. Record the end of the request, then send the response.
    record.record_end(response.status().as_u16());
    slot.respond(|| response);
}

/// Processes a request up to its response, within its deadline.
async fn process_request(
    server: &Arc<ServerState>,
    parts: &mut Parts,
    body: &mut UnreadBody,
    connection: &Connection<CertificateIdentity>,
    record: &mut RequestRecord,
    slot: &mut ResponseSlot,
    now: Timestamp,
) -> Result<Response<Body>, RequestError> {
    // 1. Decode the target and the deadline.
    let target = parts.uri.path_and_query().map_or("/", |own| own.as_str()).to_owned();
    let info = decode_target(parts, &target)?;
    record.record_target(&info);
    if server.shutdown.phase() >= ShutdownPhase::Refusing && !is_health_path(&info.path) {
        return Err(RequestError::Retry(Status::unavailable("apiserver is shutting down")));
    }
    let query = Query::parse(&target);
    // Watches have no deadline, but they too have to be authorized within the time of a request.
    let duration_max = request_duration_max(server, &info, &query)?;
    let duration_max = duration_max.unwrap_or(server.api_settings.request_timeout);
    let begun = tokio::time::Instant::now();
    // 2 to 4. Authenticate, acquire a permit, authorize.
    let mut report = RequestReport::default();
    let warnings = &mut report.warnings;
    let authorizing =
        authenticate_and_authorize(server, parts, connection, record, info, &target, now, warnings);
    let authorized = tokio::time::timeout_at(begun + duration_max, authorizing).await;
    let Ok(authorized) = authorized else {
        record.record_undecided(server, duration_max);
        return Err(Status::timeout().into());
    };
    let (authorized, permit) = authorized?;
    let request = AuthorizedRequest {
        server,
        parts,
        authorized: &authorized,
        query: &query,
        now,
        deadline: begun + duration_max,
        write_progress: WriteProgress::default(),
    };
    // 5 to 7. Route, execute and encode the response.
    let mut running = std::pin::pin!(request.run(permit, body, record, &mut report));
    let mut ends_at = begun + duration_max + DEADLINE_GRACE;
    loop {
        match tokio::time::timeout_at(ends_at, &mut running).await {
            Ok(result) => return result,
            // The client gets 504 because the outcome is unknown; the audit event will have the outcome.
            Err(_)
                if request.write_progress.has_begun_writing()
                    && slot.respond(|| error_response(parts, now, &Status::timeout())) =>
            {
                ends_at += WRITE_GRACE;
            }
            Err(_) => return Err(Status::timeout().into()),
        }
    }
}

/// Decodes the target of a request from its method and URL.
fn decode_target(parts: &Parts, target: &str) -> Result<RequestInfo, RequestError> {
    match RequestInfo::new(parts.method.as_str(), target) {
        Ok(info) => Ok(info),
        Err(authz::RequestError::Malformed(error)) => {
            Err(Status::bad_request(error.to_string()).into())
        }
        Err(authz::RequestError::Unclassified(error)) => {
            let text = format!("Internal Server Error: {}: {error}\n", go_compat::quote(target));
            Err(RequestError::Text(500, text))
        }
    }
}

/// Authenticates the user, acquires an in-flight permit, and authorizes the request.
async fn authenticate_and_authorize(
    server: &Arc<ServerState>,
    parts: &mut Parts,
    connection: &Connection<CertificateIdentity>,
    record: &mut RequestRecord,
    info: RequestInfo,
    target: &str,
    now: Timestamp,
    warnings: &mut Vec<String>,
) -> Result<(Authorized, Option<InFlightPermit>), RequestError> {
    // 2. Authenticate the user, then impersonate.
    let certificates = connection.get_or_compute_identity(
        |known| server.authenticator.uses_current_authorities(known),
        |presented| server.authenticator.identify_certificates(presented, now),
    );
    let request = authn::Request { headers: &parts.headers, path: &info.path };
    let authenticated =
        server.authenticator.authenticate(request, &certificates, &**server, now).await;
    let authenticated = match authenticated {
        Ok(authenticated) => authenticated,
        Err(error) => {
            server.metrics.authentications.with_label_values(&["failure"]).inc();
            connection.close();
            record.record_unauthenticated(server, &error, &info, parts, now);
            return Err(Status::unauthorized().into());
        }
    };
    server.metrics.authentication_successes.inc();
    if authenticated.is_anonymous() {
        connection.close();
    }
    warnings.extend(authenticated.warnings.iter().map(|&own| own.to_owned()));
    let user = Arc::new(authenticated.user);
    record.record_user(server, &user, &info, parts, now)?;
    let cluster = server.snapshot_cache.snapshot();
    let impersonated = {
        let attributes = info.attributes(Some(&user));
        let chain = ChainAuthorizer(Arc::clone(&cluster.chain));
        let impersonated = server.impersonator.impersonate(&parts.headers, &attributes, &chain);
        impersonated.await.map_err(IntoStatus::into_status)?
    };
    let user = match impersonated {
        None => user,
        Some(impersonated) => {
            let user = Arc::new(impersonated.user);
            record.record_impersonation(&user, impersonated.mode);
            user
        }
    };
    server.authenticator.strip_credentials(&mut parts.headers);
    authn::strip_impersonation_headers(&mut parts.headers);
    // 3. Acquire an in-flight permit.
    let Some(permit) = acquire_permit(server, &info, &user) else {
        server.metrics.request_terminations.with_label_values(&["429"]).inc();
        return Err(RequestError::TooManyInFlight);
    };
    // 4. Authorize.
    let (authorized, decision) = authorize(cluster, Arc::clone(&user), info).await;
    record.record_decision(server, &decision);
    match authorized {
        Ok(authorized) => Ok((authorized, permit)),
        Err(info) => {
            let attributes = info.attributes(Some(&user));
            let checked = access_reviews::check_allowed(&attributes, target, &decision.decision);
            Err(match checked {
                Err(AccessError::EvaluationFailed(text)) => RequestError::Text(500, text),
                Err(AccessError::Forbidden(request)) => request.into_status().into(),
                Err(AccessError::Unavailable(why)) => why.into_status().into(),
                Ok(()) => Status::internal("the decision is unclear").into(),
            })
        }
    }
}

/// A request that was authorized.
pub(crate) struct AuthorizedRequest<'a> {
    server: &'a Arc<ServerState>,
    parts: &'a Parts,
    authorized: &'a Authorized,
    query: &'a Query,
    now: Timestamp,
    /// The time by which the request has to be answered.
    deadline: tokio::time::Instant,
    write_progress: WriteProgress,
}

impl AuthorizedRequest<'_> {
    /// Routes and executes the request, and builds its response. The request holds its in-flight permit until
    /// then, unless it waits for initializers.
    async fn run(
        &self,
        mut permit: Option<InFlightPermit>,
        body: &mut UnreadBody,
        record: &mut RequestRecord,
        report: &mut RequestReport,
    ) -> Result<Response<Body>, RequestError> {
        let info = self.authorized.request_info();
        if info.resource.is_none() {
            return self.serve_non_resource_path(&info.path).await;
        }
        // 5. Route the target to a resource, and negotiate the format of the response.
        if let Some(kind) = self.legacy_review_kind() {
            return self.respond_to_access_review(kind, body, record, &mut report.warnings).await;
        }
        let route = match Route::from_authorized(self.authorized) {
            Ok(route) if route::http_method(route.verb) == self.parts.method => route,
            Ok(_) => return Err(Status::method_not_allowed().into()),
            Err(RouteError::Text) => {
                return Err(RequestError::Text(404, NOT_FOUND_TEXT.to_owned()));
            }
            Err(RouteError::Status(status)) => return Err(status.into()),
        };
        record.record_route(&route, self.query);
        let resource = &route.resource;
        let review = access_reviews::ReviewKind::from_resource(
            &resource.group,
            &resource.version,
            &resource.plural,
        );
        if let Some(kind) = review {
            return self.respond_to_access_review(kind, body, record, &mut report.warnings).await;
        }
        let format = self.negotiate_format(&route)?;
        // 6. Execute the verb: decode the body, admit, persist.
        let (query, deadline) = (self.query, self.deadline);
        let write_progress = &self.write_progress;
        let ctx =
            RequestContext::new(self.server, &route, query, self.now, deadline, write_progress);
        let reply = self.execute(&ctx, &route, body, record, report, &mut permit).await;
        // 7. Encode the response.
        let headers = self.report_admission(record, report).await;
        match reply {
            Ok(Reply::Watch { watcher }) => {
                Ok(watch_body::respond_with_watch(self.server, *watcher, format, record))
            }
            reply => {
                let reply = reply.unwrap_or_else(Reply::Status);
                record.record_reply(&reply);
                let mut response = format.encode_response(reply, &report.warnings);
                response.headers_mut().extend(headers);
                Ok(response)
            }
        }
    }

    /// Reports the hooks of a request to the audit log and to the client, and returns the headers of the
    /// response.
    async fn report_admission(
        &self,
        record: &mut RequestRecord,
        report: &mut RequestReport,
    ) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(revision) = report.admission_revision {
            headers.insert(hook_trace::REVISION_HEADER, revision.number().into());
        }
        if hook_trace::should_send_trace(&self.parts.headers, self.authorized).await
            && let Some(value) = hook_trace::trace_header_value(&report.hook_reports)
        {
            headers.insert(hook_trace::TRACE_HEADER, value);
        }
        record.record_hook_reports(&report.hook_reports);
        let hook_warnings = report.hook_reports.drain(..).flat_map(|own| own.warnings);
        report.warnings.extend(hook_warnings);
        headers
    }

    /// Answers an access review, which is not stored.
    async fn respond_to_access_review(
        &self,
        kind: access_reviews::ReviewKind,
        body: &mut UnreadBody,
        record: &mut RequestRecord,
        warnings: &mut Vec<String>,
    ) -> Result<Response<Body>, RequestError> {
        if self.authorized.verb() != Some(Verb::Create) {
            return Err(Status::method_not_allowed().into());
        }
        let format = self.negotiate_plain_format()?;
        let reply = review::answer_access_review(self, kind, body, record, warnings).await;
        let reply = reply.unwrap_or_else(Reply::Status);
        record.record_reply(&reply);
        Ok(format.encode_response(reply, warnings))
    }

    /// The first proposal of access reviews posts them to the core group, in versions that no resource has.
    fn legacy_review_kind(&self) -> Option<access_reviews::ReviewKind> {
        let info = self.authorized.target()?;
        let kind = access_reviews::ReviewKind::from_resource(
            &info.api_group,
            &info.api_version,
            &info.resource,
        )?;
        let is_whole = info.subresource.is_empty() && info.path_after_resource.is_none();
        (kind == access_reviews::ReviewKind::LegacyResourceAccessReview && is_whole).then_some(kind)
    }

    /// Serves a non-resource path: health, metrics, status and discovery.
    async fn serve_non_resource_path(&self, path: &str) -> Result<Response<Body>, RequestError> {
        let is_read = matches!(self.authorized.request_info().verb.as_ref(), "get" | "head");
        if let Some(text) = health::health_response(self.server, path, self.query).await {
            return Ok(text_response(text.code, text.text));
        }
        if path == "/metrics" && is_read {
            return Ok(crate::metrics::metrics_response(self.server).await);
        }
        if matches!(path, AUTHORIZATION_STATUS_PATH | ADMISSION_STATUS_PATH) {
            if !is_read {
                return Err(Status::method_not_allowed().into());
            }
            let status = match path {
                ADMISSION_STATUS_PATH => self.server.admission_status().await,
                _ => {
                    let cluster = self.server.snapshot_cache.snapshot();
                    undecodable_objects::add_undecodable_objects(
                        (self.server.authorization_status)(),
                        &cluster,
                    )
                }
            };
            let json = serde_json::to_vec(&status).unwrap_or_default();
            let reply = Reply::Json { code: 200, json };
            return Ok(self.new_response_format(PLAIN_JSON).encode_response(reply, &[]));
        }
        let (format_request, etag) =
            (self.format_request(), self.header(&http::header::IF_NONE_MATCH));
        let registry = &self.authorized.snapshot().registry;
        let document = discovery::discovery_document(
            self.server,
            registry,
            path,
            &format_request,
            etag,
            self.query,
        )?;
        match document {
            Some(_) if !is_read => Err(Status::method_not_allowed().into()),
            // The format of a document was negotiated when it was encoded.
            Some(reply @ Reply::Document(_)) => {
                Ok(self.new_response_format(PLAIN_JSON).encode_response(reply, &[]))
            }
            Some(reply) => Ok(self.negotiate_plain_format()?.encode_response(reply, &[])),
            None if discovery::is_known_group(registry, path) => {
                Err(Status::unknown_resource().into())
            }
            None => Err(RequestError::Text(404, NOT_FOUND_TEXT.to_owned())),
        }
    }

    pub(crate) fn authorized(&self) -> &Authorized {
        self.authorized
    }

    pub(crate) fn query(&self) -> &Query {
        self.query
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }
}

/// Acquires an in-flight permit; `None` if too many requests are in flight. Watches need no permit, and
/// members of `system:masters` always get one.
fn acquire_permit(
    server: &ServerState,
    info: &RequestInfo,
    user: &User,
) -> Option<Option<InFlightPermit>> {
    let kind = match info.verb.as_ref() {
        "watch" => return Some(None),
        "get" | "list" => RequestKind::ReadOnly,
        _ => RequestKind::Mutating,
    };
    match user.is_in_group("system:masters") {
        true => Some(Some(server.in_flight.acquire_exempt(kind))),
        false => server.in_flight.try_acquire(kind).map(Some),
    }
}

/// Health checks are served even while the server stops.
fn is_health_path(path: &str) -> bool {
    matches!(path.split('/').nth(1), Some("healthz" | "livez" | "readyz"))
}
