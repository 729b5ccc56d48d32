//! Reviews and tokens: what is created and not kept.

use api_object::{Status, Tree};
use authn::{LookupError, ReferencedKind, TokenRequest, TokenRequestSettings};
use authz::Recorder;
use codec::{BodyFormat, Expected};
use http::header::CONTENT_TYPE;
use serde_json::Value;
use std::sync::Arc;
use store::{At, Key, Store};

use crate::admit::Write;
use crate::initialize::is_hidden;
use crate::record::Record;
use crate::request::{AuthorizedRequest, Unread};
use crate::respond::Reply;
use crate::rest::{Call, FieldValidation};
use crate::route::Route;
use crate::server_state::ServerState;

/// Answers a review.
pub(crate) async fn answer<S: Store>(
    request: &AuthorizedRequest<'_, S>,
    kind: access_reviews::ReviewKind,
    body: &mut Unread,
    record: &mut Record,
    warnings: &mut Vec<String>,
) -> Result<Reply<S>, Status> {
    let authorized = request.authorized();
    let Some(info) = authorized.target() else { return Err(Status::unknown_resource()) };
    let expected = Expected {
        group: kind.group(),
        version: &info.api_version,
        kind: kind.name(),
        is_custom: false,
    };
    let format = codec::body_format(request.header(&CONTENT_TYPE), &expected)?;
    let bytes = request.collect(body).await?;
    let options = request.query().write_options("CreateOptions")?;
    let chain = Arc::clone(&authorized.snapshot().chain);
    let is_plain = kind == access_reviews::ReviewKind::SubjectAccessReview
        && format == BodyFormat::Json
        && info.api_version == "v1";
    if is_plain
        && !record.wants_objects()
        && let Some(review) = access_reviews::SubjectAccessReview::parse(&bytes)
    {
        let caller = &authorized.user().name;
        let outcome = chain.authorize_for(caller, &review.attributes(), Recorder::off()).await;
        access_reviews::check_decided(&outcome.decision)?;
        let mut json = Vec::with_capacity(bytes.len() + 160);
        review.write_response(&outcome.decision, &mut json);
        return Ok(Reply::Json { code: 201, json });
    }
    let decoded = codec::decode_object(&bytes, format, &expected)?;
    match options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => {
            warnings.extend(decoded.findings.iter().map(ToString::to_string));
        }
        FieldValidation::Strict => {
            let error = codec::strict_error(kind.name(), &info.api_version, &decoded.findings);
            if let Some(status) = error {
                return Err(status);
            }
        }
    }
    record.request_object(&decoded.tree);
    let request = access_reviews::ReviewRequest {
        version: &info.api_version,
        namespace: &info.namespace,
        user: Some(authorized.user()),
        now: request.now(),
    };
    let review = access_reviews::prepare_review(kind, &Value::Object(decoded.tree), &request)?;
    match access_reviews::answer_review(&chain, review, Some(authorized.user())).await? {
        Value::Object(tree) => Ok(Reply::Tree { code: 201, tree }),
        _ => Err(Status::internal("a review has no answer")),
    }
}

/// Answers a TokenReview.
pub(crate) async fn token_review<S: Store>(
    server: &ServerState<S>,
    route: &Route<'_>,
    request: &AuthorizedRequest<'_, S>,
    body: &mut Unread,
    record: &mut Record,
) -> Result<Reply<S>, Status> {
    let resource = &route.resource;
    if resource.kind != "TokenReview" {
        return Err(Status::method_not_allowed());
    }
    let tree = decode(request, &resource.group, &resource.version, &resource.kind, body).await?;
    record.request_object(&tree);
    let tree = server.authenticator.review_token(tree, server, request.now()).await?;
    Ok(Reply::Tree { code: 201, tree })
}

/// Issues a token for a service account.
pub(crate) async fn token<S: Store>(
    call: &mut Call<'_, S>,
    request: &AuthorizedRequest<'_, S>,
    body: &mut Unread,
    record: &mut Record,
) -> Result<Reply<S>, Status> {
    let server = call.server;
    let (namespace, name) = (call.namespace.unwrap_or_default(), call.name);
    let tree = decode(request, "authentication.k8s.io", "v1", "TokenRequest", body).await?;
    record.request_object(&tree);
    let options = request.query().write_options("CreateOptions")?;
    let write = Write::create_part("token", name, options, request.query());
    let tree = call.admit_mutating(&write, tree, None).await?;
    let settings = TokenRequestSettings {
        api_audiences: server.authenticator.api_audiences(),
        lifetime_seconds_max: None,
    };
    let now = request.now();
    let request = TokenRequest::read(tree, namespace, name, settings, server, now).await?;
    // Validating hooks decide about the token that will be issued, which they can not change.
    call.admit_validating(&write, request.object().clone(), None).await?;
    let issued = request.issue(settings, &server.token_issuer, server).await?;
    Ok(Reply::Tree { code: 201, tree: issued.object })
}

async fn decode<S: Store>(
    request: &AuthorizedRequest<'_, S>,
    group: &str,
    version: &str,
    kind: &str,
    body: &mut Unread,
) -> Result<Tree, Status> {
    let expected = Expected { group, version, kind, is_custom: false };
    let format = codec::body_format(request.header(&CONTENT_TYPE), &expected)?;
    let bytes = request.collect(body).await?;
    request.query().write_options("CreateOptions")?;
    Ok(codec::decode_object(&bytes, format, &expected)?.tree)
}

/// Tokens refer to objects in the store.
impl<S: Store> authn::Lookup for ServerState<S> {
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
        let key = api_resources::key(&self.prefix, resource, namespace, name);
        let Some(key) = key.and_then(|key| Key::new(&key).ok()) else { return Ok(None) };
        let got = self.store.get(&key, At::Newest).await;
        let got = got.map_err(|error| LookupError(error.to_string()))?;
        // An object that waits for its initializers counts as absent: nobody may rely on it yet.
        let Some(entry) = got.entry.filter(|entry| !is_hidden(&entry.value)) else {
            return Ok(None);
        };
        let tree = codec::from_stored(&entry.value);
        tree.map(|tree| Some(Arc::new(tree))).map_err(|error| LookupError(error.to_string()))
    }
}
