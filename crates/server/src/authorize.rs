//! HookRequest the chain. A request goes on only with the [`Authorized`] that this makes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api_object::Status;
use api_resources::Verb;
use authz::{
    Attributes, Authorizer, Decision, DecisionFuture, Recorder, RequestInfo, Resource,
    ResourceInfo, User, Verdict,
};
use authz_chain::{Chain, ChainDecision};
use store::Store;

use crate::cluster_snapshot::ClusterSnapshot;
use crate::gate::Authorized;
use crate::rest::Call;

/// Asks whether a request is allowed.
pub(crate) async fn authorize(
    cluster: Arc<ClusterSnapshot>,
    user: Arc<User>,
    info: RequestInfo,
) -> (Result<Authorized, RequestInfo>, Decided) {
    let begun = Instant::now();
    let decided = {
        let attributes = info.attributes(Some(&user));
        let outcome = cluster.chain.authorize(&attributes, Recorder::off()).await;
        Decided {
            skipped: (!outcome.skipped.is_empty()).then(|| outcome.skipped.join(",")),
            failed_open_by: failed_open_by(&outcome),
            decision: outcome.decision,
            took: begun.elapsed(),
        }
    };
    let authorized = match decided.decision.verdict {
        Verdict::Allow => Ok(Authorized::new(user, info, cluster)),
        Verdict::Deny | Verdict::NoOpinion | Verdict::Unavailable(_) => Err(info),
    };
    (authorized, decided)
}

/// What the chain said of a request.
pub(crate) struct Decided {
    pub(crate) decision: Decision,
    /// The names of the webhooks that match conditions excluded, for the audit.
    pub(crate) skipped: Option<String>,
    /// The webhooks that failed and were passed over, each with its cause, for the audit.
    pub(crate) failed_open_by: Option<String>,
    pub(crate) took: Duration,
}

/// Such as `guard: timeout, other: connect`.
fn failed_open_by(outcome: &ChainDecision<'_>) -> Option<String> {
    let causes = outcome.failed_open.iter();
    let texts: Vec<String> =
        causes.map(|(name, cause)| format!("{name}: {}", cause.name())).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// The chain as an authorizer, for who asks several questions.
pub(crate) struct AskChain(pub(crate) Arc<Chain>);

impl Authorizer for AskChain {
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        recorder: Recorder<'a>,
    ) -> DecisionFuture<'a> {
        Box::pin(async move { self.0.authorize(attributes, recorder).await.decision })
    }
}

impl<S: Store> Call<'_, S> {
    /// The newest objects, and the authorizers that the request began with.
    pub(crate) fn chain(&self) -> Arc<Chain> {
        self.server.snapshot_cache.snapshot().chain_with_authorizers_of(self.authorized.snapshot())
    }

    /// Asks whether the user may do something else to the same target.
    ///
    /// # Errors
    /// 403 in the words of the chain; 429, 503 or 504 if this server failed to ask.
    pub(crate) async fn authorize_verb(&self, verb: Verb) -> Result<Authorized, Status> {
        let info = RequestInfo { verb: verb.name().into(), ..self.authorized.info().clone() };
        self.authorize_further(info).await?.map_err(|(info, decision)| {
            let attributes = info.attributes(Some(self.authorized.user()));
            access_reviews::forbidden_status(&attributes, &decision.reason)
        })
    }

    /// Asks whether the user may do something to another target, such as `bind` to a role.
    ///
    /// # Errors
    /// 429, 503 or 504 if this server failed to ask.
    pub(crate) async fn authorize_target(
        &self,
        verb: &str,
        target: &Resource<'_>,
    ) -> Result<Option<Authorized>, Status> {
        Ok(self.decide_target(verb, target).await?.ok())
    }

    /// The same, with the decision of the chain if it does not allow that.
    ///
    /// # Errors
    /// 429, 503 or 504 if this server failed to ask.
    pub(crate) async fn decide_target(
        &self,
        verb: &str,
        target: &Resource<'_>,
    ) -> Result<Result<Authorized, Decision>, Status> {
        let info = RequestInfo {
            path: target.path.to_owned(),
            verb: verb.to_owned().into(),
            api_prefix: "apis",
            resource: Some(ResourceInfo {
                api_group: target.api_group.to_owned(),
                api_version: target.api_version.to_owned(),
                namespace: target.namespace.to_owned(),
                resource: target.resource.to_owned(),
                subresource: target.subresource.to_owned(),
                name: target.name.to_owned(),
                ..ResourceInfo::default()
            }),
            is_legacy_path: false,
        };
        Ok(self.authorize_further(info).await?.map_err(|(_, decision)| decision))
    }

    async fn authorize_further(
        &self,
        info: RequestInfo,
    ) -> Result<Result<Authorized, (RequestInfo, Decision)>, Status> {
        let user = Arc::clone(self.authorized.user());
        let chain = self.chain();
        let attributes = info.attributes(Some(&user));
        let decision = chain.authorize(&attributes, Recorder::off()).await.decision;
        match decision.verdict {
            Verdict::Allow => {
                Ok(Ok(Authorized::new(user, info, Arc::clone(self.authorized.snapshot()))))
            }
            Verdict::Unavailable(why) => Err(Status::undecided(why)),
            Verdict::Deny | Verdict::NoOpinion => Ok(Err((info, decision))),
        }
    }
}
