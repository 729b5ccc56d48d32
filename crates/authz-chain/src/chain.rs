//! The chain: consults one authorizer after the other.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use authz::{
    Abstention, Attributes, Decision, EvaluationErrors, Namespace, Reason, Rules, SharedText,
    TraceEvent, TraceRecorder, User, Verdict,
};
use authz_webhook::{FailOpenCause, WebhookDecision};

use crate::chain_member::ChainMember;
use crate::configuration::ConfigurationError;
use crate::system_masters;

/// A function that receives the verdict of one authorizer of a chain and its duration, for metrics.
///
/// Each authorizer has its own, which looks up labels once. It runs on the path of every decision, so it must be
/// quick and must not block.
pub type DecisionObserver = Arc<dyn Fn(Verdict, Duration) + Send + Sync>;

/// Authorizers in the order in which they are consulted, after the one for `system:masters`, which is always the first.
///
/// A chain is a snapshot: a change of the objects of an authorizer makes a new chain.
///
/// INVARIANT: names are unique.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    chain_members: Vec<ObservedMember>,
}

/// One authorizer of a chain and the observer of its decisions.
#[derive(Clone)]
struct ObservedMember {
    chain_member: ChainMember,
    decision_observer: Option<DecisionObserver>,
}

/// The decision of a chain.
#[derive(Debug, Clone)]
#[must_use = "a decision must be enforced"]
pub struct ChainDecision<'c> {
    /// The decision of the chain.
    pub decision: Decision,
    /// The name of the authorizer that decided; `None` if all abstained.
    pub deciding_authorizer_name: Option<&'c str>,
    /// The names of the webhooks that were not called, in order: a match condition is false, or cannot be evaluated and
    /// the webhook fails open.
    pub skipped_webhooks: Vec<&'c str>,
    /// The webhooks that failed open, each with the cause, in order.
    pub failed_open_webhooks: Vec<(&'c str, FailOpenCause)>,
}

impl<'c> ChainDecision<'c> {
    /// Makes a decision in which no webhook was skipped or failed open.
    pub fn new(decision: Decision, decided_by: Option<&'c str>) -> Self {
        Self {
            decision,
            deciding_authorizer_name: decided_by,
            skipped_webhooks: Vec::new(),
            failed_open_webhooks: Vec::new(),
        }
    }
}

impl Chain {
    /// Makes a chain of these authorizers. A chain without authorizers allows only `system:masters`.
    ///
    /// # Errors
    /// Fails if two authorizers have the same name.
    pub fn new(members: Vec<ChainMember>) -> Result<Self, ConfigurationError> {
        Self::with_observers(members.into_iter().map(|member| (member, None)))
    }

    /// A chain of these authorizers, each with the observer of its decisions.
    ///
    /// # Errors
    /// Fails if two authorizers have the same name.
    pub fn with_observers(
        members: impl IntoIterator<Item = (ChainMember, Option<DecisionObserver>)>,
    ) -> Result<Self, ConfigurationError> {
        let members: Vec<ObservedMember> = members
            .into_iter()
            .map(|(member, observer)| ObservedMember {
                chain_member: member,
                decision_observer: observer,
            })
            .collect();
        let mut names = BTreeSet::new();
        for name in members.iter().map(|observed| observed.chain_member.name()) {
            if !names.insert(name) {
                return Err(ConfigurationError::RepeatedName(name.to_owned()));
            }
        }
        Ok(Self { chain_members: members })
    }

    /// The authorizers that were configured.
    pub fn chain_members(&self) -> impl Iterator<Item = &ChainMember> {
        self.chain_members.iter().map(|observed| &observed.chain_member)
    }

    /// Consults each authorizer in turn.
    ///
    /// 1. The first to allow or deny decides, with its reason and its error. Reasons and errors of earlier
    ///    authorizers are dropped.
    /// 2. The walk also ends at the first authorizer that this server could not consult. No later authorizer
    ///    decides in its place.
    /// 3. If all abstain, so does the chain. Its reason lists the reasons that were given, and the errors
    ///    are merged.
    ///
    /// `caller` is the name of the user who sent the request; the attributes may be about another user.
    pub async fn authorize_for_caller(
        &self,
        caller: &str,
        attributes: &Attributes<'_>,
        mut recorder: TraceRecorder<'_>,
    ) -> ChainDecision<'_> {
        let mut abstentions = Abstentions::default();
        let mut skipped = Vec::new();
        let mut failed_open = Vec::new();
        let decision = system_masters::authorize_system_masters(attributes);
        begin_authorizer_trace(system_masters::NAME, &mut recorder)
            .record_trace_event(|| TraceEvent::verdict_trace_event(&decision));
        if let Some(decision) =
            abstentions.take_final_or_keep_abstention(decision, || system_masters::NAME.into())
        {
            return ChainDecision::new(decision, Some(system_masters::NAME));
        }
        for observed in &self.chain_members {
            let name = observed.chain_member.name();
            let mut inner = begin_authorizer_trace(name, &mut recorder);
            let answered = observed.authorize(caller, attributes, inner.reborrow_recorder()).await;
            inner.record_trace_event(|| TraceEvent::verdict_trace_event(&answered.decision));
            if answered.is_webhook_skipped {
                skipped.push(name);
            }
            failed_open.extend(answered.fail_open_cause.map(|cause| (name, cause)));
            let ended = abstentions.take_final_or_keep_abstention(answered.decision, || {
                observed.chain_member.name_as_shared_text()
            });
            if let Some(decision) = ended {
                return ChainDecision {
                    decision,
                    deciding_authorizer_name: Some(name),
                    skipped_webhooks: skipped,
                    failed_open_webhooks: failed_open,
                };
            }
        }
        ChainDecision {
            decision: abstentions.into_no_opinion_decision(),
            deciding_authorizer_name: None,
            skipped_webhooks: skipped,
            failed_open_webhooks: failed_open,
        }
    }

    /// Decides a request that the user in the attributes sent; see [`authorize_for_caller`](Self::authorize_for_caller).
    pub async fn authorize(
        &self,
        attributes: &Attributes<'_>,
        recorder: TraceRecorder<'_>,
    ) -> ChainDecision<'_> {
        let caller = attributes.user.map_or("", |user| &user.name);
        self.authorize_for_caller(caller, attributes, recorder).await
    }

    /// Lists the rules of a user in a namespace: those of all authorizers in order. The list is incomplete if one of them
    /// is. `system:masters` does not add a rule.
    pub fn rules_for(&self, user: &User, namespace: Namespace<'_>) -> Rules {
        let mut all = Rules::default();
        for member in self.chain_members() {
            let rules = member.rules_for(user, namespace);
            all.resource_rules.extend(rules.resource_rules);
            all.non_resource_rules.extend(rules.non_resource_rules);
            all.is_incomplete |= rules.is_incomplete;
            merge_errors(&mut all.error, rules.error);
        }
        all
    }
}

impl ObservedMember {
    async fn authorize(
        &self,
        caller: &str,
        attributes: &Attributes<'_>,
        recorder: TraceRecorder<'_>,
    ) -> WebhookDecision {
        let Some(observer) = &self.decision_observer else {
            return self.chain_member.authorize(caller, attributes, recorder).await;
        };
        let begun = Instant::now();
        let answered = self.chain_member.authorize(caller, attributes, recorder).await;
        observer(answered.decision.verdict, begun.elapsed());
        answered
    }
}

impl fmt::Debug for ObservedMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chain_member.fmt(f)
    }
}

fn begin_authorizer_trace<'r>(
    name: &str,
    recorder: &'r mut TraceRecorder<'_>,
) -> TraceRecorder<'r> {
    recorder.record_parent_trace_event(|| {
        TraceEvent::new("authorizer").with_trace_event_value("name", name)
    })
}

/// The reasons and errors of the authorizers that abstained.
#[derive(Default)]
struct Abstentions {
    abstentions: Vec<Abstention>,
    error: Option<EvaluationErrors>,
}

impl Abstentions {
    /// Returns the decision if it is final. If the authorizer abstained, keeps its reason and its error.
    fn take_final_or_keep_abstention(
        &mut self,
        decision: Decision,
        name: impl FnOnce() -> SharedText,
    ) -> Option<Decision> {
        match decision.verdict {
            Verdict::Allow | Verdict::Deny | Verdict::Unavailable(_) => Some(decision),
            Verdict::NoOpinion => {
                if !decision.reason.is_empty() {
                    let reason = decision.reason;
                    self.abstentions.push(Abstention { authorizer_name: name(), reason });
                }
                merge_errors(&mut self.error, decision.error);
                None
            }
        }
    }

    fn into_no_opinion_decision(self) -> Decision {
        let reason = match self.abstentions.as_slice() {
            [] => Reason::default(),
            [_, ..] => Reason::Abstentions(self.abstentions.into()),
        };
        Decision { error: self.error, ..Decision::no_opinion(reason) }
    }
}

fn merge_errors(into: &mut Option<EvaluationErrors>, more: Option<EvaluationErrors>) {
    match (into.as_mut(), more) {
        (Some(into), Some(more)) => into.append_errors(more),
        (None, more @ Some(_)) => *into = more,
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests;
