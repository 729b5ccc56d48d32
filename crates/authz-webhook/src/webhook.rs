//! The authorizer: what is asked, when, and what an answer or its absence means (chain §4).

use std::fmt;
use std::sync::Arc;

use authz::{Attributes, Decision, Failure, Recorder, Rules, Subjects, User, Verdict};
use tokio::time::Instant;

use crate::call::result_of;
use crate::conditions::Matching;
use crate::decode::ReviewStatus;
use crate::error::CallError;
use crate::guards::Guards;
use crate::health::Health;
use crate::observe::{AttemptResult, MatchOutcome, Observe, Rejection};
use crate::record;
use crate::review::{ReviewSpec, Selectors};
use crate::service::{Course, Service};
use crate::settings::{FailurePolicy, WebhookSettings};
use crate::transport::Transport;

/// One webhook of a chain.
///
/// Has to be asked within a Tokio runtime with a timer. Shared by all requests, and kept across
/// changes of the configuration that do not concern it, so that its answers stay known.
pub struct Webhook {
    name: Box<str>,
    settings: WebhookSettings,
    selectors: Selectors,
    service: Arc<Service>,
    observe: Arc<dyn Observe>,
}

/// What a webhook says to one question.
#[derive(Debug, Clone)]
#[must_use = "a decision that nobody looks at protects nothing"]
pub struct Answered {
    /// The answer.
    pub decision: Decision,
    /// A match condition is false, so the webhook was not asked.
    pub is_skipped: bool,
}

impl Webhook {
    /// A webhook that is reached by `transport`.
    pub fn new(
        name: &str,
        settings: WebhookSettings,
        transport: Arc<dyn Transport>,
        guards: Guards,
        observe: Arc<dyn Observe>,
    ) -> Self {
        let service = Service::new(&settings, transport, guards, Arc::clone(&observe));
        let selectors = settings.match_conditions.selectors();
        Self { name: name.into(), settings, selectors, service: Arc::new(service), observe }
    }

    /// Answers whether the request is allowed.
    ///
    /// 1. Unless all match conditions hold, the webhook is not asked: it has no opinion if one is
    ///    false, and the failure policy decides if one can not be evaluated.
    /// 2. An answer that is still good is used again.
    /// 3. A call for the same question that is under way is waited for.
    /// 4. Otherwise the webhook is called, unless it is to be left alone or too many calls are in
    ///    flight.
    /// 5. A well-formed answer decides. Without one the failure policy does.
    ///
    /// Dropping the future is giving up. The call goes on as long as somebody else waits for it, and
    /// ends with the last one. When something of ours fails, the answer is that of the failure
    /// policy, never an allowance.
    pub async fn authorize(
        &self,
        attributes: &Attributes<'_>,
        mut recorder: Recorder<'_>,
    ) -> Answered {
        let (matching, now) = self.matching(attributes, &mut recorder);
        match matching {
            Matching::Matched => {}
            Matching::Excluded { .. } => {
                record::note_skipped(&mut recorder);
                return Answered { decision: Decision::no_opinion(""), is_skipped: true };
            }
            Matching::Failed(error) => {
                return answered(self.decision_on_error().with_error(Failure::message(error)));
            }
        }
        let hash = self.service.hash(attributes);
        if let Some(status) = self.service.known(attributes, hash, now) {
            record::note_hit(&mut recorder);
            return answered(decide(&status));
        }
        // On the heap, so that the future stays small for those who find an answer.
        answered(Box::pin(self.ask(attributes, hash, now, recorder)).await)
    }

    /// The rules of a user can not be listed.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Rules {
        let _ = (user, namespace);
        Rules::unknown("webhook authorizer does not support user rule resolution")
    }

    /// Neither can those who are allowed something: only the service knows.
    pub fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        let _ = attributes;
        Subjects::unknown("webhook authorizer cannot enumerate subjects")
    }

    /// The name in the chain.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is configured.
    pub fn settings(&self) -> &WebhookSettings {
        &self.settings
    }

    /// How it is doing.
    pub fn health(&self) -> Health {
        self.service.health()
    }

    /// Evaluates the match conditions, and returns the time at which that was done.
    #[inline]
    fn matching(
        &self,
        attributes: &Attributes<'_>,
        recorder: &mut Recorder<'_>,
    ) -> (Matching, Instant) {
        let began = Instant::now();
        let conditions = &self.settings.match_conditions;
        if conditions.as_slice().is_empty() {
            return (Matching::Matched, began);
        }
        let request = ReviewSpec::new(attributes, self.selectors);
        let matching = conditions.evaluate_recorded(&request, recorder);
        let ended = Instant::now();
        let outcome = match &matching {
            Matching::Matched => MatchOutcome::Matched,
            Matching::Excluded { errors: false } => MatchOutcome::Excluded,
            Matching::Excluded { errors: true } => MatchOutcome::ExcludedAfterError,
            Matching::Failed(_) => MatchOutcome::Failed,
        };
        self.observe.matched(ended - began, outcome);
        (matching, ended)
    }

    /// Gets an answer that is not known yet.
    async fn ask(
        &self,
        attributes: &Attributes<'_>,
        hash: u64,
        now: Instant,
        mut recorder: Recorder<'_>,
    ) -> Decision {
        let (waiter, is_joined) = match self.service.join(attributes, hash, now) {
            Course::Known(status) => {
                self.observe.joined();
                record::note_hit(&mut recorder);
                return decide(&status);
            }
            Course::Began(waiter) => (waiter, false),
            Course::Joined(waiter) => {
                self.observe.joined();
                (waiter, true)
            }
            Course::Refused(error) => return self.refused(error, &mut recorder),
        };
        let end = match waiter.ended().await {
            Ok(end) => end,
            Err(error) => return self.failed(error, AttemptResult::Error),
        };
        record::note_call(&end, is_joined, &mut recorder);
        match &end.outcome {
            Ok(status) => decide(status),
            Err(error) => self.failed(error.clone(), result_of(error)),
        }
    }

    /// The webhook is not called at all.
    fn refused(&self, error: CallError, recorder: &mut Recorder<'_>) -> Decision {
        let why = match &error {
            CallError::Halted(_) => Some(Rejection::BreakerOpen),
            CallError::TooManyInFlight { .. } => Some(Rejection::TooManyInFlight),
            CallError::Transport { .. } | CallError::Response { .. } | CallError::Lost => None,
        };
        if let Some(why) = why {
            self.observe.rejected(why);
            record::note_refused(why, recorder);
        }
        self.failed(error, AttemptResult::Error)
    }

    /// There is no answer, so that the failure policy decides.
    fn failed(&self, error: CallError, result: AttemptResult) -> Decision {
        if self.settings.failure_policy == FailurePolicy::NoOpinion {
            self.observe.failed_open(result);
        }
        self.decision_on_error().with_error(error)
    }

    fn decision_on_error(&self) -> Decision {
        match self.settings.failure_policy {
            FailurePolicy::NoOpinion => Decision::no_opinion(""),
            FailurePolicy::Deny => Decision::deny(""),
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

fn answered(decision: Decision) -> Answered {
    Answered { decision, is_skipped: false }
}

/// What a well-formed answer means (chain §4.5).
fn decide(status: &ReviewStatus) -> Decision {
    let (verdict, error) = match (status.is_allowed, status.is_denied) {
        (true, false) => (Verdict::Allow, None),
        (false, true) => (Verdict::Deny, None),
        (false, false) => (Verdict::NoOpinion, None),
        (true, true) => {
            let text = "webhook subject access review returned both allow and deny response";
            (Verdict::Deny, Some(Failure::message(text)))
        }
    };
    Decision { verdict, reason: status.reason.clone(), error }
}
