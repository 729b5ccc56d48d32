//! Webhooks that are not called: what is known of their answer without them.

use std::str::FromStr;

use authz::{
    Attributes, Authorizer, Decision, DecisionFuture, DeniedSubjects, EvaluationErrors, Event,
    Recorder, Rules, Subjects, User, Verdict,
};
use authz_webhook::{FailurePolicy, MatchConditions, MatchResult, ReviewSpec, Selectors};

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
    assumed: Option<Assumed>,
}

/// The answer depends on a webhook that was not asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("webhook {name:?} would be asked, and webhooks are not called here")]
pub(super) struct Unanswered {
    name: String,
}

/// What a webhook is taken to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assumption {
    pub(super) name: String,
    pub(super) answer: Assumed,
}

/// An answer that stands in for that of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assumed {
    /// It answers, and this.
    Verdict(Verdict),
    /// It does not answer, so that its failure policy counts.
    Error,
}

impl FromStr for Assumption {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "write NAME=allow, NAME=deny, NAME=no-opinion or NAME=error";
        let (name, answer) = text.split_once('=').ok_or(FORM)?;
        let answer = match answer {
            "allow" => Assumed::Verdict(Verdict::Allow),
            "deny" => Assumed::Verdict(Verdict::Deny),
            "no-opinion" => Assumed::Verdict(Verdict::NoOpinion),
            "error" => Assumed::Error,
            _ => return Err(FORM),
        };
        Ok(Self { name: name.to_owned(), answer })
    }
}

/// Reports whether the failure is that a webhook was not asked.
pub(crate) fn is_unanswered(failure: Option<&EvaluationErrors>) -> bool {
    let causes = failure.map_or(&[][..], EvaluationErrors::causes);
    causes.iter().any(|cause| cause.is::<Unanswered>())
}

impl StandIn {
    pub(super) fn new(
        name: &str,
        match_conditions: MatchConditions,
        failure_policy: FailurePolicy,
        assumed: Option<Assumed>,
    ) -> Self {
        let selectors = match_conditions.selectors();
        Self { name: name.to_owned(), match_conditions, selectors, failure_policy, assumed }
    }

    fn decide(&self, attributes: &Attributes<'_>, recorder: &mut Recorder<'_>) -> Decision {
        let request = ReviewSpec::new(attributes, self.selectors);
        match self.match_conditions.evaluate_recorded(&request, recorder) {
            MatchResult::Excluded { .. } => Decision::no_opinion(""),
            MatchResult::Failed(error) => {
                recorder
                    .note(|| Event::new("failurePolicy").with("is", self.failure_policy.name()));
                self.failed(EvaluationErrors::message(error))
            }
            MatchResult::Matched => match self.assumed {
                Some(Assumed::Verdict(verdict)) => {
                    recorder.note(|| Event::new("assumed").with("answer", verdict.name()));
                    Decision { verdict, ..Decision::default() }
                }
                Some(Assumed::Error) => {
                    recorder.note(|| {
                        let event = Event::new("assumed").with("answer", "error");
                        event.with("failurePolicy", self.failure_policy.name())
                    });
                    let message = format!("webhook {:?} is taken to fail", self.name);
                    self.failed(EvaluationErrors::message(message))
                }
                None => Decision::deny("").with_error(Unanswered { name: self.name.clone() }),
            },
        }
    }

    /// What the failure policy makes of a failure.
    fn failed(&self, failure: EvaluationErrors) -> Decision {
        Decision { verdict: self.verdict_of_failure(), error: Some(failure), ..Decision::default() }
    }

    fn verdict_of_failure(&self) -> Verdict {
        match self.failure_policy {
            FailurePolicy::NoOpinion => Verdict::NoOpinion,
            FailurePolicy::Deny => Verdict::Deny,
        }
    }
}

impl Authorizer for StandIn {
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        mut recorder: Recorder<'a>,
    ) -> DecisionFuture<'a> {
        Box::pin(std::future::ready(self.decide(attributes, &mut recorder)))
    }

    fn rules_for(&self, _: &User, _: &str) -> Rules {
        Rules::unknown("webhook authorizer does not support user rule resolution")
    }

    /// Whom conditions exclude can not be listed, so an assumption helps only without them.
    fn allowed_subjects(&self, _: &Attributes<'_>) -> Subjects {
        let is_always_asked = self.match_conditions.as_slice().is_empty();
        let assumed = self.assumed.filter(|_| is_always_asked).map(|assumed| match assumed {
            Assumed::Verdict(verdict) => verdict,
            Assumed::Error => self.verdict_of_failure(),
        });
        match assumed {
            Some(Verdict::Allow) => {
                let everybody = ["system:authenticated", "system:unauthenticated"];
                Subjects { groups: everybody.map(str::to_owned).into(), ..Subjects::default() }
            }
            Some(Verdict::Deny) => {
                Subjects { denied: DeniedSubjects::Everybody, ..Subjects::default() }
            }
            Some(Verdict::NoOpinion) => Subjects::default(),
            // Nobody assumes that this program fails.
            Some(Verdict::Unavailable(_)) | None => {
                Subjects::unknown("webhook authorizer cannot enumerate subjects")
            }
        }
    }
}

/// A webhook with these conditions, for tests.
#[cfg(test)]
pub(crate) fn stand_in(
    name: &str,
    conditions: &[&str],
    is_closed: bool,
    assumed: Option<Assumed>,
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

    const ALLOW: Assumed = Assumed::Verdict(Verdict::Allow);

    fn decide(condition: &str, assumed: Option<Assumed>, policy: FailurePolicy) -> Decision {
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
        let want = "webhook \"w\" would be asked, and webhooks are not called here";
        assert_eq!(text.as_deref(), Some(want));
        let assumed = decide("true", Some(ALLOW), FailurePolicy::Deny);
        assert_eq!((assumed.verdict, assumed.error.is_none()), (Verdict::Allow, true));
    }

    #[test]
    fn the_failure_policy_decides_where_a_condition_fails() {
        let failing = "request.resourceAttributes.verb == 'get'";
        for (policy, want) in
            [(FailurePolicy::Deny, Verdict::Deny), (FailurePolicy::NoOpinion, Verdict::NoOpinion)]
        {
            let decision = decide(failing, Some(ALLOW), policy);
            assert_eq!(decision.verdict, want);
            assert!(!is_unanswered(decision.error.as_ref()));
            assert!(decision.error.is_some_and(|error| error.to_string().contains("no such key")));
        }
    }

    #[test]
    fn the_failure_policy_decides_where_the_webhook_is_taken_to_fail() {
        for (policy, want) in
            [(FailurePolicy::Deny, Verdict::Deny), (FailurePolicy::NoOpinion, Verdict::NoOpinion)]
        {
            let decision = decide("true", Some(Assumed::Error), policy);
            assert_eq!(decision.verdict, want);
            let error = decision.error.map(|error| error.to_string());
            assert_eq!(error.as_deref(), Some("webhook \"w\" is taken to fail"));
        }
    }

    #[test]
    fn assumptions_name_a_webhook_and_its_answer() {
        let assumption = |text: &str| text.parse::<Assumption>();
        let answer = Assumed::Verdict(Verdict::NoOpinion);
        let want = Assumption { name: "a.b".to_owned(), answer };
        assert_eq!(assumption("a.b=no-opinion"), Ok(want));
        assert_eq!(assumption("a=error").map(|own| own.answer), Ok(Assumed::Error));
        for text in ["", "a", "a=", "a=maybe", "a=Allow"] {
            assert!(assumption(text).is_err(), "{text}");
        }
    }
}
