//! The authorizer: when the webhook is called, and the decision that its answer or failure makes.

use std::fmt;
use std::sync::Arc;

use authz::{
    Attributes, Decision, EvaluationErrors, Namespace, Reason, Rules, SharedText, Subjects,
    TraceRecorder, User, Verdict,
};
use tokio::time::Instant;

use crate::call_error::CallError;
use crate::decode_response::ReviewStatus;
use crate::health::WebhookHealth;
use crate::match_conditions::MatchResult;
use crate::observer::{AttemptResult, FailOpenCause, MatchResultKind, WebhookObserver};
use crate::review_spec::{IncludedSelectors, ReviewSpec};
use crate::settings::{FailurePolicy, WebhookSettings};
use crate::trace_events;
use crate::transport::Transport;
use crate::webhook_answers::{AnswerSource, WebhookAnswers};
use crate::webhook_call::attempt_result_of_error;
use crate::webhook_limits::WebhookLimits;

/// One webhook of a chain.
///
/// Needs a Tokio runtime with a timer. All requests share it, and a reload that does not change its configuration
/// keeps it, so that cached answers stay.
pub struct Webhook {
    name: Arc<str>,
    settings: WebhookSettings,
    included_selectors: IncludedSelectors,
    webhook_answers: Arc<WebhookAnswers>,
    webhook_observer: Arc<dyn WebhookObserver>,
}

/// The decision of an authorizer, and whether a webhook was skipped or failed open.
#[derive(Debug, Clone)]
#[must_use = "a decision must be enforced"]
pub struct WebhookDecision {
    /// The decision about the request.
    pub decision: Decision,
    /// The webhook was not called: a match condition is false, or one cannot be evaluated and the failure policy is
    /// `NoOpinion`.
    pub is_webhook_skipped: bool,
    /// The failure that the failure policy turned into no opinion.
    pub fail_open_cause: Option<FailOpenCause>,
}

impl From<Decision> for WebhookDecision {
    fn from(decision: Decision) -> Self {
        Self { decision, is_webhook_skipped: false, fail_open_cause: None }
    }
}

impl Webhook {
    /// A webhook that is called over `transport`.
    pub fn new(
        name: &str,
        settings: WebhookSettings,
        transport: Arc<dyn Transport>,
        limits: WebhookLimits,
        observer: Arc<dyn WebhookObserver>,
    ) -> Self {
        let answers = WebhookAnswers::new(&settings, transport, limits, Arc::clone(&observer));
        let included_selectors = settings.match_conditions.used_selectors();
        Self {
            name: name.into(),
            settings,
            included_selectors,
            webhook_answers: Arc::new(answers),
            webhook_observer: observer,
        }
    }

    /// Decides a request.
    ///
    /// 1. The match conditions are evaluated. If one is false, the webhook is not called and has no opinion. If none
    ///    is false and one cannot be evaluated, the failure policy decides.
    /// 2. A cached answer that has not expired decides.
    /// 3. If a call for the same request is in flight, its answer decides.
    /// 4. Otherwise the webhook is called. If too many calls are in flight, in total or for `caller`, the verdict is
    ///    [`Verdict::Unavailable`].
    /// 5. A well-formed answer decides.
    /// 6. If the webhook failed, the failure policy decides. If this server failed, the verdict is
    ///    [`Verdict::Unavailable`].
    ///
    /// `caller` is the name of the user who sent the request; the attributes may be about another user. Dropping the
    /// future ends the wait; the last waiter of a call ends the call.
    pub async fn authorize_for_caller(
        &self,
        caller: &str,
        attributes: &Attributes<'_>,
        mut recorder: TraceRecorder<'_>,
    ) -> WebhookDecision {
        let (matching, now) = self.evaluate_conditions(attributes, &mut recorder);
        match matching {
            MatchResult::Matched => {}
            MatchResult::Excluded { .. } => {
                trace_events::trace_skipped_webhook(&mut recorder);
                return WebhookDecision {
                    is_webhook_skipped: true,
                    ..Decision::no_opinion(self.reason(SharedText::default())).into()
                };
            }
            MatchResult::Failed(error) => {
                self.webhook_observer.on_condition_error(&error, self.settings.failure_policy);
                let cause = FailOpenCause::MatchCondition;
                return self.apply_failure_policy(cause, None, EvaluationErrors::message(error));
            }
        }
        let hash = self.webhook_answers.hash(attributes);
        if let Some(status) = self.webhook_answers.find_cached_answer(attributes, hash, now) {
            trace_events::trace_cache_hit(&mut recorder);
            return self.decide_by_answer(&status).into();
        }
        // The future is boxed, so that the one for a cache hit stays small.
        Box::pin(self.join_or_call_webhook(caller, attributes, hash, now, recorder)).await
    }

    /// Decides a request of the user in the attributes.
    pub async fn authorize(
        &self,
        attributes: &Attributes<'_>,
        recorder: TraceRecorder<'_>,
    ) -> WebhookDecision {
        let caller = attributes.user.map_or("", |user| &user.name);
        self.authorize_for_caller(caller, attributes, recorder).await
    }

    /// Webhooks cannot list the rules of a user.
    pub fn rules_for(&self, user: &User, namespace: Namespace<'_>) -> Rules {
        let _ = (user, namespace);
        Rules::unlistable_rules("webhook authorizer does not support user rule resolution")
    }

    /// Webhooks cannot list the subjects that they allow.
    pub fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        let _ = attributes;
        Subjects::unlistable_subjects("webhook authorizer cannot enumerate subjects")
    }

    /// The name in the chain.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same name, for values that share it.
    pub fn name_as_arc(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the configured settings of the webhook.
    pub fn settings(&self) -> &WebhookSettings {
        &self.settings
    }

    /// The state of its calls and of its cache.
    pub fn health(&self) -> WebhookHealth {
        self.webhook_answers.health()
    }

    pub(crate) fn webhook_answers(&self) -> &WebhookAnswers {
        &self.webhook_answers
    }

    /// Evaluates the match conditions; also returns the current time.
    #[inline]
    fn evaluate_conditions(
        &self,
        attributes: &Attributes<'_>,
        recorder: &mut TraceRecorder<'_>,
    ) -> (MatchResult, Instant) {
        let started_at = Instant::now();
        let conditions = &self.settings.match_conditions;
        if conditions.as_slice().is_empty() {
            return (MatchResult::Matched, started_at);
        }
        let request = ReviewSpec::new(attributes, self.included_selectors);
        let matching = conditions.evaluate_and_trace(&request, recorder);
        let ended = Instant::now();
        let outcome = match &matching {
            MatchResult::Matched => MatchResultKind::Matched,
            MatchResult::Excluded { has_errors: false } => MatchResultKind::Excluded,
            MatchResult::Excluded { has_errors: true } => MatchResultKind::ExcludedAfterError,
            MatchResult::Failed(_) => MatchResultKind::Failed,
        };
        self.webhook_observer.on_conditions_evaluated(ended - started_at, outcome);
        (matching, ended)
    }

    /// Gets an answer that is not cached: from the call of another check, or from a new call.
    async fn join_or_call_webhook(
        &self,
        caller: &str,
        attributes: &Attributes<'_>,
        hash: u64,
        now: Instant,
        mut recorder: TraceRecorder<'_>,
    ) -> WebhookDecision {
        let (waiter, is_joined) =
            match self.webhook_answers.join_or_begin_call(caller, attributes, hash, now) {
                AnswerSource::Cached(status) => {
                    self.webhook_observer.on_shared_call();
                    trace_events::trace_cache_hit(&mut recorder);
                    return self.decide_by_answer(&status).into();
                }
                AnswerSource::NewCall(waiter) => (waiter, false),
                AnswerSource::SharedCall(waiter) => {
                    self.webhook_observer.on_shared_call();
                    (waiter, true)
                }
                AnswerSource::Rejected(error) => {
                    if let CallError::Busy(busy) = error {
                        self.webhook_observer.on_call_rejected(busy.into());
                        trace_events::trace_call_rejection(busy.into(), &mut recorder);
                    }
                    return self.decide_after_failure(error);
                }
            };
        let end = match waiter.wait_for_result().await {
            Ok(end) => end,
            Err(error) => return self.decide_after_failure(error),
        };
        trace_events::trace_call(&end, is_joined, &mut recorder);
        match &end.review_result {
            Ok(status) => self.decide_by_answer(status).into(),
            Err(error) => self.decide_after_failure(error.clone()),
        }
    }

    /// Decides by a well-formed answer. An answer that both allows and denies is a denial.
    fn decide_by_answer(&self, status: &ReviewStatus) -> Decision {
        let (verdict, error) = match (status.is_allowed, status.is_denied) {
            (true, false) => (Verdict::Allow, None),
            (false, true) => (Verdict::Deny, None),
            (false, false) => (Verdict::NoOpinion, None),
            (true, true) => {
                let text = "webhook subject access review returned both allow and deny response";
                (Verdict::Deny, Some(EvaluationErrors::message(text)))
            }
        };
        Decision { verdict, reason: self.reason(status.reason.clone()), error }
    }

    fn reason(&self, text: SharedText) -> Reason {
        Reason::Webhook { name: Arc::clone(&self.name), text }
    }

    /// Decides after a call failed.
    fn decide_after_failure(&self, error: CallError) -> WebhookDecision {
        match error.fail_open_cause() {
            Ok(cause) => {
                self.apply_failure_policy(cause, Some(attempt_result_of_error(&error)), error)
            }
            Err(why) => Decision::authorizer_unavailable(why).with_error(error).into(),
        }
    }

    /// Decides by the failure policy, after the webhook failed.
    fn apply_failure_policy(
        &self,
        cause: FailOpenCause,
        result: Option<AttemptResult>,
        error: impl Into<EvaluationErrors>,
    ) -> WebhookDecision {
        match self.settings.failure_policy {
            FailurePolicy::NoOpinion => {
                self.webhook_observer.on_fail_open(cause, result);
                let decision =
                    Decision::no_opinion(self.reason(SharedText::default())).with_error(error);
                let is_skipped = cause == FailOpenCause::MatchCondition;
                WebhookDecision {
                    decision,
                    is_webhook_skipped: is_skipped,
                    fail_open_cause: Some(cause),
                }
            }
            FailurePolicy::Deny => {
                Decision::deny(self.reason(SharedText::default())).with_error(error).into()
            }
        }
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, settings, .. } = self;
        f.debug_struct("Webhook")
            .field("name", name)
            .field("settings", settings)
            .finish_non_exhaustive()
    }
}
