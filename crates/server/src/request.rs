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
//! 7. Execute the verb: decode the body, admit the object, persist the `AdmittedObject` ([`execute`]). While webhooks run, the
//!    request has no seat ([`RequestSeat`]). A request that takes a processor for long takes turns ([`run_in_processor_turns`]).
//! 8. Encode the response.
//! 9. Record the end of the request (audit event, log line and metrics), then send the response.
//!
//! A request never needs a second seat: the server's own requests and its loops take none.

mod authenticate;
mod execute;
mod non_resource_paths;
mod request_body;
mod single_response_sender;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use admission_hooks::catch_panic;
use api_object::Status;
use api_resources::Verb;
use authz::RequestInfo;
use bytes::Bytes;
use flow_control::Classification;
use http::header::{EXPECT, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response};
use https_server::{Body, BoxedFuture, Connection, HttpProtocol, ResponseSender, ShutdownPhase};
use hyper::body::{Body as _, Incoming};
use jiff::Timestamp;

use self::authenticate::authenticate_and_authorize;
use self::single_response_sender::SingleResponseSender;
use crate::access_and_token_reviews;
use crate::audit_record_guard::AuditRecordGuard;
use crate::authorize::Authorized;
use crate::hook_trace;
use crate::processor_turns::{LONG_WORK_BYTES, run_in_processor_turns};
use crate::request_deadline::request_duration_max;
use crate::request_error::{RequestError, error_response};
use crate::request_record::RequestRecord;
use crate::request_seat::RequestSeat;
use crate::respond::{Reply, ResponseFormat, hold_reservation_in_body, text_response};
use crate::response_bytes::user_for_limits;
use crate::rest::{Query, RequestContext, WarningsAndHookReports};
use crate::route::{self, ResourceRouteError, Route};
use crate::server_state::ServerState;
use crate::watch_body;
use crate::write_begun_flag::WriteBegunFlag;

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

const BAD_REQUEST_TEXT: &str = "400 Bad Request";
const NOT_FOUND_TEXT: &str = "404 page not found\n";
const PANIC_TEXT: &str = "This request caused apiserver to panic. Look in the logs for details.";

/// The body of a request; `None` after it was read.
pub(crate) type UnreadBody = Option<Incoming>;

/// Handles a request. It runs in a task of its own, so that a client that disconnects does not end it: the
/// request ends by its deadline, and [`AuditRecordGuard`] records it whatever happens.
///
/// The future is on the heap from the beginning, because the caller and the runtime move it several times.
pub(crate) fn handle_request(
    server: Arc<ServerState>,
    request: Request<Incoming>,
    connection: Arc<Connection>,
    response_sender: ResponseSender,
) -> BoxedFuture {
    Box::pin(process_and_record_request(server, request, connection, response_sender))
}

async fn process_and_record_request(
    server: Arc<ServerState>,
    request: Request<Incoming>,
    connection: Arc<Connection>,
    response_sender: ResponseSender,
) {
    let (mut parts, body) = request.into_parts();
    let audit_id = server.audit_id_generator.audit_id_for_request(&parts.headers);
    let record = RequestRecord::new(&parts, connection.peer_address, audit_id);
    let mut record = AuditRecordGuard::new(&server, record);
    let mut slot = SingleResponseSender::new(response_sender, audit_id);
    let now = Timestamp::now();
    let mut body = Some(body);
    let processed = {
        let processing = pin!(process_request(
            &server,
            &mut parts,
            &mut body,
            &connection,
            &mut record,
            &mut slot,
            now
        ));
        catch_panic(processing).await
    };
    let response = match processed {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => error.into_response(&parts, &mut record, now),
        Err(message) => {
            server.metrics.request_panics.inc();
            server.log.error("a request made the server panic", &[("message", &message)]);
            record.record_panic(&server);
            text_response(500, PANIC_TEXT.to_owned())
        }
    };
    let code = response.status().as_u16();
    // HTTP/2 resets the stream. A client that expects `100 Continue` has not sent its body. Without a permit the connection
    // is closed at once.
    let is_sending = body.as_ref().is_some_and(|body| !body.is_end_stream())
        && connection.protocol == HttpProtocol::Http1
        && !parts.headers.contains_key(EXPECT);
    let discard_permit = match is_sending {
        true => server.body_discards_limit.acquire_permit(record.user_limit_key()).ok(),
        false => None,
    };
    // 9. Record the end of the request, then send the response.
    record.record_request_end(code).await;
    slot.send_response_once(|| response);
    if let (Some(body), Some(_permit)) = (body, discard_permit) {
        let bytes_max = if code == 413 { TOO_LARGE_DISCARD_BYTES_MAX } else { DISCARD_BYTES_MAX };
        https_server::discard_body(body, bytes_max).await;
    }
}

/// Processes a request up to its response, within its deadline.
async fn process_request(
    server: &Arc<ServerState>,
    parts: &mut Parts,
    body: &mut UnreadBody,
    connection: &Connection,
    record: &mut RequestRecord,
    slot: &mut SingleResponseSender,
    now: Timestamp,
) -> Result<Response<Body>, RequestError> {
    // 1. Decode the target and the deadline. A request to open a tunnel names a host and no path, and this server is no
    // proxy.
    if parts.method == Method::CONNECT {
        return Err(Status::bad_request("the method CONNECT is not supported").into());
    }
    let path_and_query = parts.uri.path_and_query().cloned();
    let target = path_and_query.as_ref().map_or("/", |own| own.as_str());
    let info = decode_request_target(parts, target)?;
    record.record_request_target(&info);
    if server.shutdown.current_phase() >= ShutdownPhase::Refusing && !is_health_path(&info.path) {
        return Err(RequestError::Retry(Status::service_unavailable("apiserver is shutting down")));
    }
    let query = Query::parse(target);
    // Watches have no deadline, but they too have to be authorized within the time of a request.
    let duration_max = request_duration_max(server, &info, &query)?;
    let duration_max = duration_max.unwrap_or(server.api_settings.request_timeout);
    let begun = tokio::time::Instant::now();
    // 2 and 3. Authenticate, classify, authorize.
    let mut report = WarningsAndHookReports::default();
    let authorized = {
        let warnings = &mut report.warnings;
        let authorizing = pin!(authenticate_and_authorize(
            server, parts, connection, record, slot, info, target, now, warnings,
        ));
        tokio::time::timeout_at(begun + duration_max, authorizing).await
    };
    let Ok(authorized) = authorized else {
        record.record_undecided_authorization(server, duration_max);
        return Err(Status::timeout().into());
    };
    let (authorized, classification) = authorized?;
    let request = AuthorizedRequest {
        server,
        request_parts: parts,
        authorization_proof: &authorized,
        flow_classification: &classification,
        query: &query,
        now,
        deadline: begun + duration_max,
        write_begun_flag: WriteBegunFlag::default(),
    };
    // 4 to 8. Route, read the body, take a seat, execute, and encode the response.
    let mut running = pin!(request.run(body, record, &mut report));
    let mut ends_at = begun + duration_max + DEADLINE_GRACE;
    loop {
        match tokio::time::timeout_at(ends_at, &mut running).await {
            Ok(result) => return result,
            // The client gets 504 because the outcome is unknown; the audit event will have the outcome.
            Err(_)
                if request.write_begun_flag.has_begun_writing()
                    && slot
                        .send_response_once(|| error_response(parts, now, &Status::timeout())) =>
            {
                ends_at += WRITE_GRACE;
            }
            Err(_) => return Err(Status::timeout().into()),
        }
    }
}

/// Decodes the target of a request from its method and URL.
fn decode_request_target(parts: &Parts, target: &str) -> Result<RequestInfo, RequestError> {
    match RequestInfo::new(parts.method.as_str(), target) {
        Ok(info) => Ok(info),
        Err(authz::RequestError::Malformed(error)) => Err(match error {
            // Go's server refuses such a target before its handlers see it.
            authz::MalformedRequestError::Method(_)
            | authz::MalformedRequestError::Version(_)
            | authz::MalformedRequestError::Target(_) => {
                RequestError::Text(400, BAD_REQUEST_TEXT.to_owned())
            }
            authz::MalformedRequestError::PathNotUtf8
            | authz::MalformedRequestError::TargetTooLong => {
                Status::bad_request(error.to_string()).into()
            }
        }),
        Err(authz::RequestError::Unclassified(error)) => {
            let text = format!(
                "Internal Server Error: {}: failed to create RequestInfo: {error}\n",
                go_compat::quote(target)
            );
            Err(RequestError::Text(500, text))
        }
    }
}

/// A request that was authorized.
pub(crate) struct AuthorizedRequest<'a> {
    server: &'a Arc<ServerState>,
    request_parts: &'a Parts,
    authorization_proof: &'a Authorized,
    flow_classification: &'a Classification,
    query: &'a Query,
    now: Timestamp,
    /// The time by which the request has to be answered.
    deadline: tokio::time::Instant,
    write_begun_flag: WriteBegunFlag,
}

/// The part of the server that serves a request.
enum RequestDestination<'r> {
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
        report: &mut WarningsAndHookReports,
    ) -> Result<Response<Body>, RequestError> {
        // 4. Route the target to a resource, and negotiate the format of the response.
        let destination = self.find_request_destination(record)?;
        let (format, has_body) = match &destination {
            RequestDestination::Path => (None, false),
            RequestDestination::AccessReview(_) => (Some(self.negotiate_plain_format()?), true),
            RequestDestination::Resource(route) => {
                let is_read = matches!(route.verb, Verb::Get | Verb::List | Verb::Watch);
                let is_connection = route.connect_options_kind().is_some();
                (Some(self.negotiate_response_format(route)?), !is_read && !is_connection)
            }
        };
        // 5. Read the body. The memory for it is reserved until the request ends.
        let (body, _body_reservation) = match has_body {
            true => self.receive_body(unread_body).await?,
            false => (Bytes::new(), None),
        };
        // 6. Take a seat.
        let seat = self.acquire_seat().await?;
        if body.len() > LONG_WORK_BYTES {
            seat.long_computation_flag.mark_long_computation();
        }
        let user = authz::user_limit_key(&self.authorization_proof.user().name);
        let serving =
            self.execute_and_build_response(destination, format, body, &seat, record, report);
        let turns = (!self.flow_classification.is_exempt()).then_some(&self.server.processor_turns);
        run_in_processor_turns(turns, user, &seat.long_computation_flag, serving).await
    }

    /// Executes the request and encodes its response.
    async fn execute_and_build_response(
        &self,
        destination: RequestDestination<'_>,
        format: Option<ResponseFormat>,
        body: Bytes,
        seat: &RequestSeat<'_>,
        record: &mut RequestRecord,
        report: &mut WarningsAndHookReports,
    ) -> Result<Response<Body>, RequestError> {
        // The request has its turn if the body is long, so few bodies are decoded at a time.
        let _decoded_reservation = self.reserve_decoded_bytes(&body)?;
        match (destination, format) {
            (RequestDestination::AccessReview(kind), Some(format)) => {
                let warnings = &mut report.warnings;
                let reply = access_and_token_reviews::answer_access_review(
                    self, kind, &body, seat, record, warnings,
                )
                .await;
                let reply = reply.unwrap_or_else(Reply::Status);
                record.record_reply(&reply);
                let mut response = format.encode_response(reply, warnings);
                let bytes = user_for_limits(self.authorization_proof.user()).and_then(|user| {
                    self.server.response_bytes_limit.count_large_response(user, &response)
                });
                hold_reservation_in_body(&mut response, bytes);
                Ok(response)
            }
            (RequestDestination::Resource(route), Some(format)) => {
                self.execute_and_encode(&route, format, body, seat, record, report).await
            }
            (_, _) => {
                let path = &self.authorization_proof.request_info().path;
                Box::pin(self.serve_non_resource_path(path)).await
            }
        }
    }

    async fn acquire_seat(&self) -> Result<RequestSeat<'_>, RequestError> {
        let (user, verb) =
            (self.authorization_proof.user(), &self.authorization_proof.request_info().verb);
        let (server, classification) = (self.server, self.flow_classification);
        let seat = RequestSeat::acquire(server, user, verb, classification, self.deadline).await;
        seat.map_err(|_| {
            server.metrics.request_terminations.with_label_values(&["429"]).inc();
            RequestError::NoSeat
        })
    }

    /// Reports whether the method is in upper case, as all methods of HTTP are. Methods are case-sensitive.
    fn has_standard_spelling(&self) -> bool {
        !self.request_parts.method.as_str().contains(|c: char| c.is_ascii_lowercase())
    }

    /// Determines which part of the server serves the request.
    fn find_request_destination(
        &self,
        record: &mut RequestRecord,
    ) -> Result<RequestDestination<'_>, RequestError> {
        if self.authorization_proof.request_info().resource.is_none() {
            return Ok(RequestDestination::Path);
        }
        if let Some(kind) = self.legacy_review_kind() {
            if route::begins_with_two_slashes(self.authorization_proof.request_info()) {
                return Err(RequestError::Text(404, NOT_FOUND_TEXT.to_owned()));
            }
            return self.access_review_destination(kind);
        }
        let route = match Route::from_authorized(self.authorization_proof) {
            Ok(route) if route.accepts_method(&self.request_parts.method) => route,
            Ok(_) => return Err(Status::method_not_allowed().into()),
            Err(ResourceRouteError::Text) => {
                return Err(RequestError::Text(404, NOT_FOUND_TEXT.to_owned()));
            }
            Err(ResourceRouteError::Status(status)) => return Err(status.into()),
        };
        record.record_route(&route, self.query);
        let resource = &route.resource;
        let review = access_reviews::ReviewKind::from_resource(
            &resource.group,
            &resource.version,
            &resource.plural,
        );
        match review {
            Some(kind) => self.access_review_destination(kind),
            None => Ok(RequestDestination::Resource(route)),
        }
    }

    fn access_review_destination(
        &self,
        kind: access_reviews::ReviewKind,
    ) -> Result<RequestDestination<'_>, RequestError> {
        match self.authorization_proof.verb() == Some(Verb::Create) {
            true => Ok(RequestDestination::AccessReview(kind)),
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
        report: &mut WarningsAndHookReports,
    ) -> Result<Response<Body>, RequestError> {
        // 7. Execute the verb: decode the body, admit, persist.
        let (query, deadline) = (self.query, self.deadline);
        let write_begun_flag = &self.write_begun_flag;
        let ctx = RequestContext {
            seat: Some(seat),
            ..RequestContext::new(self.server, route, query, self.now, deadline, write_begun_flag)
        };
        let reply = self.execute(&ctx, route, body, record, report).await;
        // 8. Encode the response.
        let headers = self.report_hooks_and_build_headers(record, report).await;
        match reply {
            Ok(Reply::Watch { watcher }) => {
                Ok(watch_body::respond_with_watch(self.server, *watcher, format, record))
            }
            reply => {
                let reply = reply.unwrap_or_else(Reply::Status);
                record.record_reply(&reply);
                if format.compresses_encoded_json(&reply) {
                    seat.long_computation_flag.begin_long_computation().await;
                }
                if route.connect_options_kind().is_some() {
                    record.record_response_started(self.server);
                }
                let mut response = format.encode_response(reply, &report.warnings);
                for (name, value) in headers {
                    response.headers_mut().insert(name, value);
                }
                ctx.count_response_bytes(&mut response)?;
                Ok(response)
            }
        }
    }

    /// Reports the hooks of a request to the audit log and to the client, and returns the headers of the
    /// response.
    async fn report_hooks_and_build_headers(
        &self,
        record: &mut RequestRecord,
        report: &mut WarningsAndHookReports,
    ) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = Vec::new();
        if let Some(revision) = report.admission_config_revision {
            headers.push((hook_trace::REVISION_HEADER, revision.as_u64().into()));
        }
        if hook_trace::is_hook_trace_requested(&self.request_parts.headers)
            && Box::pin(hook_trace::may_see_hook_trace(self.authorization_proof)).await
            && let Some(value) = hook_trace::hook_trace_header_value(&report.hook_reports)
        {
            headers.push((hook_trace::TRACE_HEADER, value));
        }
        record.record_hook_reports(&report.hook_reports);
        let hook_warnings = report.hook_reports.drain(..).flat_map(|own| own.warnings);
        report.warnings.extend(hook_warnings);
        headers
    }

    /// The first proposal of access reviews posts them to the core group, in versions that no resource has.
    fn legacy_review_kind(&self) -> Option<access_reviews::ReviewKind> {
        let info = self.authorization_proof.target_resource()?;
        let kind = access_reviews::ReviewKind::from_resource(
            &info.api_group,
            &info.api_version,
            &info.resource,
        )?;
        let is_whole = info.subresource.is_empty() && info.path_after_resource.is_none();
        (kind == access_reviews::ReviewKind::LegacyResourceAccessReview && is_whole).then_some(kind)
    }

    pub(crate) fn authorization_proof(&self) -> &Authorized {
        self.authorization_proof
    }

    pub(crate) fn query(&self) -> &Query {
        self.query
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }
}

/// Health checks are served even while the server stops.
fn is_health_path(path: &str) -> bool {
    matches!(path.split('/').nth(1), Some("healthz" | "livez" | "readyz"))
}
