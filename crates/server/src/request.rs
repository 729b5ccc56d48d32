//! The life of a request, from its first byte to its last:
//!
//! 1. What is asked for ([`RequestInfo`]), and until when.
//! 2. Who asks: authentication, then impersonation.
//! 3. Whether there is room.
//! 4. Whether it is allowed: from here on there is an [`Authorized`].
//! 5. Which resource it is for, in which form the client wants the answer, and what the body says.
//! 6. What is done: admission makes an `Admitted` of an object, and only that is persisted.
//! 7. The answer.
//!
//! Everything else is called from here.

mod act;
mod answer;
mod bodies;

use std::sync::Arc;
use std::time::Duration;

use api_object::Status;
use api_resources::Verb;
use authn::CertificateIdentity;
use authz::{RequestInfo, User};
use http::header::HeaderMap;
use http::request::Parts;
use http::{Request, Response};
use https_server::{Body, Connection, Phase, RequestKind, Responder};
use hyper::body::{Body as _, Incoming};
use jiff::Timestamp;
use store::Store;

use self::answer::Answer;
use crate::admit::AdmissionContext;
use crate::audit_record_guard::AuditRecordGuard;
use crate::authorize::{AskChain, authorize};
use crate::deadline::deadline;
use crate::discovery;
use crate::failure::{Failure, rendered};
use crate::gate::Authorized;
use crate::health;
use crate::panic_guard::catch_panic;
use crate::record::Record;
use crate::respond::{PLAIN, Reply, text_response};
use crate::rest::{Call, Query};
use crate::review;
use crate::route::{self, NoRoute, Route};
use crate::server_state::ServerState;
use crate::servers::ADMISSION_STATUS;
use crate::undecodable;
use crate::watch_body;
use crate::write_progress::WriteProgress;

/// The longest body of a write.
pub(crate) const BODY_BYTES_MAX: usize = 3_145_728;

/// Tells which authorizers are in use, since when, and how they fare.
const AUTHORIZATION_STATUS: &str = "/portcullis/authorization/status";

/// How much longer a request gets than its time, so that those who end with it, as hooks do, still say
/// how.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// How much longer a request lives that has begun to write: the store says what became of the write, and what
/// belongs to it is done. A store answers within ten seconds, be it that it does not know.
const WRITE_GRACE: Duration = Duration::from_secs(15);

const NOT_FOUND_TEXT: &str = "404 page not found\n";
const PANIC_TEXT: &str = "This request caused apiserver to panic. Look in the logs for details.";

/// The body of a request, until somebody reads it.
pub(crate) type Unread = Option<Incoming>;

/// Answers a request. It runs in a task of its own, so that no peer ends it by hanging up: it ends by its
/// deadline, and [`AuditRecordGuard`] records it whatever happens.
pub(crate) async fn handle<S: Store>(
    server: Arc<ServerState<S>>,
    request: Request<Incoming>,
    connection: Arc<Connection<CertificateIdentity>>,
    responder: Responder,
) {
    let (mut parts, body) = request.into_parts();
    let audit_id = server.audit_ids.for_request(&parts.headers);
    let record = Record::new(&parts, connection.peer, audit_id.clone());
    let mut record = AuditRecordGuard::new(&server, record);
    let mut answer = Answer::new(responder, audit_id);
    let now = Timestamp::now();
    let mut body = Some(body);
    let life = live(&server, &mut parts, &mut body, &connection, &mut record, &mut answer, now);
    let response = match catch_panic(life).await {
        Ok(Ok(response)) => response,
        Ok(Err(failure)) => failure.response(&parts, &mut record, now),
        Err(message) => {
            server.metrics.panics.inc();
            server.log.error("a request made the server panic", &[("message", &message)]);
            record.panicked(&server);
            text_response(500, PANIC_TEXT.to_owned())
        }
    };
    if let Some(body) = body.filter(|body| !body.is_end_stream()) {
        // A client that is still sending would not hear the answer.
        https_server::discard(body).await;
    }
    record.finish(response.status().as_u16());
    answer.give(|| response);
}

/// The first half: everything that is the same for all requests.
async fn live<S: Store>(
    server: &Arc<ServerState<S>>,
    parts: &mut Parts,
    body: &mut Unread,
    connection: &Connection<CertificateIdentity>,
    record: &mut Record,
    answer: &mut Answer,
    now: Timestamp,
) -> Result<Response<Body>, Failure> {
    let target = parts.uri.path_and_query().map_or("/", |own| own.as_str()).to_owned();
    // 1. What is asked for.
    let info = match RequestInfo::new(parts.method.as_str(), &target) {
        Ok(info) => info,
        Err(authz::RequestError::Malformed(error)) => {
            return Err(Status::bad_request(error.to_string()).into());
        }
        Err(authz::RequestError::Unclassified(error)) => {
            let text = format!("Internal Server Error: {}: {error}\n", go_compat::quote(&target));
            return Err(Failure::Text(500, text));
        }
    };
    record.classify(&info);
    if server.shutdown.phase() >= Phase::Refusing && !is_exempt_path(&info.path) {
        return Err(Failure::Later(Status::unavailable("apiserver is shutting down")));
    }
    let query = Query::parse(&target);
    let deadline = deadline(server, &info, &query)?;
    // Also what lasts gets in within the time of a request, or not at all.
    let begun = tokio::time::Instant::now();
    let most = deadline.unwrap_or(server.options.request_timeout);
    let mut warnings = Vec::new();
    let entering = enter(server, parts, connection, record, info, &target, now, &mut warnings);
    let (authorized, permit) = match tokio::time::timeout_at(begun + most, entering).await {
        Ok(entered) => entered?,
        Err(_) => {
            record.undecided(server, most);
            return Err(Status::timeout().into());
        }
    };
    let request = AuthorizedRequest {
        server,
        parts,
        authorized: &authorized,
        query: &query,
        now,
        deadline: begun + most,
        write_progress: WriteProgress::default(),
    };
    let mut doing = std::pin::pin!(request.run(permit, body, record, &mut warnings));
    let mut end = begun + most + LAST_WORDS;
    loop {
        match tokio::time::timeout_at(end, &mut doing).await {
            Ok(result) => return result,
            // The client is told that the outcome is unknown, and the audit event tells the outcome.
            Err(_)
                if request.write_progress.has_begun()
                    && answer.give(|| rendered(parts, now, &Status::timeout())) =>
            {
                end += WRITE_GRACE;
            }
            Err(_) => return Err(Status::timeout().into()),
        }
    }
}

/// Who asks, and whether that is allowed.
async fn enter<S: Store>(
    server: &Arc<ServerState<S>>,
    parts: &mut Parts,
    connection: &Connection<CertificateIdentity>,
    record: &mut Record,
    info: RequestInfo,
    target: &str,
    now: Timestamp,
    warnings: &mut Vec<String>,
) -> Result<(Authorized, Option<https_server::InFlightPermit>), Failure> {
    // 2. Who asks.
    let certificates = connection.identity(
        |known| server.authenticator.is_current(known),
        |presented| server.authenticator.identify_certificates(presented, now),
    );
    let request = authn::Request { headers: &parts.headers, path: &info.path };
    let authenticated =
        server.authenticator.authenticate(request, &certificates, &**server, now).await;
    let authenticated = match authenticated {
        Ok(authenticated) => authenticated,
        Err(refused) => {
            server.metrics.authentications.with_label_values(&["failure"]).inc();
            connection.close();
            record.unauthenticated(server, &refused, &info, parts, now);
            return Err(Status::unauthorized().into());
        }
    };
    server.metrics.authentications.with_label_values(&["success"]).inc();
    if authenticated.is_anonymous() {
        connection.close();
    }
    warnings.extend(authenticated.warnings.iter().map(|&own| own.to_owned()));
    let user = Arc::new(authenticated.user);
    record.begin(server, &user, &info, parts, now)?;
    let cluster = server.snapshot_cache.snapshot();
    let impersonated = {
        let attributes = info.attributes(Some(&user));
        let chain = AskChain(Arc::clone(&cluster.chain));
        server.impersonator.impersonate(&parts.headers, &attributes, &chain).await?
    };
    let user = match impersonated {
        None => user,
        Some(impersonated) => {
            let user = Arc::new(impersonated.user);
            record.impersonate(&user, impersonated.mode);
            user
        }
    };
    server.authenticator.strip_credentials(&mut parts.headers);
    authn::strip_impersonation(&mut parts.headers);
    // 3. Whether there is room.
    let Some(permit) = room(server, &info, &user) else {
        server.metrics.terminations.with_label_values(&["429"]).inc();
        return Err(Failure::Busy);
    };
    // 4. Whether it is allowed.
    let (authorized, decided) = authorize(cluster, Arc::clone(&user), info).await;
    record.decided(server, &decided);
    match authorized {
        Ok(authorized) => Ok((authorized, permit)),
        Err(info) => {
            let attributes = info.attributes(Some(&user));
            Err(
                match access_reviews::refusal_for_decision(&attributes, target, &decided.decision) {
                    Some(access_reviews::Refusal::InternalError(text)) => Failure::Text(500, text),
                    Some(
                        access_reviews::Refusal::Forbidden(status)
                        | access_reviews::Refusal::Unavailable(status),
                    ) => status.into(),
                    None => Status::internal("the decision is unclear").into(),
                },
            )
        }
    }
}

/// The second half: a request that is allowed.
pub(crate) struct AuthorizedRequest<'a, S> {
    server: &'a Arc<ServerState<S>>,
    parts: &'a Parts,
    authorized: &'a Authorized,
    query: &'a Query,
    now: Timestamp,
    /// Until when it has to be answered.
    deadline: tokio::time::Instant,
    write_progress: WriteProgress,
}

impl<S: Store> AuthorizedRequest<'_, S> {
    async fn run(
        &self,
        permit: Option<https_server::InFlightPermit>,
        body: &mut Unread,
        record: &mut Record,
        warnings: &mut Vec<String>,
    ) -> Result<Response<Body>, Failure> {
        let info = self.authorized.info();
        if info.resource.is_none() {
            return self.path(&info.path).await;
        }
        // 5. Which resource, and in which form the client wants the answer.
        if let Some(kind) = self.legacy_review() {
            return self.review(kind, body, record, warnings).await;
        }
        let route = match Route::find(self.authorized) {
            Ok(route) if route::method(route.verb) == self.parts.method => route,
            Ok(_) => return Err(Status::method_not_allowed().into()),
            Err(NoRoute::Text) => return Err(Failure::Text(404, NOT_FOUND_TEXT.to_owned())),
            Err(NoRoute::Status(status)) => return Err(status.into()),
        };
        record.route(&route, self.query);
        let resource = &route.resource;
        let review = access_reviews::ReviewKind::from_resource(
            &resource.group,
            &resource.version,
            &resource.plural,
        );
        if let Some(kind) = review {
            return self.review(kind, body, record, warnings).await;
        }
        let form = self.form(&route)?;
        // 6. What is done.
        let admission = AdmissionContext::new(self.deadline);
        let mut call = Call::new(self.server, &route, self.query, self.now, admission);
        call.admission.permit = permit;
        call.admission.write_progress = self.write_progress.clone();
        let reply = self.act(&route, &mut call, body, record).await;
        warnings.append(&mut call.warnings);
        let mut headers = HeaderMap::new();
        self.tell_admission(&mut call.admission, record, warnings, &mut headers).await;
        // 7. The answer.
        match reply {
            Ok(Reply::Watch { watcher }) => {
                Ok(watch_body::respond(self.server, *watcher, form, record))
            }
            reply => {
                let reply = reply.unwrap_or_else(Reply::Status);
                record.response(&reply);
                let mut response = form.response(reply, warnings);
                response.headers_mut().extend(headers);
                Ok(response)
            }
        }
    }

    /// A review: asked, answered, forgotten.
    async fn review(
        &self,
        kind: access_reviews::ReviewKind,
        body: &mut Unread,
        record: &mut Record,
        warnings: &mut Vec<String>,
    ) -> Result<Response<Body>, Failure> {
        if self.authorized.verb() != Some(Verb::Create) {
            return Err(Status::method_not_allowed().into());
        }
        let form = self.plain_form()?;
        let reply = review::answer::<S>(self, kind, body, record, warnings).await;
        let reply = reply.unwrap_or_else(Reply::Status);
        record.response(&reply);
        Ok(form.response(reply, warnings))
    }

    /// The first proposal posts its review into the core group, in versions that nothing else has.
    fn legacy_review(&self) -> Option<access_reviews::ReviewKind> {
        let info = self.authorized.target()?;
        let kind = access_reviews::ReviewKind::from_resource(
            &info.api_group,
            &info.api_version,
            &info.resource,
        )?;
        let is_whole = info.subresource.is_empty() && info.trail.is_none();
        (kind == access_reviews::ReviewKind::LegacyResourceAccessReview && is_whole).then_some(kind)
    }

    /// A path that names no resource.
    async fn path(&self, path: &str) -> Result<Response<Body>, Failure> {
        let is_read = matches!(self.authorized.info().verb.as_ref(), "get" | "head");
        if let Some(text) = health::health_response(self.server, path, self.query).await {
            return Ok(text_response(text.code, text.text));
        }
        if path == "/metrics" && is_read {
            return Ok(crate::metrics::metrics_response(self.server).await);
        }
        if matches!(path, AUTHORIZATION_STATUS | ADMISSION_STATUS) {
            if !is_read {
                return Err(Status::method_not_allowed().into());
            }
            let status = match path {
                ADMISSION_STATUS => self.server.admission_status().await,
                _ => {
                    let cluster = self.server.snapshot_cache.snapshot();
                    undecodable::add_undecodable_objects(
                        (self.server.authorization_status)(),
                        &cluster,
                    )
                }
            };
            let json = serde_json::to_vec(&status).unwrap_or_default();
            return Ok(self.form_of(PLAIN).response(Reply::<S>::Json { code: 200, json }, &[]));
        }
        let (asked, etag) = (self.asked(), self.header(&http::header::IF_NONE_MATCH));
        let registry = &self.authorized.snapshot().registry;
        match discovery::discovery_document::<S>(
            self.server,
            registry,
            path,
            &asked,
            etag,
            self.query,
        )? {
            Some(_) if !is_read => Err(Status::method_not_allowed().into()),
            // How a document is answered was negotiated with the document.
            Some(reply @ Reply::Document(_)) => Ok(self.form_of(PLAIN).response(reply, &[])),
            Some(reply) => Ok(self.plain_form()?.response(reply, &[])),
            None if discovery::is_known_group(registry, path) => {
                Err(Status::unknown_resource().into())
            }
            None => Err(Failure::Text(404, NOT_FOUND_TEXT.to_owned())),
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

fn room<S>(
    server: &ServerState<S>,
    info: &RequestInfo,
    user: &User,
) -> Option<Option<https_server::InFlightPermit>> {
    let kind = match info.verb.as_ref() {
        "watch" => return Some(None),
        "get" | "list" => RequestKind::ReadOnly,
        _ => RequestKind::Mutating,
    };
    match user.is_in_group("system:masters") {
        true => Some(Some(server.in_flight.admit_exempt(kind))),
        false => server.in_flight.admit(kind).map(Some),
    }
}

/// Health is told to the end, also while the server stops.
fn is_exempt_path(path: &str) -> bool {
    matches!(path.split('/').nth(1), Some("healthz" | "livez" | "readyz"))
}
