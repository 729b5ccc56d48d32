//! One call of one hook.

use std::time::Duration;

use admission::{Attributes, Hook, ReviewVersion, SideEffects};
use api_object::{Details, Status, uuid4};
use bytes::Bytes;
use https_client::{Fault, FaultKind, Reply};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::time::{Instant, timeout_at};

use crate::answer::{self, Answer, Received};
use crate::caught::caught;
use crate::connection::ExchangeError;
use crate::connections::HookTarget;
use crate::failure::{CallFailure, FailOpenCause};
use crate::observe::Phase;
use crate::refusal::Refusal;
use crate::review::encode;
use crate::select::Presented;
use crate::time::{Time, query};

/// When a request should come again that found no place among the calls of a hook.
const RETRY_AFTER_SECONDS: u32 = 1;

/// A call that is ready to be made. It borrows nothing, so that a task can make it.
#[derive(Debug)]
pub(crate) struct Call {
    phase: Phase,
    webhook: String,
    /// On behalf of whom it is made.
    user: String,
    /// The hook's own.
    timeout: Duration,
    version: ReviewVersion,
    uid: String,
    body: Bytes,
}

/// Why a hook has no say in a request.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The call failed on the far side, and the failure policy decides (class C).
    Failed(CallFailure),
    /// The request can not go on, whatever the failure policy (class E).
    Error(Refusal),
    /// This server could not make the call or wait for its end: 429, 503 or 504, whatever the failure
    /// policy.
    Local(Refusal),
}

impl Trouble {
    /// The request's own deadline has passed.
    fn late() -> Self {
        Self::Local(Refusal::deadline())
    }

    /// This server can not call a hook now.
    fn unavailable(webhook: &str, why: impl std::fmt::Display) -> Self {
        let name = go_compat::quote(webhook);
        let retry = Details { retry_after_seconds: RETRY_AFTER_SECONDS, ..Details::default() };
        let status = Status::unavailable(format!("failed calling webhook {name}: {why}"));
        Self::Local(Status { details: Some(Box::new(retry)), ..status }.into())
    }

    /// This server does not connect to the address of a hook. Trying again does not help.
    fn address_refused(webhook: &str, fault: &Fault) -> Self {
        let name = go_compat::quote(webhook);
        Self::Local(Status::unavailable(format!("failed calling webhook {name}: {fault}")).into())
    }

    /// The server stops before the call has ended.
    pub(crate) fn shutdown() -> Self {
        Self::Local(Status::unavailable("apiserver is shutting down").into())
    }

    /// The server can not go on.
    pub(crate) fn internal(why: &str) -> Self {
        Self::Error(Status::internal(why).into())
    }
}

impl Call {
    /// Puts the question to a hook. A uid is new for each call.
    pub(crate) fn new(
        phase: Phase,
        hook: &Hook,
        attributes: &Attributes<'_>,
        presented: &Presented<'_>,
        time: Time,
    ) -> Result<Self, Trouble> {
        if attributes.is_dry_run {
            check_side_effects(hook)?;
        }
        let version = hook.review_versions.first().copied().ok_or_else(|| {
            CallFailure::no_question(
                "webhook does not accept known AdmissionReview versions (v1, v1beta1)",
            )
        })?;
        let uid = new_uid()
            .ok_or_else(|| Trouble::unavailable(&hook.name, "the system has no random bytes"))?;
        let body = encode(version, &uid, attributes, presented)
            .map_err(|error| Trouble::unavailable(&hook.name, error))?;
        let user = attributes.user.map(|user| user.name.clone()).unwrap_or_default();
        let (webhook, timeout) = (hook.name.clone(), time.call_timeout(hook));
        Ok(Self { phase, webhook, user, timeout, version, uid, body })
    }

    /// Makes the call.
    ///
    /// 1. The deadline of the request is not the hook's: when it has passed, the answer is 504.
    /// 2. A fault of ours refuses the request.
    /// 3. All else is up to the outcome.
    pub(crate) async fn send(
        self,
        target: Option<HookTarget>,
        time: Time,
    ) -> Result<Answer, Trouble> {
        let (phase, webhook) = (self.phase, self.webhook.clone());
        match timeout_at(time.deadline, caught(self.exchange(target))).await {
            Ok(Ok(Err(_))) if time.is_over(Instant::now()) => Err(Trouble::late()),
            Ok(Ok(outcome)) => outcome,
            Ok(Err(text)) => {
                let plugin = phase.plugin();
                Err(Trouble::internal(&format!("{plugin}/{webhook} has panicked: {text}")))
            }
            Err(_) => Err(Trouble::late()),
        }
    }

    async fn exchange(self, target: Option<HookTarget>) -> Result<Answer, Trouble> {
        let webhook = &self.webhook;
        let HookTarget { connection, calls } =
            target.ok_or_else(|| Trouble::unavailable(webhook, "there is no client for it"))?;
        let _permit = calls.acquire(authz::user_limit_key(&self.user)).map_err(|busy| {
            let why = format!("failed calling webhook {}: {busy}", go_compat::quote(webhook));
            Trouble::Local(Status::too_many_requests(&why, RETRY_AFTER_SECONDS).into())
        })?;
        let query = query(self.timeout);
        let reply = connection.exchange(&query, self.body, self.timeout).await;
        let reply = reply.map_err(|error| match error {
            // Whoever makes clients says so by itself.
            ExchangeError::NoClient(message) => {
                CallFailure { message, code: 500, cause: FailOpenCause::Configuration }.into()
            }
            ExchangeError::TooLarge(fault) => Trouble::unavailable(webhook, fault),
            ExchangeError::Fault(fault) if fault.kind == FaultKind::AddressRefused => {
                Trouble::address_refused(webhook, &fault)
            }
            ExchangeError::Fault(fault) => CallFailure::of_fault(&fault)
                .map_or_else(|| Trouble::unavailable(webhook, fault), Trouble::from),
        })?;
        Ok(answer::read(received(&reply), self.version, self.phase, &self.uid)?)
    }
}

fn received(reply: &Reply) -> Received<'_> {
    let content_type = reply.headers.get("content-type").and_then(|value| value.to_str().ok());
    Received {
        code: reply.status,
        content_type: content_type.unwrap_or_default(),
        body: &reply.body,
    }
}

/// A dry run calls only hooks that promise to do nothing else then.
fn check_side_effects(hook: &Hook) -> Result<(), Trouble> {
    match hook.side_effects {
        Some(SideEffects::None | SideEffects::NoneOnDryRun) => Ok(()),
        None => {
            let message = "Webhook SideEffects is nil".to_owned();
            Err(CallFailure { message, code: 400, cause: FailOpenCause::Configuration }.into())
        }
        Some(SideEffects::Some | SideEffects::Unknown) => {
            let name = go_compat::quote(&hook.name);
            let message = format!("admission webhook {name} does not support dry run");
            Err(Trouble::Error(Status::bad_request(message).into()))
        }
    }
}

/// `None` if the system has no random bytes.
fn new_uid() -> Option<String> {
    let mut random = [0; 16];
    SystemRandom::new().fill(&mut random).ok()?;
    Some(uuid4(random))
}
