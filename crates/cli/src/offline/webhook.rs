//! Webhooks that can not be called: what is known of their answer without them.

use std::str::FromStr;

use authz::{
    Answer, Attributes, Authorizer, Decision, Denied, Event, Failure, Recorder, Rules, Subjects,
    User, Verdict,
};
use authz_webhook::{FailurePolicy, MatchConditions, Matching, ReviewSpec, Selectors};

/// Stands in a chain where a webhook would stand.
///
/// Its match conditions are evaluated, so requests that they exclude are passed on. A request that
/// the webhook would be asked about gets the assumed answer, or else is denied with [`Unanswered`]
/// as the error, so that no later authorizer allows what the webhook may deny.
#[derive(Debug)]
pub(crate) struct StandIn {
    name: String,
    match_conditions: MatchConditions,
    selectors: Selectors,
    failure_policy: FailurePolicy,
    assumed: Option<Verdict>,
}

/// The answer depends on a webhook that was not asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("webhook {name:?} would be asked; its answer is not known without a server")]
pub(super) struct Unanswered {
    name: String,
}

/// What a webhook is taken to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assumption {
    pub(super) name: String,
    pub(super) verdict: Verdict,
}

impl FromStr for Assumption {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "write NAME=allow, NAME=deny or NAME=no-opinion";
        let (name, answer) = text.split_once('=').ok_or(FORM)?;
        let verdict = match answer {
            "allow" => Verdict::Allow,
            "deny" => Verdict::Deny,
            "no-opinion" => Verdict::NoOpinion,
            _ => return Err(FORM),
        };
        Ok(Self { name: name.to_owned(), verdict })
    }
}

/// Reports whether the failure is that a webhook was not asked.
pub(super) fn is_unanswered(failure: Option<&Failure>) -> bool {
    let causes = failure.map_or(&[][..], Failure::causes);
    causes.iter().any(|cause| cause.is::<Unanswered>())
}

impl StandIn {
    pub(super) fn new(
        name: &str,
        match_conditions: MatchConditions,
        failure_policy: FailurePolicy,
        assumed: Option<Verdict>,
    ) -> Self {
        let selectors = match_conditions.selectors();
        Self { name: name.to_owned(), match_conditions, selectors, failure_policy, assumed }
    }

    fn decide(&self, attributes: &Attributes<'_>, recorder: &mut Recorder<'_>) -> Decision {
        let request = ReviewSpec::new(attributes, self.selectors);
        match self.match_conditions.evaluate_recorded(&request, recorder) {
            Matching::Excluded { .. } => Decision::no_opinion(""),
            Matching::Failed(error) => {
                let verdict = match self.failure_policy {
                    FailurePolicy::NoOpinion => Verdict::NoOpinion,
                    FailurePolicy::Deny => Verdict::Deny,
                };
                recorder
                    .note(|| Event::new("failurePolicy").with("is", self.failure_policy.name()));
                Decision { verdict, ..Decision::default() }.with_error(Failure::message(error))
            }
            Matching::Matched => match self.assumed {
                Some(verdict) => {
                    recorder.note(|| Event::new("assumed").with("answer", verdict.name()));
                    Decision { verdict, ..Decision::default() }
                }
                None => Decision::deny("").with_error(Unanswered { name: self.name.clone() }),
            },
        }
    }
}

impl Authorizer for StandIn {
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        mut recorder: Recorder<'a>,
    ) -> Answer<'a> {
        Box::pin(std::future::ready(self.decide(attributes, &mut recorder)))
    }

    fn rules_for(&self, _: &User, _: &str) -> Rules {
        Rules::unknown("webhook authorizer does not support user rule resolution")
    }

    /// Whom conditions exclude can not be listed, so an assumption helps only without them.
    fn allowed_subjects(&self, _: &Attributes<'_>) -> Subjects {
        let is_always_asked = self.match_conditions.as_slice().is_empty();
        match self.assumed.filter(|_| is_always_asked) {
            Some(Verdict::Allow) => {
                let everybody = ["system:authenticated", "system:unauthenticated"];
                Subjects { groups: everybody.map(str::to_owned).into(), ..Subjects::default() }
            }
            Some(Verdict::Deny) => Subjects { denied: Denied::Everybody, ..Subjects::default() },
            Some(Verdict::NoOpinion) => Subjects::default(),
            None => Subjects::unknown("webhook authorizer cannot enumerate subjects"),
        }
    }
}

/// A webhook with these conditions, for tests.
#[cfg(test)]
pub(crate) fn stand_in(
    name: &str,
    conditions: &[&str],
    is_closed: bool,
    assumed: Option<Verdict>,
) -> StandIn {
    let compile = |text: &&str| authz_webhook::MatchCondition::compile(text).unwrap();
    let conditions = MatchConditions::V1(conditions.iter().map(compile).collect());
    let policy = if is_closed { FailurePolicy::Deny } else { FailurePolicy::NoOpinion };
    StandIn::new(name, conditions, policy, assumed)
}

#[cfg(test)]
mod tests {
    use super::*;

    use authz::Target;

    fn decide(condition: &str, assumed: Option<Verdict>, policy: FailurePolicy) -> Decision {
        let stand_in = stand_in("w", &[condition], policy == FailurePolicy::Deny, assumed);
        let attributes = Attributes { user: None, verb: "get", target: Target::Path("/x") };
        stand_in.decide(&attributes, &mut Recorder::off())
    }

    #[test]
    fn only_a_request_that_reaches_the_webhook_is_open() {
        let excluded = decide("false", None, FailurePolicy::Deny);
        assert_eq!((excluded.verdict, excluded.error.is_none()), (Verdict::NoOpinion, true));
        let open = decide("true", None, FailurePolicy::NoOpinion);
        assert_eq!(open.verdict, Verdict::Deny);
        assert!(is_unanswered(open.error.as_ref()));
        let text = open.error.map(|error| error.to_string());
        let want = "webhook \"w\" would be asked; its answer is not known without a server";
        assert_eq!(text.as_deref(), Some(want));
        let assumed = decide("true", Some(Verdict::Allow), FailurePolicy::Deny);
        assert_eq!((assumed.verdict, assumed.error.is_none()), (Verdict::Allow, true));
    }

    #[test]
    fn the_failure_policy_decides_where_a_condition_fails() {
        let failing = "request.resourceAttributes.verb == 'get'";
        for (policy, want) in
            [(FailurePolicy::Deny, Verdict::Deny), (FailurePolicy::NoOpinion, Verdict::NoOpinion)]
        {
            let decision = decide(failing, Some(Verdict::Allow), policy);
            assert_eq!(decision.verdict, want);
            assert!(!is_unanswered(decision.error.as_ref()));
            assert!(decision.error.is_some_and(|error| error.to_string().contains("no such key")));
        }
    }

    #[test]
    fn assumptions_name_a_webhook_and_its_answer() {
        let assumption = |text: &str| text.parse::<Assumption>();
        let want = Assumption { name: "a.b".to_owned(), verdict: Verdict::NoOpinion };
        assert_eq!(assumption("a.b=no-opinion"), Ok(want));
        for text in ["", "a", "a=", "a=maybe", "a=Allow"] {
            assert!(assumption(text).is_err(), "{text}");
        }
    }
}
