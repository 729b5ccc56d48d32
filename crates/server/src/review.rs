//! Create requests that store nothing: access reviews, token reviews and token requests.

use std::sync::Arc;
use std::time::Duration;

use access_reviews::{
    AnswerError, NamedResource, PreparedReview, ResolvedResource, UnresolvedResource,
};
use api_object::{Status, Tree};
use api_resources::{Registry, ResourceName, ResourceNameError, ResourceNameTable, Scope};
use authn::{LookupError, ReferencedKind, TokenRequest, TokenRequestSettings};
use authz::{Recorder, User};
use authz_chain::Chain;
use bytes::Bytes;
use codec::{BodyFormat, ExpectedKind};
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use serde_json::Value;
use store::{At, Key};
use tokio::time::Instant;

use crate::admission::{
    ConfigurationFreshnessRequirement, WriteAttempt, WriteRequest, admit_mutating,
    admit_without_storing, establish_freshness,
};
use crate::error_status::IntoStatus;
use crate::initializers::is_stored_uninitialized;
use crate::request::AuthorizedRequest;
use crate::request_record::RequestRecord;
use crate::request_seat::RequestSeat;
use crate::respond::Reply;
use crate::rest::{RequestContext, RequestReport};
use crate::route::Route;
use crate::server_state::ServerState;

/// How long a review that lists rules or subjects waits for others to end.
const LISTING_WAIT_MAX: Duration = Duration::from_secs(10);

/// The time between two attempts to begin such a review.
const LISTING_RETRY: Duration = Duration::from_millis(5);

/// Answers an access review.
pub(crate) async fn answer_access_review(
    server: &ServerState,
    request: &AuthorizedRequest<'_>,
    kind: access_reviews::ReviewKind,
    body: &Bytes,
    seat: &RequestSeat<'_>,
    record: &mut RequestRecord,
    warnings: &mut Vec<String>,
) -> Result<Reply, Status> {
    let authorized = request.authorized();
    let Some(info) = authorized.target() else { return Err(Status::unknown_resource()) };
    let expected = ExpectedKind {
        group: kind.group(),
        version: &info.api_version,
        kind: kind.name(),
        is_custom: false,
    };
    let content_type = request.header(&CONTENT_TYPE).filter(|own| !is_of_proposal(kind, own));
    let format = codec::body_format(content_type, &expected).map_err(IntoStatus::into_status)?;
    let options = request.query().write_options("CreateOptions")?;
    let chain = Arc::clone(&authorized.snapshot().chain);
    let is_plain = kind == access_reviews::ReviewKind::SubjectAccessReview
        && format == BodyFormat::Json
        && info.api_version == "v1";
    if is_plain
        && !record.wants_request_objects()
        && let Some(review) = access_reviews::SubjectAccessReview::parse(body)
    {
        let caller = &authorized.user().name;
        let attributes = review.attributes();
        let deciding = chain.authorize_for(caller, &attributes, Recorder::disabled());
        let outcome = seat.wait_for_authorizers(deciding).await?;
        access_reviews::check_decided(&outcome.decision).map_err(IntoStatus::into_status)?;
        let mut json = Vec::with_capacity(body.len() + 160);
        review.write_response(&outcome.decision, &mut json);
        return Ok(Reply::Json { code: 201, json });
    }
    let decoded = codec::decode_object(body, format, &expected).map_err(IntoStatus::into_status)?;
    options.field_validation.check_findings(&expected, &decoded.findings, warnings)?;
    record.record_request_object(&decoded.tree);
    let request = access_reviews::ReviewRequest {
        version: &info.api_version,
        namespace: &info.namespace,
        user: Some(authorized.user()),
        now: request.now(),
    };
    let mut review = access_reviews::prepare_review(kind, &Value::Object(decoded.tree), &request)
        .map_err(IntoStatus::into_status)?;
    if let PreparedReview::Subjects(review) = &mut review {
        let registry = &authorized.snapshot().registry;
        review
            .resolve_resource(|named| resolve_resource(registry, named))
            .map_err(IntoStatus::into_status)?;
    }
    let answer = match review {
        PreparedReview::Rules(_) | PreparedReview::Subjects(_) => {
            let answering = answer_listing_review(server, authorized.user(), chain, review);
            seat.wait_for_authorizers(answering).await??
        }
        PreparedReview::Answered(_)
        | PreparedReview::Access(_)
        | PreparedReview::Explanation(_) => {
            let answering = access_reviews::answer_review(&chain, review, Some(authorized.user()));
            seat.wait_for_authorizers(answering).await?
        }
    };
    match answer.map_err(IntoStatus::into_status)? {
        Value::Object(tree) => Ok(Reply::Tree { code: 201, tree }),
        _ => Err(Status::internal("a review has no answer")),
    }
}

/// Reports whether a content type counts as none. The first proposal posts its review by `curl -d`, which declares a form
/// unless it is told otherwise.
fn is_of_proposal(kind: access_reviews::ReviewKind, content_type: &str) -> bool {
    kind == access_reviews::ReviewKind::LegacyResourceAccessReview
        && content_type.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// Finds the resource that a review about subjects names:
///
/// 1. among the resources that this server serves; a review of today that says no group means the core group, and a name
///    that the core group does not have is looked for in all groups;
/// 2. among those of Kubernetes that this server does not serve, such as `pods/log`, and those that only policies name, such
///    as `users` for the verb `impersonate`.
///
/// A resource of a group that this server does not serve is used as it is, because an aggregated server may serve it.
fn resolve_resource(
    registry: &Registry,
    named: &NamedResource<'_>,
) -> Result<Option<ResolvedResource>, UnresolvedResource> {
    if named.resource == "*" {
        return Ok(None);
    }
    let group = named.api_group.map(str::to_owned);
    let (name, subresource) = (named.resource.to_owned(), named.subresource.to_owned());
    let name = ResourceName { name, group, subresource };
    let resolve = |table: &ResourceNameTable| match table.resolve(&name) {
        Err(ResourceNameError::UnknownResource { .. }) if named.api_group == Some("") => {
            table.resolve(&ResourceName { group: None, ..name.clone() })
        }
        resolved => resolved,
    };
    let resolved = match resolve(registry.resource_names()) {
        Err(
            unknown @ (ResourceNameError::UnknownResource { .. }
            | ResourceNameError::UnknownSubresource { .. }),
        ) => match resolve(&ResourceNameTable::of_kubernetes()) {
            Ok(found) => Ok(found),
            Err(error @ ResourceNameError::UnknownSubresource { .. }) => Err(error),
            Err(_) if named.api_group.is_some_and(|own| registry.group(own).is_none()) => {
                return Ok(None);
            }
            Err(_) => Err(unknown),
        },
        resolved => resolved,
    };
    let found = resolved.map_err(|error| UnresolvedResource { detail: error.to_string() })?;
    Ok(Some(ResolvedResource {
        is_namespaced: found.scope == Some(Scope::Namespaced),
        api_group: found.group,
        resource: found.plural,
    }))
}

/// Answers a review that walks over all roles and bindings, on a thread that serves no other requests. A few such reviews
/// run at a time, and the others wait.
async fn answer_listing_review(
    server: &ServerState,
    user: &Arc<User>,
    chain: Arc<Chain>,
    review: PreparedReview,
) -> Result<Result<Value, AnswerError>, Status> {
    let (user, key) = (Arc::clone(user), authz::user_limit_key(&user.name));
    let waits_until = Instant::now() + LISTING_WAIT_MAX;
    let permit = loop {
        match server.listing_reviews.acquire(key) {
            Ok(permit) => break permit,
            Err(_) if Instant::now() < waits_until => tokio::time::sleep(LISTING_RETRY).await,
            Err(_) => {
                let why = "too many reviews list rules or subjects, please try again later";
                return Err(Status::too_many_requests(why, 1));
            }
        }
    };
    let runtime = tokio::runtime::Handle::current();
    // The thread holds the permit until the review ends, even if the request has ended.
    let answering = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        runtime.block_on(access_reviews::answer_review(&chain, review, Some(&user)))
    });
    answering.await.map_err(|error| Status::internal(&error.to_string()))
}

/// Answers a TokenReview, which asks whom a token authenticates.
pub(crate) async fn review_token(
    server: &ServerState,
    route: &Route<'_>,
    request: &AuthorizedRequest<'_>,
    body: &Bytes,
    record: &mut RequestRecord,
) -> Result<Reply, Status> {
    let resource = &route.resource;
    if resource.kind != "TokenReview" {
        return Err(Status::method_not_allowed());
    }
    let tree = decode_review(request, &resource.group, &resource.version, &resource.kind, body)?;
    record.record_request_object(&tree);
    let reviewed = server.authenticator.review_token(tree, server, request.now()).await;
    let tree = reviewed.map_err(IntoStatus::into_status)?;
    Ok(Reply::Tree { code: 201, tree })
}

/// Issues a token for a service account.
pub(crate) async fn issue_token(
    ctx: &RequestContext<'_>,
    request: &AuthorizedRequest<'_>,
    body: &Bytes,
    record: &mut RequestRecord,
    report: &mut RequestReport,
) -> Result<Reply, Status> {
    let tree = decode_review(request, "authentication.k8s.io", "v1", "TokenRequest", body)?;
    record.record_request_object(&tree);
    let options = request.query().write_options("CreateOptions")?;
    let write = WriteRequest::create_subresource("token", ctx.name, options, request.query());
    // No transaction could verify an assumed configuration.
    let mut attempt = WriteAttempt::new(ConfigurationFreshnessRequirement::MustConfirm);
    let issued = admit_and_issue_token(ctx, &mut attempt, &write, tree, request.now()).await;
    attempt.report_only_attempt(report);
    Ok(Reply::Tree { code: 201, tree: issued? })
}

async fn admit_and_issue_token(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    tree: Tree,
    now: Timestamp,
) -> Result<Tree, Status> {
    let server = ctx.server;
    let (namespace, name) = (ctx.namespace.unwrap_or_default(), ctx.name);
    establish_freshness(ctx, attempt, write, &tree).await?;
    let tree = admit_mutating(ctx, attempt, write, tree, None).await?;
    let settings = TokenRequestSettings {
        api_audiences: server.authenticator.api_audiences(),
        lifetime_seconds_max: None,
    };
    let request = TokenRequest::read(tree, namespace, name, settings, server, now).await;
    let request = request.map_err(IntoStatus::into_status)?;
    // Validating hooks review the token request as it will be issued, which they can not change.
    admit_without_storing(ctx, attempt, write, request.object()).await?;
    let issued = request.issue(settings, &server.token_issuer, server).await;
    Ok(issued.map_err(IntoStatus::into_status)?.object)
}

fn decode_review(
    request: &AuthorizedRequest<'_>,
    group: &str,
    version: &str,
    kind: &str,
    body: &Bytes,
) -> Result<Tree, Status> {
    let expected = ExpectedKind { group, version, kind, is_custom: false };
    let format = codec::body_format(request.header(&CONTENT_TYPE), &expected)
        .map_err(IntoStatus::into_status)?;
    request.query().write_options("CreateOptions")?;
    let decoded = codec::decode_object(body, format, &expected);
    Ok(decoded.map_err(IntoStatus::into_status)?.tree)
}

/// Finds the objects that tokens refer to.
impl authn::ObjectLookup for ServerState {
    async fn find(
        &self,
        kind: ReferencedKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Tree>>, LookupError> {
        let cluster = self.snapshot_cache.snapshot();
        let Some(resource) = cluster.registry.resource("", "v1", kind.resource()) else {
            return Ok(None);
        };
        let namespace = resource.is_namespaced().then_some(namespace);
        let key = api_resources::object_key(&self.prefix, resource, namespace, name);
        let Some(key) = key.and_then(|key| Key::new(&key).ok()) else { return Ok(None) };
        let got = self.store.get(&key, At::Newest).await;
        let got = got.map_err(|error| LookupError(error.to_string()))?;
        // An uninitialized object counts as absent, because no client may rely on it yet.
        let Some(entry) = got.entry.filter(|entry| !is_stored_uninitialized(&entry.value)) else {
            return Ok(None);
        };
        let tree = codec::decode_stored_object(&entry.value);
        tree.map(|tree| Some(Arc::new(tree))).map_err(|error| LookupError(error.to_string()))
    }
}
