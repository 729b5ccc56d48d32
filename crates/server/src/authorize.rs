//! Asking the chain. A request goes on only with the [`Authorized`] that this makes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use authz::{
    Answer, Attributes, Authorizer, Decision, Recorder, RequestInfo, Resource, Target, User,
    Verdict,
};
use authz_chain::{Chain, Outcome};
use object::Status;
use resources::Verb;
use store::Store;

use crate::gate::Authorized;
use crate::rest::Call;
use crate::view::View;

/// Asks whether a request is allowed.
pub(crate) async fn authorize(
    view: Arc<View>,
    user: Arc<User>,
    info: RequestInfo,
) -> (Result<Authorized, RequestInfo>, Decided) {
    let begun = Instant::now();
    let decided = {
        let attributes = info.attributes(Some(&user));
        let outcome = view.chain.authorize(&attributes, Recorder::off()).await;
        Decided {
            skipped: (!outcome.skipped.is_empty()).then(|| outcome.skipped.join(",")),
            failed_open_by: failed_open_by(&outcome),
            decision: outcome.decision,
            took: begun.elapsed(),
        }
    };
    let authorized = match decided.decision.verdict {
        Verdict::Allow => Ok(Authorized::new(user, info, view)),
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
fn failed_open_by(outcome: &Outcome<'_>) -> Option<String> {
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
    ) -> Answer<'a> {
        Box::pin(async move { self.0.authorize(attributes, recorder).await.decision })
    }
}

impl<S: Store> Call<'_, S> {
    /// The newest objects, and the authorizers that the request began with.
    pub(crate) fn chain(&self) -> Arc<Chain> {
        self.host.follower.view().chain_as_of(self.authorized.view())
    }

    /// Asks whether the user may do something else to the same target.
    ///
    /// # Errors
    /// 403 in the words of the chain.
    pub(crate) async fn authorize_verb(&self, verb: Verb) -> Result<Authorized, Status> {
        let info = RequestInfo { verb: verb.name().into(), ..self.authorized.info().clone() };
        let attributes = info.attributes(Some(self.authorized.user()));
        let chain = self.chain();
        let outcome = chain.authorize(&attributes, Recorder::off()).await;
        match outcome.decision.verdict {
            Verdict::Allow => {
                let user = Arc::clone(self.authorized.user());
                Ok(Authorized::new(user, info, Arc::clone(self.authorized.view())))
            }
            Verdict::Unavailable(why) => Err(Status::undecided(why)),
            Verdict::Deny | Verdict::NoOpinion => {
                Err(reviews::forbidden(&attributes, &outcome.decision.reason))
            }
        }
    }

    /// Whether the caller may do something to something else.
    ///
    /// # Errors
    /// 429, 503 or 504 if this server failed to ask.
    pub(crate) async fn may(&self, verb: &str, target: &Resource<'_>) -> Result<bool, Status> {
        let user: &User = self.authorized.user();
        let attributes = Attributes { user: Some(user), verb, target: Target::Resource(*target) };
        let chain = self.chain();
        let outcome = chain.authorize(&attributes, Recorder::off()).await;
        match outcome.decision.verdict {
            Verdict::Allow => Ok(true),
            Verdict::Deny | Verdict::NoOpinion => Ok(false),
            Verdict::Unavailable(why) => Err(Status::undecided(why)),
        }
    }
}
