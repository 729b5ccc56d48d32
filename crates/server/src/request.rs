//! The life of a request, from its first byte to its last:
//!
//! 1. Decode the target ([`RequestInfo`]) and the deadline.
//! 2. Authenticate the user, then impersonate.
//! 3. Classify by flow schema, and authorize. From here on there is an [`Authorized`], and the rest executes nothing else.
//!    Calls to authorization webhooks count against the user's part of the calls of each webhook.
//! 4. Route the target to a resource, and negotiate the format of the response.
//! 5. Reserve memory for the body, and read it within limits of time and rate. A request without a seat has read its body, so
//!    slow bodies occupy no seats. A client without permission gets its response before anything of its body is read.
//! 6. Take a seat of the priority level, or wait for one in the queue of the flow.
//! 7. Execute the verb: decode the body, admit the object, persist the `Admitted` ([`execute`]). While webhooks run, the
//!    request has no seat ([`RequestSeat`]).
//! 8. Encode the response.
//! 9. Record the end of the request (audit event, log line and metrics), then send the response.
//!
//! A request never needs a second seat: the server's own requests and its loops take none.

mod execute;
mod non_resource_paths;
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
use bytes::Bytes;
use flow_control::{Classification, RequestDigest, RequestTarget};
use http::header::{EXPECT, HeaderMap};
use http::request::Parts;
use http::{Request, Response};
use https_server::{Body, Connection, HttpProtocol, ResponseSender, ShutdownPhase};
use hyper::body::{Body as _, Incoming};
use jiff::Timestamp;

use self::response_slot::ResponseSlot;
use crate::audit_record_guard::AuditRecordGuard;
use crate::authorize::{Authorized, ChainAuthorizer, authorize};
use crate::error_status::IntoStatus;
use crate::hook_trace;
use crate::request_deadline::request_duration_max;
use crate::request_error::{RequestError, error_response};
use crate::request_record::RequestRecord;
use crate::request_seat::RequestSeat;
use crate::respond::{Reply, ResponseFormat, hold_in_body, text_response};
use crate::response_bytes::limited_user;
use crate::rest::{Query, RequestContext, RequestReport};
use crate::review;
use crate::route::{Route, RouteError};
use crate::server_state::ServerState;
use crate::watch_body;
use crate::write_progress::WriteProgress;

/// The limit on the bytes of a request body.
pub(crate) const BODY_BYTES_MAX: usize = 3_145_728;

/// How much of a body the server reads and drops after a response that does not need it, as in Go's server.
const DISCARD_BYTES_MAX: u64 = 256 << 10;

/// The same for a body that is too large. Its sender may write, and clients that send everything before they read shall
/// learn what the limit is.
const TOO_LARGE_DISCARD_BYTES_MAX: u64 = 8 << 20;

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
    // 9. Record the end of the request, then send the response.
    let code = response.status().as_u16();
    record.record_end(code).await;
    slot.respond(|| response);
    let unread_body = body.filter(|body| !body.is_end_stream());
    // HTTP/2 resets the stream. A client that expects `100 Continue` has not sent its body.
    if let Some(body) = unread_body
        && connection.protocol == HttpProtocol::Http1
        && !parts.headers.contains_key(EXPECT)
    {
        let bytes_max = if code == 413 { TOO_LARGE_DISCARD_BYTES_MAX } else { DISCARD_BYTES_MAX };
        https_server::discard_body(body, bytes_max).await;
    }
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
    // 2 and 3. Authenticate, classify, authorize.
    let mut report = RequestReport::default();
    let warnings = &mut report.warnings;
    let authorizing = authenticate_and_authorize(
        server, parts, connection, record, slot, info, &target, now, warnings,
    );
    let authorized = tokio::time::timeout_at(begun + duration_max, authorizing).await;
    let Ok(authorized) = authorized else {
        record.record_undecided(server, duration_max);
        return Err(Status::timeout().into());
    };
    let (authorized, classification) = authorized?;
    let request = AuthorizedRequest {
        server,
        parts,
        authorized: &authorized,
        classification: &classification,
        query: &query,
        now,
        deadline: begun + duration_max,
        write_progress: WriteProgress::default(),
    };
    // 4 to 8. Route, read the body, take a seat, execute, and encode the response.
    let mut running = std::pin::pin!(request.run(body, record, &mut report));
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

/// Authenticates the user, classifies the request, and authorizes it.
async fn authenticate_and_authorize(
    server: &Arc<ServerState>,
    parts: &mut Parts,
    connection: &Connection<CertificateIdentity>,
    record: &mut RequestRecord,
    slot: &mut ResponseSlot,
    info: RequestInfo,
    target: &str,
    now: Timestamp,
    warnings: &mut Vec<String>,
) -> Result<(Authorized, Classification), RequestError> {
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
    let is_anonymous = authenticated.is_anonymous();
    if is_anonymous {
        connection.close();
    }
    warnings.extend(authenticated.warnings.iter().map(|&own| own.to_owned()));
    let user = Arc::new(authenticated.user);
    record.record_user(server, &user, &info, parts, now).await?;
    if !is_anonymous {
        count_connection(server, connection, &user)?;
    }
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
    // 3. Classify by flow schema, and authorize.
    let classification = classify(server, &info, &user)?;
    slot.set_classification(classification.clone());
    let (authorized, decision) = authorize(cluster, Arc::clone(&user), info).await;
    record.record_decision(server, &decision);
    match authorized {
        Ok(authorized) => Ok((authorized, classification)),
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

/// Counts the connection for the user who has authenticated, and no longer for its address.
fn count_connection(
    server: &ServerState,
    connection: &Connection<CertificateIdentity>,
    user: &User,
) -> Result<(), Status> {
    let is_administrator = user.is_in_group("system:masters");
    let limit_key = authz::user_limit_key(&user.name);
    connection.authenticate_as(limit_key, is_administrator).map_err(|_| {
        connection.close();
        server.metrics.request_terminations.with_label_values(&["429"]).inc();
        Status::too_many_requests("too many connections with requests in progress", 1)
    })
}

/// A request that was authorized.
pub(crate) struct AuthorizedRequest<'a> {
    server: &'a Arc<ServerState>,
    parts: &'a Parts,
    authorized: &'a Authorized,
    classification: &'a Classification,
    query: &'a Query,
    now: Timestamp,
    /// The time by which the request has to be answered.
    deadline: tokio::time::Instant,
    write_progress: WriteProgress,
}

/// The part of the server that serves a request.
enum Destination<'r> {
    /// A path that is no resource.
    Path,
    /// An access review, which is not stored.
    AccessReview(access_reviews::ReviewKind),
    Resource(Route<'r>),
}

impl AuthorizedRequest<'_> {
    /// Routes and executes the request, and builds its response.
    async fn run(
        &self,
        unread_body: &mut UnreadBody,
        record: &mut RequestRecord,
        report: &mut RequestReport,
    ) -> Result<Response<Body>, RequestError> {
        // 4. Route the target to a resource, and negotiate the format of the response.
        let destination = self.find_destination(record)?;
        let (format, has_body) = match &destination {
            Destination::Path => (None, false),
            Destination::AccessReview(_) => (Some(self.negotiate_plain_format()?), true),
            Destination::Resource(route) => {
                let is_read = matches!(route.verb, Verb::Get | Verb::List | Verb::Watch);
                let is_connection = route.connect_options_kind().is_some();
                (Some(self.negotiate_format(route)?), !is_read && !is_connection)
            }
        };
        // 5. Read the body. The memory for it is reserved until the request ends.
        let (body, _body_reservation) = match has_body {
            true => self.receive_body(unread_body).await?,
            false => (Bytes::new(), None),
        };
        // 6. Take a seat.
        let seat = self.acquire_seat().await?;
        match (destination, format) {
            (Destination::AccessReview(kind), Some(format)) => {
                let warnings = &mut report.warnings;
                let reply = review::answer_access_review(
                    self.server,
                    self,
                    kind,
                    &body,
                    &seat,
                    record,
                    warnings,
                )
                .await;
                let reply = reply.unwrap_or_else(Reply::Status);
                record.record_reply(&reply);
                let mut response = format.encode_response(reply, warnings);
                let bytes = limited_user(self.authorized.user())
                    .and_then(|user| self.server.response_bytes.count_large(user, &response));
                hold_in_body(&mut response, bytes);
                Ok(response)
            }
            (Destination::Resource(route), Some(format)) => {
                self.execute_and_encode(&route, format, body, &seat, record, report).await
            }
            (_, _) => self.serve_non_resource_path(&self.authorized.request_info().path).await,
        }
    }

    async fn acquire_seat(&self) -> Result<RequestSeat<'_>, RequestError> {
        let (user, verb) = (self.authorized.user(), &self.authorized.request_info().verb);
        let (server, classification) = (self.server, self.classification);
        let seat = RequestSeat::acquire(server, user, verb, classification, self.deadline).await;
        seat.map_err(|_| {
            server.metrics.request_terminations.with_label_values(&["429"]).inc();
            RequestError::NoSeat
        })
    }

    /// Finds what serves the request.
    fn find_destination(
        &self,
        record: &mut RequestRecord,
    ) -> Result<Destination<'_>, RequestError> {
        if self.authorized.request_info().resource.is_none() {
            return Ok(Destination::Path);
        }
        if let Some(kind) = self.legacy_review_kind() {
            return self.review_destination(kind);
        }
        let route = match Route::from_authorized(self.authorized) {
            Ok(route) if route.takes_method(&self.parts.method) => route,
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
        match review {
            Some(kind) => self.review_destination(kind),
            None => Ok(Destination::Resource(route)),
        }
    }

    fn review_destination(
        &self,
        kind: access_reviews::ReviewKind,
    ) -> Result<Destination<'_>, RequestError> {
        match self.authorized.verb() == Some(Verb::Create) {
            true => Ok(Destination::AccessReview(kind)),
            false => Err(Status::method_not_allowed().into()),
        }
    }

    async fn execute_and_encode(
        &self,
        route: &Route<'_>,
        format: ResponseFormat,
        body: Bytes,
        seat: &RequestSeat<'_>,
        record: &mut RequestRecord,
        report: &mut RequestReport,
    ) -> Result<Response<Body>, RequestError> {
        // 7. Execute the verb: decode the body, admit, persist.
        let (query, deadline) = (self.query, self.deadline);
        let write_progress = &self.write_progress;
        let ctx = RequestContext {
            seat: Some(seat),
            ..RequestContext::new(self.server, route, query, self.now, deadline, write_progress)
        };
        let reply = self.execute(&ctx, route, body, record, report).await;
        // 8. Encode the response.
        let headers = self.report_admission(record, report).await;
        match reply {
            Ok(Reply::Watch { watcher }) => {
                Ok(watch_body::respond_with_watch(self.server, *watcher, format, record))
            }
            reply => {
                let reply = reply.unwrap_or_else(Reply::Status);
                record.record_reply(&reply);
                if route.connect_options_kind().is_some() {
                    record.record_response_started(self.server);
                }
                let mut response = format.encode_response(reply, &report.warnings);
                response.headers_mut().extend(headers);
                ctx.count_response_bytes(&mut response)?;
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

/// The flow schema, priority level and flow of a request.
fn classify(
    server: &ServerState,
    info: &RequestInfo,
    user: &User,
) -> Result<Classification, RequestError> {
    let target = match &info.resource {
        None => RequestTarget::Path(&info.path),
        Some(resource) => RequestTarget::Resource {
            group: &resource.api_group,
            resource: &resource.resource,
            subresource: &resource.subresource,
            namespace: &resource.namespace,
        },
    };
    let request =
        RequestDigest { user: &user.name, groups: &user.groups, verb: &info.verb, target };
    // INVARIANT: the mandatory schema `catch-all` is always in force and matches every request.
    server.flow_controller.classify(&request).ok_or_else(|| {
        RequestError::Retry(Status::unavailable("no flow schema matches the request"))
    })
}

/// Health checks are served even while the server stops.
fn is_health_path(path: &str) -> bool {
    matches!(path.split('/').nth(1), Some("healthz" | "livez" | "readyz"))
}
