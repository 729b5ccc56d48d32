//! Asking one authorizer after the other.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use authz::{
    Abstention, Attributes, Decision, Event, Failure, Reason, Recorder, Rules, SharedText, User,
    Verdict,
};
use authz_webhook::{FailOpenCause, WebhookDecision};

use crate::configuration::ConfigurationError;
use crate::member::Member;
use crate::superuser;

/// Is called with the verdict of one authorizer of a chain and its duration, for metrics.
///
/// Each authorizer has its own, which looks up labels once. It runs on the path of every decision, so it must be
/// quick and must not block.
pub type DecisionObserver = Arc<dyn Fn(Verdict, Duration) + Send + Sync>;

/// Authorizers in the order in which they are asked, after the one for superusers, which is always
/// the first.
///
/// A chain is a snapshot: when what an authorizer decides from changes, a new chain replaces it.
///
/// INVARIANT: names are unique.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    places: Vec<Place>,
}

/// One authorizer of a chain, and who is told what it answers.
#[derive(Clone)]
struct Place {
    member: Member,
    observer: Option<DecisionObserver>,
}

/// What a chain answers.
#[derive(Debug, Clone)]
#[must_use = "a decision that nobody looks at protects nothing"]
pub struct Outcome<'c> {
    /// The answer.
    pub decision: Decision,
    /// The name of the authorizer whose answer it is; `None` if all abstained.
    pub decided_by: Option<&'c str>,
    /// The names of the webhooks that were not asked because a match condition is false, in order.
    pub skipped: Vec<&'c str>,
    /// The webhooks that failed and whose failure policy let the request pass to the next authorizer,
    /// each with what it did wrong, in order.
    pub failed_open: Vec<(&'c str, FailOpenCause)>,
}

impl<'c> Outcome<'c> {
    /// An answer in which no webhook played a part.
    pub fn new(decision: Decision, decided_by: Option<&'c str>) -> Self {
        Self { decision, decided_by, skipped: Vec::new(), failed_open: Vec::new() }
    }
}

impl Chain {
    /// A chain of these authorizers. Without any, only superusers are allowed something.
    ///
    /// # Errors
    /// Fails if two bear one name.
    pub fn new(members: Vec<Member>) -> Result<Self, ConfigurationError> {
        Self::with_observers(members.into_iter().map(|member| (member, None)))
    }

    /// A chain of these authorizers, each with who is told what it answers.
    ///
    /// # Errors
    /// Fails if two bear one name.
    pub fn with_observers(
        members: impl IntoIterator<Item = (Member, Option<DecisionObserver>)>,
    ) -> Result<Self, ConfigurationError> {
        let places: Vec<Place> =
            members.into_iter().map(|(member, observer)| Place { member, observer }).collect();
        let mut names = BTreeSet::new();
        for name in places.iter().map(|place| place.member.name()) {
            if !names.insert(name) {
                return Err(ConfigurationError::RepeatedName(name.to_owned()));
            }
        }
        Ok(Self { places })
    }

    /// The authorizers that were configured.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.places.iter().map(|place| &place.member)
    }

    /// Asks each authorizer in turn.
    ///
    /// 1. The first to allow or deny decides: its answer stands, with its reason and its error, and
    ///    what was said before is dropped.
    /// 2. The first that this server fails to ask ends the walk as well: what comes after it must not
    ///    decide in its place.
    /// 3. If all abstain, so does the chain. The reasons that were given are joined, a line each
    ///    that begins with the name of the authorizer, and the errors are merged.
    ///
    /// `caller` is the name of the user on whose behalf webhooks are called, who may ask about another
    /// one.
    pub async fn authorize_for(
        &self,
        caller: &str,
        attributes: &Attributes<'_>,
        mut recorder: Recorder<'_>,
    ) -> Outcome<'_> {
        let mut abstentions = Abstentions::default();
        let mut skipped = Vec::new();
        let mut failed_open = Vec::new();
        let decision = superuser::authorize(attributes);
        note(superuser::NAME, &mut recorder).note(|| Event::verdict(&decision));
        if let Some(decision) = abstentions.end_or_keep(decision, || superuser::NAME.into()) {
            return Outcome::new(decision, Some(superuser::NAME));
        }
        for place in &self.places {
            let name = place.member.name();
            let mut inner = note(name, &mut recorder);
            let answered = place.authorize(caller, attributes, inner.reborrow()).await;
            inner.note(|| Event::verdict(&answered.decision));
            if answered.is_skipped {
                skipped.push(name);
            }
            failed_open.extend(answered.failed_open.map(|cause| (name, cause)));
            let ended = abstentions.end_or_keep(answered.decision, || place.member.shared_name());
            if let Some(decision) = ended {
                return Outcome { decision, decided_by: Some(name), skipped, failed_open };
            }
        }
        Outcome { decision: abstentions.into_decision(), decided_by: None, skipped, failed_open }
    }

    /// Asks each authorizer in turn, on behalf of the user who makes the request.
    pub async fn authorize(
        &self,
        attributes: &Attributes<'_>,
        recorder: Recorder<'_>,
    ) -> Outcome<'_> {
        let caller = attributes.user.map_or("", |user| &user.name);
        self.authorize_for(caller, attributes, recorder).await
    }

    /// What the user may do in the namespace, as far as it can be listed: the lists of all
    /// authorizers in order, and incomplete if one is. Superusers are not told apart.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Rules {
        let mut all = Rules::default();
        for member in self.members() {
            let rules = member.rules_for(user, namespace);
            all.resource_rules.extend(rules.resource_rules);
            all.non_resource_rules.extend(rules.non_resource_rules);
            all.is_incomplete |= rules.is_incomplete;
            merge(&mut all.error, rules.error);
        }
        all
    }
}

impl Place {
    async fn authorize(
        &self,
        caller: &str,
        attributes: &Attributes<'_>,
        recorder: Recorder<'_>,
    ) -> WebhookDecision {
        let Some(observer) = &self.observer else {
            return self.member.authorize(caller, attributes, recorder).await;
        };
        let begun = Instant::now();
        let answered = self.member.authorize(caller, attributes, recorder).await;
        observer(answered.decision.verdict, begun.elapsed());
        answered
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.member.fmt(f)
    }
}

fn note<'r>(name: &str, recorder: &'r mut Recorder<'_>) -> Recorder<'r> {
    recorder.enter(|| Event::new("authorizer").with("name", name))
}

/// The reasons and errors of the authorizers that abstained.
#[derive(Default)]
struct Abstentions {
    reasons: Vec<Abstention>,
    error: Option<Failure>,
}

impl Abstentions {
    /// Returns the decision if it ends the walk, and keeps its reason and its error otherwise.
    fn end_or_keep(
        &mut self,
        decision: Decision,
        name: impl FnOnce() -> SharedText,
    ) -> Option<Decision> {
        match decision.verdict {
            Verdict::Allow | Verdict::Deny | Verdict::Unavailable(_) => Some(decision),
            Verdict::NoOpinion => {
                if !decision.reason.is_empty() {
                    let reason = decision.reason;
                    self.reasons.push(Abstention { authorizer: name(), reason });
                }
                merge(&mut self.error, decision.error);
                None
            }
        }
    }

    fn into_decision(self) -> Decision {
        let reason = match self.reasons.as_slice() {
            [] => Reason::default(),
            [_, ..] => Reason::Abstentions(self.reasons.into()),
        };
        Decision { error: self.error, ..Decision::no_opinion(reason) }
    }
}

fn merge(into: &mut Option<Failure>, more: Option<Failure>) {
    match (into.as_mut(), more) {
        (Some(into), Some(more)) => into.merge(more),
        (None, more @ Some(_)) => *into = more,
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests;
