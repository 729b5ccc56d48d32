//! The authorizer: what is asked, when, and what an answer or its absence means (chain §4).

use std::fmt;
use std::sync::Arc;

use authz::{
    Attributes, Decision, Failure, Reason, Recorder, Rules, SharedText, Subjects, User, Verdict,
};
use tokio::time::Instant;

use crate::call::result_of;
use crate::conditions::Matching;
use crate::decode::ReviewStatus;
use crate::error::CallError;
use crate::guards::Guards;
use crate::health::Health;
use crate::observe::{AttemptResult, FailOpenCause, MatchOutcome, Observe};
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
    name: Arc<str>,
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
    /// Why the failure policy decided, if it let the request pass.
    pub failed_open: Option<FailOpenCause>,
}

impl From<Decision> for Answered {
    fn from(decision: Decision) -> Self {
        Self { decision, is_skipped: false, failed_open: None }
    }
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
    /// 4. Otherwise the webhook is called, unless too many calls are in flight, of all users or of
    ///    `caller`: then the verdict is [`Verdict::Unavailable`].
    /// 5. A well-formed answer decides.
    /// 6. The failure policy decides if the webhook failed. If this server did, the verdict is
    ///    [`Verdict::Unavailable`].
    ///
    /// `caller` is the name of the user on whose behalf the webhook is called, who may ask about
    /// another one. Dropping the future is giving up. The call goes on as long as somebody else waits
    /// for it, and ends with the last one.
    pub async fn authorize_for(
        &self,
        caller: &str,
        attributes: &Attributes<'_>,
        mut recorder: Recorder<'_>,
    ) -> Answered {
        let (matching, now) = self.matching(attributes, &mut recorder);
        match matching {
            Matching::Matched => {}
            Matching::Excluded { .. } => {
                record::note_skipped(&mut recorder);
                return Answered {
                    is_skipped: true,
                    ..Decision::no_opinion(self.reason(SharedText::default())).into()
                };
            }
            Matching::Failed(error) => {
                let cause = FailOpenCause::MatchCondition;
                return self.apply_policy(cause, None, Failure::message(error));
            }
        }
        let hash = self.service.hash(attributes);
        if let Some(status) = self.service.known(attributes, hash, now) {
            record::note_hit(&mut recorder);
            return self.decide(&status).into();
        }
        // On the heap, so that the future stays small for those who find an answer.
        Box::pin(self.ask(caller, attributes, hash, now, recorder)).await
    }

    /// Answers whether the request is allowed, to the user who makes it.
    pub async fn authorize(&self, attributes: &Attributes<'_>, recorder: Recorder<'_>) -> Answered {
        let caller = attributes.user.map_or("", |user| &user.name);
        self.authorize_for(caller, attributes, recorder).await
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

    /// The same name, for values that share it.
    pub fn shared_name(&self) -> &Arc<str> {
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
        caller: &str,
        attributes: &Attributes<'_>,
        hash: u64,
        now: Instant,
        mut recorder: Recorder<'_>,
    ) -> Answered {
        let (waiter, is_joined) = match self.service.join(caller, attributes, hash, now) {
            Course::Known(status) => {
                self.observe.joined();
                record::note_hit(&mut recorder);
                return self.decide(&status).into();
            }
            Course::Began(waiter) => (waiter, false),
            Course::Joined(waiter) => {
                self.observe.joined();
                (waiter, true)
            }
            Course::Refused(error) => {
                if let CallError::Busy(busy) = error {
                    self.observe.rejected(busy.into());
                    record::note_refused(busy.into(), &mut recorder);
                }
                return self.failed(error);
            }
        };
        let end = match waiter.ended().await {
            Ok(end) => end,
            Err(error) => return self.failed(error),
        };
        record::note_call(&end, is_joined, &mut recorder);
        match &end.outcome {
            Ok(status) => self.decide(status).into(),
            Err(error) => self.failed(error.clone()),
        }
    }

    /// The decision that a well-formed answer states. An answer that both allows and denies is a denial.
    fn decide(&self, status: &ReviewStatus) -> Decision {
        let (verdict, error) = match (status.is_allowed, status.is_denied) {
            (true, false) => (Verdict::Allow, None),
            (false, true) => (Verdict::Deny, None),
            (false, false) => (Verdict::NoOpinion, None),
            (true, true) => {
                let text = "webhook subject access review returned both allow and deny response";
                (Verdict::Deny, Some(Failure::message(text)))
            }
        };
        Decision { verdict, reason: self.reason(status.reason.clone()), error }
    }

    fn reason(&self, text: SharedText) -> Reason {
        Reason::Webhook { name: Arc::clone(&self.name), text }
    }

    /// There is no answer.
    fn failed(&self, error: CallError) -> Answered {
        match error.cause() {
            Ok(cause) => self.apply_policy(cause, Some(result_of(&error)), error),
            Err(why) => Decision::unavailable(why).with_error(error).into(),
        }
    }

    /// The webhook failed, so that the failure policy decides.
    fn apply_policy(
        &self,
        cause: FailOpenCause,
        result: Option<AttemptResult>,
        error: impl Into<Failure>,
    ) -> Answered {
        match self.settings.failure_policy {
            FailurePolicy::NoOpinion => {
                self.observe.failed_open(cause, result);
                let decision =
                    Decision::no_opinion(self.reason(SharedText::default())).with_error(error);
                Answered { failed_open: Some(cause), ..decision.into() }
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
