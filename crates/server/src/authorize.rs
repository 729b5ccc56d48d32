//! Asking the chain. A request goes on only with the [`Authorized`] that this makes.

use std::sync::Arc;

use authz::{Attributes, Decision, Recorder, RequestInfo, Resource, Target, User, Verdict};
use object::Status;
use store::Store;

use crate::gate::Authorized;
use crate::rest::Call;
use crate::view::View;

/// Asks whether a request is allowed.
pub(crate) async fn authorize(
    view: Arc<View>,
    user: Arc<User>,
    info: RequestInfo,
) -> Result<(Authorized, Decision), Box<(RequestInfo, Decision)>> {
    let decision = {
        let attributes = info.attributes(Some(&user));
        view.chain.authorize(&attributes, Recorder::off()).await.decision
    };
    match decision.verdict {
        Verdict::Allow => Ok((Authorized::new(user, info, view), decision)),
        Verdict::Deny | Verdict::NoOpinion => Err(Box::new((info, decision))),
    }
}

impl<S: Store> Call<'_, S> {
    /// Asks the same question with another verb.
    pub(crate) async fn authorize_verb(&self, verb: &str) -> Result<(), Status> {
        let attributes = Attributes { verb, ..self.authorized.attributes() };
        let view = self.host.follower.view();
        let outcome = view.chain.authorize(&attributes, Recorder::off()).await;
        match outcome.decision.verdict {
            Verdict::Allow => Ok(()),
            Verdict::Deny | Verdict::NoOpinion => {
                Err(reviews::forbidden(&attributes, &outcome.decision.reason))
            }
        }
    }

    /// Whether the caller may do something to something else.
    pub(crate) async fn may(&self, verb: &str, target: &Resource<'_>) -> bool {
        let user: &User = self.authorized.user();
        let attributes = Attributes { user: Some(user), verb, target: Target::Resource(*target) };
        let view = self.host.follower.view();
        let outcome = view.chain.authorize(&attributes, Recorder::off()).await;
        outcome.decision.verdict == Verdict::Allow
    }
}
