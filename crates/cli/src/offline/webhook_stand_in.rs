//! Replaces a webhook that is not called: evaluates its match conditions and returns an assumed
//! answer.

use std::str::FromStr;

use authz::{
    Attributes, Authorizer, Decision, DecisionFuture, DeniedSubjects, EvaluationErrors, Namespace,
    Rules, Subjects, TraceEvent, TraceRecorder, User, Verdict,
};
use authz_webhook::{FailurePolicy, IncludedSelectors, MatchConditions, MatchResult, ReviewSpec};

/// The replacement of a webhook in a chain.
///
/// It evaluates the match conditions and has no opinion on requests that they exclude. Other requests
/// get the assumed answer. Without one it denies with the error [`WebhookNotCalledError`], so that no later
/// authorizer allows a request that the webhook may deny.
#[derive(Debug)]
pub(crate) struct WebhookStandIn {
    name: String,
    match_conditions: MatchConditions,
    included_selectors: IncludedSelectors,
    failure_policy: FailurePolicy,
    assumed_answer: Option<AssumedAnswer>,
}

/// The decision depends on a webhook that was not called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("webhook {name:?} would decide, but the command does not call webhooks")]
pub(super) struct WebhookNotCalledError {
    name: String,
}

/// The value of `--webhook`: a webhook and its assumed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AssumedWebhookAnswer {
    pub(super) webhook_name: String,
    pub(super) assumed_answer: AssumedAnswer,
}

/// The assumed answer of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AssumedAnswer {
    /// The webhook returns this verdict.
    Verdict(Verdict),
    /// The call fails, so the failure policy applies.
    Error,
}

impl FromStr for AssumedWebhookAnswer {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "write NAME=allow, NAME=deny, NAME=no-opinion or NAME=error";
        let (name, answer) = text.split_once('=').ok_or(FORM)?;
        let answer = match answer {
            "allow" => AssumedAnswer::Verdict(Verdict::Allow),
            "deny" => AssumedAnswer::Verdict(Verdict::Deny),
            "no-opinion" => AssumedAnswer::Verdict(Verdict::NoOpinion),
            "error" => AssumedAnswer::Error,
            _ => return Err(FORM),
        };
        Ok(Self { webhook_name: name.to_owned(), assumed_answer: answer })
    }
}

/// Reports whether the cause of the failure is [`WebhookNotCalledError`].
pub(crate) fn is_webhook_not_called(failure: Option<&EvaluationErrors>) -> bool {
    let causes = failure.map_or(&[][..], EvaluationErrors::errors);
    causes.iter().any(|cause| cause.is::<WebhookNotCalledError>())
}

impl WebhookStandIn {
    pub(super) fn new(
        name: &str,
        match_conditions: MatchConditions,
        failure_policy: FailurePolicy,
        assumed_answer: Option<AssumedAnswer>,
    ) -> Self {
        let selectors = match_conditions.used_selectors();
        Self {
            name: name.to_owned(),
            match_conditions,
            included_selectors: selectors,
            failure_policy,
            assumed_answer,
        }
    }

    fn decide_from_assumed_answer(
        &self,
        attributes: &Attributes<'_>,
        recorder: &mut TraceRecorder<'_>,
    ) -> Decision {
        let request = ReviewSpec::new(attributes, self.included_selectors);
        match self.match_conditions.evaluate_and_trace(&request, recorder) {
            MatchResult::Excluded { .. } => Decision::no_opinion(""),
            MatchResult::Failed(error) => {
                recorder.record_trace_event(|| {
                    TraceEvent::new("failurePolicy")
                        .with_trace_event_value("is", self.failure_policy.name())
                });
                self.apply_failure_policy(EvaluationErrors::message(error))
            }
            MatchResult::Matched => match self.assumed_answer {
                Some(AssumedAnswer::Verdict(verdict)) => {
                    recorder.record_trace_event(|| {
                        TraceEvent::new("assumed").with_trace_event_value("answer", verdict.name())
                    });
                    Decision { verdict, ..Decision::default() }
                }
                Some(AssumedAnswer::Error) => {
                    recorder.record_trace_event(|| {
                        let event =
                            TraceEvent::new("assumed").with_trace_event_value("answer", "error");
                        event.with_trace_event_value("failurePolicy", self.failure_policy.name())
                    });
                    let message = format!("webhook {:?} is assumed to fail", self.name);
                    self.apply_failure_policy(EvaluationErrors::message(message))
                }
                None => {
                    Decision::deny("").with_error(WebhookNotCalledError { name: self.name.clone() })
                }
            },
        }
    }

    /// Returns the decision of the failure policy.
    fn apply_failure_policy(&self, failure: EvaluationErrors) -> Decision {
        Decision {
            verdict: self.failure_policy_verdict(),
            error: Some(failure),
            ..Decision::default()
        }
    }

    fn failure_policy_verdict(&self) -> Verdict {
        match self.failure_policy {
            FailurePolicy::NoOpinion => Verdict::NoOpinion,
            FailurePolicy::Deny => Verdict::Deny,
        }
    }
}

impl Authorizer for WebhookStandIn {
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        mut recorder: TraceRecorder<'a>,
    ) -> DecisionFuture<'a> {
        Box::pin(std::future::ready(self.decide_from_assumed_answer(attributes, &mut recorder)))
    }

    fn rules_for(&self, _: &User, _: Namespace<'_>) -> Rules {
        Rules::unlistable_rules("webhook authorizer does not support user rule resolution")
    }

    /// The subjects that match conditions exclude cannot be listed, so an assumed answer applies only
    /// to a webhook without conditions.
    fn allowed_subjects(&self, _: &Attributes<'_>) -> Subjects {
        let is_always_asked = self.match_conditions.as_slice().is_empty();
        let assumed =
            self.assumed_answer.filter(|_| is_always_asked).map(|assumed| match assumed {
                AssumedAnswer::Verdict(verdict) => verdict,
                AssumedAnswer::Error => self.failure_policy_verdict(),
            });
        match assumed {
            Some(Verdict::Allow) => {
                let everybody = ["system:authenticated", "system:unauthenticated"];
                Subjects { groups: everybody.map(str::to_owned).into(), ..Subjects::default() }
            }
            Some(Verdict::Deny) => {
                Subjects { denied_subjects: DeniedSubjects::Everybody, ..Subjects::default() }
            }
            Some(Verdict::NoOpinion) => Subjects::default(),
            // No flag sets `Unavailable`.
            Some(Verdict::Unavailable(_)) | None => {
                Subjects::unlistable_subjects("webhook authorizer cannot enumerate subjects")
            }
        }
    }
}

/// Creates a replacement with these conditions, for tests.
#[cfg(test)]
pub(crate) fn test_stand_in(
    name: &str,
    conditions: &[&str],
    is_closed: bool,
    assumed: Option<AssumedAnswer>,
) -> WebhookStandIn {
    let compile = |text: &&str| authz_webhook::MatchCondition::compile(text).unwrap();
    let conditions = MatchConditions::V1(conditions.iter().map(compile).collect());
    let policy = if is_closed { FailurePolicy::Deny } else { FailurePolicy::NoOpinion };
    WebhookStandIn::new(name, conditions, policy, assumed)
}

#[cfg(test)]
mod tests {
    use super::*;

    use authz::{Target, Verb};

    const ALLOW: AssumedAnswer = AssumedAnswer::Verdict(Verdict::Allow);

    fn decide(condition: &str, assumed: Option<AssumedAnswer>, policy: FailurePolicy) -> Decision {
        let stand_in = test_stand_in("w", &[condition], policy == FailurePolicy::Deny, assumed);
        let attributes = Attributes { user: None, verb: Verb::GET, target: Target::Path("/x") };
        stand_in.decide_from_assumed_answer(&attributes, &mut TraceRecorder::disabled_recorder())
    }

    #[test]
    fn only_a_request_that_reaches_the_webhook_is_open() {
        let excluded = decide("false", None, FailurePolicy::Deny);
        assert_eq!((excluded.verdict, excluded.error.is_none()), (Verdict::NoOpinion, true));
        let open = decide("true", None, FailurePolicy::NoOpinion);
        assert_eq!(open.verdict, Verdict::Deny);
        assert!(is_webhook_not_called(open.error.as_ref()));
        let text = open.error.map(|error| error.to_string());
        let want = "webhook \"w\" would decide, but the command does not call webhooks";
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
            assert!(!is_webhook_not_called(decision.error.as_ref()));
            assert!(decision.error.is_some_and(|error| error.to_string().contains("no such key")));
        }
    }

    #[test]
    fn the_failure_policy_decides_where_the_webhook_is_taken_to_fail() {
        for (policy, want) in
            [(FailurePolicy::Deny, Verdict::Deny), (FailurePolicy::NoOpinion, Verdict::NoOpinion)]
        {
            let decision = decide("true", Some(AssumedAnswer::Error), policy);
            assert_eq!(decision.verdict, want);
            let error = decision.error.map(|error| error.to_string());
            assert_eq!(error.as_deref(), Some("webhook \"w\" is assumed to fail"));
        }
    }

    #[test]
    fn assumptions_name_a_webhook_and_its_answer() {
        let assumption = |text: &str| text.parse::<AssumedWebhookAnswer>();
        let answer = AssumedAnswer::Verdict(Verdict::NoOpinion);
        let want = AssumedWebhookAnswer { webhook_name: "a.b".to_owned(), assumed_answer: answer };
        assert_eq!(assumption("a.b=no-opinion"), Ok(want));
        assert_eq!(assumption("a=error").map(|own| own.assumed_answer), Ok(AssumedAnswer::Error));
        for text in ["", "a", "a=", "a=maybe", "a=Allow"] {
            assert!(assumption(text).is_err(), "{text}");
        }
    }
}
