//! Authorizes requests: calls the authorizer chain and creates the [`Authorized`] value that every later step
//! requires.

use std::sync::Arc;
use std::time::{Duration, Instant};

use access_reviews::ForbiddenRequest;
use api_object::Status;
use api_resources::Verb;
use authn::ImpersonationMode;
use authz::{
    Attributes, Authorizer, Decision, DecisionFuture, RequestInfo, Resource, ResourceInfo,
    TraceRecorder, User, Verdict,
};
use authz_chain::{Chain, ChainDecision};

use crate::cluster_snapshot::ClusterSnapshot;
use crate::error_status::IntoStatus;
use crate::rest::RequestContext;

/// A request that the chain allowed: the user, the verb, the target, and the snapshot with which the
/// request began.
///
/// INVARIANT: the functions of this file make every value of this type, from the very attributes that the
/// chain allowed. Code that executes a request takes the verb and every part of the target from here, never
/// from the HTTP request, so that the server executes exactly what was authorized.
pub struct Authorized {
    user: Arc<User>,
    request_info: RequestInfo,
    verb: Option<Verb>,
    cluster_snapshot: Arc<ClusterSnapshot>,
    constrained_impersonation: Option<Arc<ConstrainedImpersonation>>,
}

/// The impersonation of the user of a request in a mode that needs a permission for every action.
#[derive(Debug)]
pub(crate) struct ConstrainedImpersonation {
    /// The authenticated user, as the authorizer sees it in this mode.
    pub(crate) requestor: User,
    pub(crate) impersonation_mode: ImpersonationMode,
}

impl Authorized {
    fn new(user: Arc<User>, info: RequestInfo, cluster: Arc<ClusterSnapshot>) -> Self {
        let verb = info.resource.as_ref().and_then(|_| Verb::parse(&info.verb));
        Self {
            user,
            request_info: info,
            verb,
            cluster_snapshot: cluster,
            constrained_impersonation: None,
        }
    }

    /// Records that the user is impersonated. Further actions of the request then need permissions of the
    /// requestor, too.
    pub(crate) fn with_constrained_impersonation(
        mut self,
        impersonation: Option<Arc<ConstrainedImpersonation>>,
    ) -> Self {
        self.constrained_impersonation = impersonation;
        self
    }

    /// The user of the request, after impersonation.
    pub fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// The authorized verb, which the server executes. `None` for non-resource paths and for verbs that no
    /// resource has, such as `proxy`.
    pub fn verb(&self) -> Option<Verb> {
        self.verb
    }

    /// The authorized group, version, resource, subresource, namespace and name; `None` for non-resource
    /// paths.
    pub fn target_resource(&self) -> Option<&ResourceInfo> {
        self.request_info.resource.as_ref()
    }

    /// The request as it was classified.
    pub fn request_info(&self) -> &RequestInfo {
        &self.request_info
    }

    /// The snapshot that the request was authorized by. Later decisions of the same request use newer ones.
    pub fn authorization_snapshot(&self) -> &Arc<ClusterSnapshot> {
        &self.cluster_snapshot
    }

    /// The attributes that the chain allowed.
    pub fn authorizer_attributes(&self) -> Attributes<'_> {
        self.request_info.to_attributes_for_user(Some(&self.user))
    }

    /// The authorization to delete one object of an authorized deletecollection; `None` if this is no
    /// deletecollection or does not contain the object.
    pub(crate) fn authorize_collection_member(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Self> {
        let collection =
            self.target_resource().filter(|_| self.verb == Some(Verb::DeleteCollection))?;
        let namespace = namespace.unwrap_or_default();
        let covers = |authorized: &str, own: &str| authorized.is_empty() || authorized == own;
        if !covers(&collection.namespace, namespace) || !covers(&collection.name, name) {
            return None;
        }
        let member = ResourceInfo {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..collection.clone()
        };
        Some(Self {
            user: Arc::clone(&self.user),
            request_info: RequestInfo { resource: Some(member), ..self.request_info.clone() },
            verb: Some(Verb::Delete),
            cluster_snapshot: Arc::clone(&self.cluster_snapshot),
            constrained_impersonation: self.constrained_impersonation.clone(),
        })
    }

    #[cfg(test)]
    pub(crate) fn for_test(
        user: Arc<User>,
        info: RequestInfo,
        cluster: Arc<ClusterSnapshot>,
    ) -> Self {
        Self::new(user, info, cluster)
    }
}

/// Asks the chain whether a request is allowed.
pub(crate) async fn authorize(
    cluster: Arc<ClusterSnapshot>,
    user: Arc<User>,
    info: RequestInfo,
) -> (Result<Authorized, RequestInfo>, AuthorizationRecord) {
    let begun = Instant::now();
    let record = {
        let attributes = info.to_attributes_for_user(Some(&user));
        let outcome = cluster
            .authorizer_chain
            .authorize(&attributes, TraceRecorder::disabled_recorder())
            .await;
        AuthorizationRecord {
            skipped_authorizer_webhooks: (!outcome.skipped_webhooks.is_empty())
                .then(|| outcome.skipped_webhooks.join(",")),
            failed_open_authorizer_webhooks: describe_failed_open_authorizers(&outcome),
            authorizer_decision: outcome.decision,
            authorization_duration: begun.elapsed(),
        }
    };
    let authorized = match record.authorizer_decision.verdict {
        Verdict::Allow => Ok(Authorized::new(user, info, cluster)),
        Verdict::Deny | Verdict::NoOpinion | Verdict::Unavailable(_) => Err(info),
    };
    (authorized, record)
}

/// The decision of the chain about a request, for metrics and audit.
pub(crate) struct AuthorizationRecord {
    pub(crate) authorizer_decision: Decision,
    /// The names of the webhooks that match conditions excluded.
    pub(crate) skipped_authorizer_webhooks: Option<String>,
    /// The webhooks whose failure was ignored, each with its cause.
    pub(crate) failed_open_authorizer_webhooks: Option<String>,
    pub(crate) authorization_duration: Duration,
}

/// Formats the webhooks whose failure was ignored, such as `guard: timeout, other: connect`.
fn describe_failed_open_authorizers(outcome: &ChainDecision<'_>) -> Option<String> {
    let causes = outcome.failed_open_webhooks.iter();
    let texts: Vec<String> =
        causes.map(|(name, cause)| format!("{name}: {}", cause.name())).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Implements [`Authorizer`] by calling the authorizer chain.
pub(crate) struct ChainAuthorizer(pub(crate) Arc<Chain>);

impl Authorizer for ChainAuthorizer {
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        recorder: TraceRecorder<'a>,
    ) -> DecisionFuture<'a> {
        Box::pin(async move { self.0.authorize(attributes, recorder).await.decision })
    }
}

/// The chain with the newest objects and with the authorizers that the request began with.
pub(crate) fn newest_authorizer_chain(ctx: &RequestContext<'_>) -> Arc<Chain> {
    ctx.server
        .snapshot_cache
        .snapshot()
        .chain_with_earlier_authorizers(ctx.authorization_proof.authorization_snapshot())
}

/// Asks whether the user may use another verb on the same target. If the user is impersonated in a mode that needs a
/// permission for every action, the requestor needs that permission for this verb.
///
/// # Errors
/// 403 with the reason of the chain; 429, 503 or 504 if the chain could not decide.
pub(crate) async fn authorize_other_verb(
    ctx: &RequestContext<'_>,
    verb: Verb,
) -> Result<Authorized, Status> {
    let info =
        RequestInfo { verb: verb.name().into(), ..ctx.authorization_proof.request_info().clone() };
    if let Some(impersonation) = &ctx.authorization_proof.constrained_impersonation {
        check_impersonated_action(ctx, impersonation, &info).await?;
    }
    authorize_other_request(ctx, info).await?.map_err(|(info, decision)| {
        let attributes = info.to_attributes_for_user(Some(ctx.authorization_proof.user()));
        ForbiddenRequest::new(&attributes, &decision.reason).into_status()
    })
}

/// Asks whether the requestor may perform an action while impersonating.
async fn check_impersonated_action(
    ctx: &RequestContext<'_>,
    impersonation: &ConstrainedImpersonation,
    info: &RequestInfo,
) -> Result<(), Status> {
    let verb = impersonation.impersonation_mode.verb_for_action(&info.verb);
    let Some(verb) = verb else { return Ok(()) };
    let info = RequestInfo { verb: verb.into(), ..info.clone() };
    let attributes = info.to_attributes_for_user(Some(&impersonation.requestor));
    let chain = newest_authorizer_chain(ctx);
    let deciding = chain.authorize(&attributes, TraceRecorder::disabled_recorder());
    let decision = ctx.wait_for_authorizers_of_check(deciding).await?.decision;
    match decision.verdict {
        Verdict::Allow => Ok(()),
        Verdict::Unavailable(why) => Err(Status::authorization_undecided(why)),
        Verdict::Deny | Verdict::NoOpinion => {
            Err(ForbiddenRequest::new(&attributes, &decision.reason).into_status())
        }
    }
}

/// Asks whether the user may use a verb on another target, such as `bind` on a role. The inner error is the
/// decision of the chain.
///
/// # Errors
/// 429, 503 or 504 if the chain could not decide.
pub(crate) async fn authorize_other_target(
    ctx: &RequestContext<'_>,
    verb: authz::Verb<'_>,
    target: &Resource<'_>,
) -> Result<Result<Authorized, Decision>, Status> {
    let info = RequestInfo {
        path: target.path.to_owned(),
        verb: verb.as_str().to_owned().into(),
        api_prefix: "apis",
        resource: Some(ResourceInfo {
            api_group: target.api_group.to_owned(),
            api_version: target.api_version.to_owned(),
            namespace: target.namespace.as_str().to_owned(),
            resource: target.resource.to_owned(),
            subresource: target.subresource.to_owned(),
            name: target.name.to_owned(),
            ..ResourceInfo::default()
        }),
        has_rewritten_legacy_segment: false,
    };
    Ok(authorize_other_request(ctx, info).await?.map_err(|(_, decision)| decision))
}

async fn authorize_other_request(
    ctx: &RequestContext<'_>,
    info: RequestInfo,
) -> Result<Result<Authorized, (RequestInfo, Decision)>, Status> {
    let user = Arc::clone(ctx.authorization_proof.user());
    let chain = newest_authorizer_chain(ctx);
    let attributes = info.to_attributes_for_user(Some(&user));
    let deciding = chain.authorize(&attributes, TraceRecorder::disabled_recorder());
    let decision = ctx.wait_for_authorizers_of_check(deciding).await?.decision;
    match decision.verdict {
        Verdict::Allow => Ok(Ok(Authorized::new(
            user,
            info,
            Arc::clone(ctx.authorization_proof.authorization_snapshot()),
        )
        .with_constrained_impersonation(
            ctx.authorization_proof.constrained_impersonation.clone(),
        ))),
        Verdict::Unavailable(why) => Err(Status::authorization_undecided(why)),
        Verdict::Deny | Verdict::NoOpinion => Ok(Err((info, decision))),
    }
}
