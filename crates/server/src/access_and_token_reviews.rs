//! Create requests that store nothing: access reviews, token reviews and token requests.

mod subject_review_resource;

use std::sync::Arc;

use access_reviews::PreparedReview;
use api_object::{Status, Tree};
use authn::{TokenRequest, TokenRequestSettings};
use authz::TraceRecorder;
use bytes::Bytes;
use codec::{ExpectedKind, RequestBodyFormat};
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use serde_json::Value;

use crate::admission::{
    AdmissionFreshnessRequirement, WriteAttempt, WriteRequest, admit_mutating,
    admit_without_storing, establish_admission_config_freshness,
};
use crate::error_status::IntoStatus;
use crate::request::AuthorizedRequest;
use crate::request_record::RequestRecord;
use crate::request_seat::RequestSeat;
use crate::respond::Reply;
use crate::rest::{RequestContext, WarningsAndHookReports, WriteOptions};
use crate::route::Route;
use crate::server_state::ServerState;
use subject_review_resource::resolve_review_resource;

/// Answers an access review. The most frequent one has a path of its own; the others have a large future, which would make
/// every request larger if it were not on the heap.
pub(crate) async fn answer_access_review(
    request: &AuthorizedRequest<'_>,
    kind: access_reviews::ReviewKind,
    body: &Bytes,
    seat: &RequestSeat<'_>,
    record: &mut RequestRecord,
    warnings: &mut Vec<String>,
) -> Result<Reply, Status> {
    let authorized = request.authorization_proof();
    let Some(info) = authorized.target_resource() else { return Err(Status::unknown_resource()) };
    let expected = ExpectedKind {
        group: kind.group(),
        version: &info.api_version,
        kind: kind.name(),
        is_custom_resource: false,
    };
    let content_type = request
        .request_header(&CONTENT_TYPE)
        .filter(|own| !is_legacy_review_declared_as_form(kind, own));
    let format =
        codec::request_body_format(content_type, &expected).map_err(IntoStatus::into_status)?;
    let options = request.query().parse_write_options("CreateOptions")?;
    let chain = &authorized.authorization_snapshot().authorizer_chain;
    let is_plain = kind == access_reviews::ReviewKind::SubjectAccessReview
        && format == RequestBodyFormat::Json
        && info.api_version == "v1";
    if is_plain
        && !record.audits_request_objects()
        && let Some(review) = access_reviews::PlainSubjectAccessReview::parse(body)
    {
        let caller = &authorized.user().name;
        let attributes = review.attributes();
        let deciding =
            chain.authorize_for_caller(caller, &attributes, TraceRecorder::disabled_recorder());
        let outcome = seat.wait_for_authorizers(deciding).await?;
        access_reviews::check_authorizers_consulted(&outcome.decision)
            .map_err(IntoStatus::into_status)?;
        let mut json = Vec::with_capacity(body.len() + 160);
        review.write_response(&outcome.decision, &mut json);
        return Ok(Reply::Json { code: 201, json });
    }
    let question = AccessReviewBody {
        kind,
        expected_review_kind: expected,
        body_format: format,
        body,
        options,
    };
    Box::pin(question.decode_and_answer_review(request, seat, record, warnings)).await
}

/// Whether to ignore the content type of a legacy review. Clients post it with `curl -d`, which declares a form by
/// default.
fn is_legacy_review_declared_as_form(kind: access_reviews::ReviewKind, content_type: &str) -> bool {
    kind == access_reviews::ReviewKind::LegacyResourceAccessReview
        && content_type.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// An access review that has to be decoded.
struct AccessReviewBody<'a> {
    kind: access_reviews::ReviewKind,
    expected_review_kind: ExpectedKind<'a>,
    body_format: RequestBodyFormat,
    body: &'a Bytes,
    options: WriteOptions,
}

impl AccessReviewBody<'_> {
    async fn decode_and_answer_review(
        self,
        request: &AuthorizedRequest<'_>,
        seat: &RequestSeat<'_>,
        record: &mut RequestRecord,
        warnings: &mut Vec<String>,
    ) -> Result<Reply, Status> {
        let Self { kind, expected_review_kind: expected, body_format: format, body, options } =
            self;
        let authorized = request.authorization_proof();
        let chain = Arc::clone(&authorized.authorization_snapshot().authorizer_chain);
        let Some(info) = authorized.target_resource() else {
            return Err(Status::unknown_resource());
        };
        let decoded =
            codec::decode_object(body, format, &expected).map_err(IntoStatus::into_status)?;
        options.field_validation.apply_field_validation(
            &expected,
            &decoded.strict_findings,
            warnings,
        )?;
        record.record_request_object(&decoded.object_tree);
        let request = access_reviews::ReviewRequest {
            version: &info.api_version,
            namespace: &info.namespace,
            user: Some(authorized.user()),
            now: request.now(),
        };
        let mut review =
            access_reviews::prepare_review(kind, &Value::Object(decoded.object_tree), &request)
                .map_err(IntoStatus::into_status)?;
        if let PreparedReview::Subjects(review) = &mut review {
            let registry = &authorized.authorization_snapshot().resource_registry;
            review
                .resolve_resource(|named| resolve_review_resource(registry, named))
                .map_err(IntoStatus::into_status)?;
        }
        if matches!(review, PreparedReview::Rules(_) | PreparedReview::Subjects(_)) {
            // Such a review visits all roles and bindings.
            seat.long_computation_flag.begin_long_computation().await;
        }
        let answering = access_reviews::answer_review(&chain, review, Some(authorized.user()));
        let answer = seat.wait_for_authorizers(answering).await?;
        match answer.map_err(IntoStatus::into_status)? {
            Value::Object(tree) => Ok(Reply::Tree { code: 201, tree }),
            _ => Err(Status::internal_error("a review has no answer")),
        }
    }
}

/// The metadata of a TokenReview that its answer does not repeat: only a server sets these members, and the review has
/// no namespace.
const METADATA_NOT_REVIEWED: [&str; 6] = [
    "namespace",
    "selfLink",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Answers a TokenReview, which asks whom a token authenticates.
pub(crate) async fn answer_token_review(
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
    let mut tree =
        decode_review(request, &resource.group, &resource.version, &resource.kind, body)?;
    record.record_request_object(&tree);
    if let Some(Value::Object(metadata)) = tree.get_mut("metadata") {
        metadata.retain(|member, _| !METADATA_NOT_REVIEWED.contains(&member.as_str()));
    }
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
    report: &mut WarningsAndHookReports,
) -> Result<Reply, Status> {
    let tree = decode_review(request, "authentication.k8s.io", "v1", "TokenRequest", body)?;
    record.record_request_object(&tree);
    let options = request.query().parse_write_options("CreateOptions")?;
    let write = WriteRequest::for_subresource_create("token", ctx.name, options, request.query());
    // No transaction could verify an assumed configuration.
    let mut attempt = WriteAttempt::new(AdmissionFreshnessRequirement::MustConfirm);
    let issued = admit_and_issue_token(ctx, &mut attempt, &write, tree, request.now()).await;
    attempt.report_single_attempt(report);
    Ok(Reply::Tree { code: 201, tree: issued? })
}

async fn admit_and_issue_token(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    mut tree: Tree,
    now: Timestamp,
) -> Result<Tree, Status> {
    let server = ctx.server;
    let (namespace, name) = (ctx.namespace.unwrap_or_default(), ctx.name);
    // Hooks see these members even if the client leaves them out.
    api_object::check_and_set_namespace(&mut tree, namespace)?;
    tree.entry("status").or_insert_with(authn::empty_token_status);
    establish_admission_config_freshness(ctx, attempt, write, &tree).await?;
    let tree = admit_mutating(ctx, attempt, write, tree, None).await?;
    let settings = TokenRequestSettings {
        api_audiences: server.authenticator.api_audiences(),
        lifetime_seconds_max: None,
    };
    let request = TokenRequest::read(tree, namespace, name, settings, server, now).await;
    let request = request.map_err(IntoStatus::into_status)?;
    // Validating hooks review the token request as it will be issued, which they cannot change.
    admit_without_storing(ctx, attempt, write, request.request_object()).await?;
    let issued = request.issue_token(settings, &server.token_issuer, server).await;
    Ok(issued.map_err(IntoStatus::into_status)?.response_object)
}

fn decode_review(
    request: &AuthorizedRequest<'_>,
    group: &str,
    version: &str,
    kind: &str,
    body: &Bytes,
) -> Result<Tree, Status> {
    let expected = ExpectedKind { group, version, kind, is_custom_resource: false };
    let format = codec::request_body_format(request.request_header(&CONTENT_TYPE), &expected)
        .map_err(IntoStatus::into_status)?;
    request.query().parse_write_options("CreateOptions")?;
    let decoded = codec::decode_object(body, format, &expected);
    Ok(decoded.map_err(IntoStatus::into_status)?.object_tree)
}
