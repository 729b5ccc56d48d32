//! The order of a request.

use std::sync::Arc;

use access_reviews::AccessError;
use api_object::Status;
use authz::{Attributes, Target, TraceRecorder, User, Verb};
use component_base::{
    AUDIT_ID, HealthCheckResult, HealthEndpoint, HealthQuery, render_health_response,
};
use concurrency_limit::LimitReached;
use http::header::HeaderValue;
use http::{Method, Request, Response};
use https_server::{Body, CollectBodyError, Connection, MinimumBodyRate, collect_body};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::decision_id::DecisionId;
use crate::decision_path::{DECISIONS_PATH, explain_decision};
use crate::request_record::RequestRecord;
use crate::respond::{json_response, status_response, text_response};
use crate::review::{UndecidedReview, decide_review, result_of_decision};
use crate::serve::WebhookState;
use crate::webhook_metrics::ReviewResult;

/// The path of the status of the authorizers and of the caches.
const STATUS_PATH: &str = "/portcullis/authorization/status";

/// The path of the metrics.
const METRICS_PATH: &str = "/metrics";

/// Handles one request:
///
/// 1. Authenticate the caller by its client certificate.
/// 2. Write the first audit event.
/// 3. Serve the path: reviews and health need no further permission; metrics, status and explanations need one.
/// 4. Write the last audit event and the line of the log, then send the response.
pub(crate) async fn handle_request<B>(
    server: Arc<WebhookState>,
    request: Request<B>,
    connection: Arc<Connection>,
) -> Response<Body>
where
    B: http_body::Body + Unpin + Send,
{
    let now = Timestamp::now();
    let (parts, mut body) = request.into_parts();
    let mut record = RequestRecord::new(&server, &parts, connection.peer_address);
    let caller = match server.callers.authenticate(&connection, now) {
        Ok(caller) => caller,
        Err(error) => {
            connection.close();
            let fields = [("why", &error as _), ("source", &connection.peer_address as _)];
            server.log.info("a caller is refused", &fields);
            return status_response(&error.to_status());
        }
    };
    let served = async {
        record.record_caller(&server, &caller, &parts, now).await?;
        let path = parts.uri.path();
        if path == server.review_path {
            if parts.method != Method::POST {
                return Err(Status::method_not_allowed());
            }
            return serve_review(&server, &caller, &mut body, &mut record, now).await;
        }
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Err(Status::method_not_allowed());
        }
        serve_read(&server, &caller, path, parts.uri.query().unwrap_or_default()).await
    };
    let mut response = served.await.unwrap_or_else(|status| status_response(&status));
    if let Ok(id) = HeaderValue::from_bytes(record.audit_id().as_bytes()) {
        response.headers_mut().insert(AUDIT_ID, id);
    }
    record.record_end(&server, response.status().as_u16()).await;
    response
}

/// Reads and decides a review, within the limit of the reviews of one caller.
async fn serve_review<B: http_body::Body + Unpin + Send>(
    server: &WebhookState,
    caller: &User,
    body: &mut B,
    record: &mut RequestRecord,
    now: Timestamp,
) -> Result<Response<Body>, Status> {
    let permit = server.reviews_limit.acquire_permit(authz::user_limit_key(&caller.name));
    let decided = match permit {
        Err(limit) => Err(too_many_reviews(limit)),
        Ok(_permit) => match read_body(server, body).await {
            Ok(bytes) => decide_review(server, &caller.name, &bytes, now).await,
            Err(status) => Err(UndecidedReview { result: ReviewResult::Invalid, status }),
        },
    };
    match decided {
        Ok(review) => {
            server.metrics.count_review(result_of_decision(&review.decision), record.elapsed());
            record.record_review(&review);
            Ok(json_response(200, review.response_json))
        }
        Err(UndecidedReview { result, status }) => {
            server.metrics.count_review(result, record.elapsed());
            Err(status)
        }
    }
}

fn too_many_reviews(limit: LimitReached) -> UndecidedReview {
    let message = match limit {
        LimitReached::User { permits_max } => {
            format!(
                "{permits_max} reviews of this caller are in progress, which is the most for one caller"
            )
        }
        LimitReached::Total { permits_max } => {
            format!("{permits_max} reviews are in progress, which is the most")
        }
    };
    let status = Status::too_many_requests(&message, 1);
    UndecidedReview { result: ReviewResult::TooMany, status }
}

async fn read_body<B: http_body::Body + Unpin + Send>(
    server: &WebhookState,
    body: &mut B,
) -> Result<bytes::Bytes, Status> {
    let limit = server.body_bytes_max;
    let collected = collect_body(body, limit as u64, MinimumBodyRate::default()).await;
    collected.map_err(|error| match error {
        CollectBodyError::TooLarge { .. } => Status::too_large(limit),
        CollectBodyError::TooSlow | CollectBodyError::Read(_) | CollectBodyError::Truncated => {
            Status::bad_request("the body cannot be read")
        }
    })
}

/// Serves a path that is read.
async fn serve_read(
    server: &WebhookState,
    caller: &User,
    path: &str,
    query: &str,
) -> Result<Response<Body>, Status> {
    if let Some(response) = health_response(server, path, query) {
        return Ok(response);
    }
    let decision = path.strip_prefix(DECISIONS_PATH);
    if decision.is_none() && !matches!(path, METRICS_PATH | STATUS_PATH) {
        return Err(Status::unknown_resource());
    }
    if decision.is_some() {
        // An explanation shows policies, so the permission to read it must be a current one. The check comes before that of
        // the permission: the snapshot that decides about the permission must be loaded after it.
        let fresh = server.freshness.check(Instant::now());
        fresh.map_err(|why| Status::service_unavailable(why.to_string()))?;
    }
    check_permission(server, caller, path).await?;
    match decision {
        Some(id) => {
            let id = DecisionId::parse(id).ok_or_else(|| Status::bad_request(NOT_AN_ID))?;
            let explanation =
                explain_decision(server, id).await.ok_or_else(|| unknown_decision(server, id))?;
            Ok(json_response(200, serde_json::to_vec(&explanation).unwrap_or_default()))
        }
        None if path == METRICS_PATH => Ok(metrics_response(server)),
        None => {
            let status = status_json(server);
            Ok(json_response(200, serde_json::to_vec(&status).unwrap_or_default()))
        }
    }
}

const NOT_AN_ID: &str =
    "a decision id is two groups of eight hexadecimal digits, such as 5f3a9c1e-07d2b841";

fn unknown_decision(server: &WebhookState, id: DecisionId) -> Status {
    let instance = server.decision_ids.instance();
    let message = format!(
        "this process (decisions {instance}-*) has no decision {id}: it is too old, or another replica made it"
    );
    let mut status = Status::unknown_resource();
    status.message = message;
    status
}

/// Checks that the chain itself allows the caller to `get` a path. Metrics and status are also served while the policy is old,
/// because an administrator needs them then.
async fn check_permission(server: &WebhookState, caller: &User, path: &str) -> Result<(), Status> {
    let chain = &server.policy_cache.snapshot().chain;
    let attributes = Attributes { user: Some(caller), verb: Verb::GET, target: Target::Path(path) };
    let outcome = chain.authorize(&attributes, TraceRecorder::disabled_recorder()).await;
    match access_reviews::check_allowed(&attributes, path, &outcome.decision) {
        Ok(()) => Ok(()),
        Err(AccessError::Forbidden(request)) => Err(Status::forbidden_path(&request.message)),
        Err(AccessError::EvaluationFailed(text)) => Err(Status::internal_error(&text)),
        Err(AccessError::Unavailable(why)) => Err(Status::authorization_undecided(why)),
    }
}

/// The response of a health endpoint; `None` for other paths.
pub(crate) fn health_response(
    server: &WebhookState,
    path: &str,
    query: &str,
) -> Option<Response<Body>> {
    let (endpoint, single_check) = HealthEndpoint::from_path(path)?;
    let mut checks = vec![HealthCheckResult::new("ping", true)];
    if endpoint == HealthEndpoint::Readyz {
        let is_fresh = server.freshness.check(Instant::now()).is_ok();
        checks.push(HealthCheckResult::new("informer-sync", is_fresh));
        checks.push(HealthCheckResult::new("shutdown", !server.is_stopping()));
    }
    let parameters = || query.split('&').map(|own| own.split_once('=').unwrap_or((own, "")));
    let health_query = HealthQuery {
        excluded_checks: parameters()
            .filter(|(name, value)| *name == "exclude" && !value.is_empty())
            .map(|(_, value)| value)
            .collect(),
        is_verbose: parameters().any(|(name, value)| name == "verbose" && value != "false"),
    };
    let text = render_health_response(endpoint, single_check, &checks, health_query);
    Some(text.map_or_else(|| status_response(&Status::unknown_resource()), text_response))
}

fn metrics_response(server: &WebhookState) -> Response<Body> {
    for (resource, age) in server.freshness.proof_ages(Instant::now()) {
        let n_objects = server.policy_cache.n_cluster_objects(resource);
        server.metrics.set_cache_state(resource, age, n_objects);
    }
    let (n_decisions, _) = server.recent_decisions.usage();
    server.metrics.set_usage(n_decisions, server.reviews_limit.n_permits_in_use());
    if let Some(auditor) = &server.auditor {
        server.audit_metrics.set_from_auditor(auditor);
    }
    server.connection_metrics.set_open_connections(server.shutdown.n_connections());
    component_base::metrics_response(&server.metrics_registry)
}

/// The status: that of the authorizers, as in `serve`, and the state of the caches.
fn status_json(server: &WebhookState) -> Value {
    let now = Instant::now();
    let caches = server.freshness.proof_ages(now).map(|(resource, age)| {
        json!({
            "resource": resource.plural(),
            "synced": age.is_some(),
            "proofAgeSeconds": age.map(|age| age.as_secs_f64()),
            "objects": server.policy_cache.n_cluster_objects(resource),
        })
    });
    let caches: Vec<Value> = caches.collect();
    let not_fresh = server.freshness.check(now).err().map(|why| why.to_string());
    let (n_decisions, n_bytes) = server.recent_decisions.usage();
    json!({
        "authorization": (server.authorization_status)(),
        "decides": not_fresh.is_none(),
        "why": not_fresh,
        "caches": caches,
        "fileObjects": server.policy_cache.n_file_objects(),
        "instance": server.decision_ids.instance(),
        "recentDecisions": {"entries": n_decisions, "bytes": n_bytes},
    })
}
