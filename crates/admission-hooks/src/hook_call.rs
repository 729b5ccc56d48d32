//! A single call of a hook, from the encoded review to the parsed response.

use std::time::Duration;

use admission::{Attributes, Hook, ReviewVersion, SideEffects};
use api_object::format_uuid4;
use bytes::Bytes;
use https_client::{FaultKind, Reply};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::time::{Instant, timeout_at};

use crate::call_failure::{CallFailure, HookFailureCause};
use crate::call_timeout::{SessionDeadline, announced_timeout_query};
use crate::catch_panic::catch_panic;
use crate::hook_connection::ExchangeError;
use crate::hook_connections::LimitedConnection;
use crate::hook_observer::Phase;
use crate::hook_refusal::HookRefusal;
use crate::hook_response::{HookResponse, HttpReply, parse_response};
use crate::review_request::encode_review;
use crate::select_hook::ConvertedRequest;

/// A call that is ready to be sent. It borrows nothing, so that a task can own it.
#[derive(Debug)]
pub(crate) struct HookCall {
    phase: Phase,
    webhook_name: String,
    /// The user of the request, whose calls in flight are limited.
    user: String,
    /// The timeout of the hook.
    hook_timeout: Duration,
    version: ReviewVersion,
    uid: String,
    body: Bytes,
}

/// Why a call has no response.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The hook failed. Its failure policy decides.
    HookFailed(CallFailure),
    /// The request is refused, whatever the failure policy.
    Rejected(HookRefusal),
    /// This server could not send the call or wait for its end. The request is refused, whatever the
    /// failure policy.
    ServerFault(HookRefusal),
}

impl From<CallFailure> for CallError {
    fn from(failure: CallFailure) -> Self {
        Self::HookFailed(failure)
    }
}

impl CallError {
    /// This server cannot call the hook now; the client may retry.
    fn unavailable_error(webhook: &str, why: impl std::fmt::Display) -> Self {
        let (webhook, why) = (webhook.to_owned(), why.to_string());
        Self::ServerFault(HookRefusal::CallUnavailable { webhook, why, is_temporary: true })
    }

    /// This server cannot process the call or its response.
    pub(crate) fn internal_error(why: impl Into<String>) -> Self {
        Self::Rejected(HookRefusal::Internal(why.into()))
    }
}

impl HookCall {
    /// Encodes the review for a hook, with a new uid.
    pub(crate) fn new(
        phase: Phase,
        hook: &Hook,
        attributes: &Attributes<'_>,
        converted_request: &ConvertedRequest<'_>,
        deadline: SessionDeadline,
    ) -> Result<Self, CallError> {
        if attributes.is_dry_run {
            check_dry_run_side_effects(hook)?;
        }
        let version = hook.review_versions.first().copied().ok_or_else(|| {
            CallFailure::unbuildable_review(
                "webhook does not accept known AdmissionReview versions (v1, v1beta1)",
            )
        })?;
        let uid = generate_review_uid().ok_or_else(|| {
            CallError::unavailable_error(&hook.name, "the system has no random bytes")
        })?;
        let body = encode_review(version, &uid, attributes, converted_request)
            .map_err(|error| CallError::unavailable_error(&hook.name, error))?;
        let user = attributes.user.map(|user| user.name.clone()).unwrap_or_default();
        let (webhook, timeout) = (hook.name.clone(), deadline.call_timeout(hook));
        Ok(Self { phase, webhook_name: webhook, user, hook_timeout: timeout, version, uid, body })
    }

    /// Sends the call and waits for the response.
    ///
    /// 1. If the deadline of the request passes first, the request is answered with 504. This is no failure
    ///    of the hook.
    /// 2. A panic in this server refuses the request.
    /// 3. Otherwise the result of the exchange counts.
    pub(crate) async fn send(
        self,
        target: Option<LimitedConnection>,
        deadline: SessionDeadline,
    ) -> Result<HookResponse, CallError> {
        let (phase, webhook) = (self.phase, self.webhook_name.clone());
        match timeout_at(deadline.at, catch_panic(self.exchange(target))).await {
            Ok(Ok(Err(_))) if deadline.has_deadline_passed(Instant::now()) => {
                Err(CallError::ServerFault(HookRefusal::DeadlineExceeded))
            }
            Ok(Ok(outcome)) => outcome,
            Ok(Err(text)) => {
                let plugin = phase.plugin_name();
                Err(CallError::internal_error(format!("{plugin}/{webhook} has panicked: {text}")))
            }
            Err(_) => Err(CallError::ServerFault(HookRefusal::DeadlineExceeded)),
        }
    }

    async fn exchange(self, target: Option<LimitedConnection>) -> Result<HookResponse, CallError> {
        let webhook = &self.webhook_name;
        let LimitedConnection { connection, call_limit, .. } = target
            .ok_or_else(|| CallError::unavailable_error(webhook, "there is no client for it"))?;
        let _permit =
            call_limit.acquire_permit(authz::user_limit_key(&self.user)).map_err(|busy| {
                let webhook = webhook.clone();
                CallError::ServerFault(HookRefusal::TooManyCalls { webhook, busy })
            })?;
        let query = announced_timeout_query(self.hook_timeout);
        let reply = connection.exchange(&query, self.body, self.hook_timeout, &self.user).await;
        let (reply, _answer_bytes) = reply.map_err(|error| match error {
            // The message names the failed step already.
            ExchangeError::NoClient(message) => {
                CallFailure { message, code: 500, failure_cause: HookFailureCause::Configuration }
                    .into()
            }
            ExchangeError::TooLarge(fault) => CallError::unavailable_error(webhook, fault),
            // The address policy of this server forbids the address, so a retry does not help.
            ExchangeError::Fault(fault) if fault.kind == FaultKind::AddressRefused => {
                let (webhook, why) = (webhook.clone(), fault.to_string());
                let is_temporary = false;
                CallError::ServerFault(HookRefusal::CallUnavailable { webhook, why, is_temporary })
            }
            ExchangeError::Fault(fault) => CallFailure::from_transport_fault(&fault)
                .map_or_else(|| CallError::unavailable_error(webhook, fault), CallError::from),
        })?;
        Ok(parse_response(to_http_reply(&reply), self.version, self.phase, &self.uid)?)
    }
}

fn to_http_reply(reply: &Reply) -> HttpReply<'_> {
    let content_type = reply.headers.get("content-type").and_then(|value| value.to_str().ok());
    HttpReply {
        code: reply.status,
        content_type: content_type.unwrap_or_default(),
        body: &reply.body,
    }
}

/// A dry run calls only hooks that declare that they have no side effects in a dry run.
fn check_dry_run_side_effects(hook: &Hook) -> Result<(), CallError> {
    match hook.side_effects {
        Some(SideEffects::None | SideEffects::NoneOnDryRun) => Ok(()),
        None => {
            let message = "Webhook SideEffects is nil".to_owned();
            Err(CallFailure { message, code: 400, failure_cause: HookFailureCause::Configuration }
                .into())
        }
        Some(SideEffects::Some | SideEffects::Unknown) => {
            let webhook = hook.name.clone();
            Err(CallError::Rejected(HookRefusal::DryRunUnsupported { webhook }))
        }
    }
}

/// `None` if the system has no random bytes.
fn generate_review_uid() -> Option<String> {
    let mut random = [0; 16];
    SystemRandom::new().fill(&mut random).ok()?;
    Some(format_uuid4(random))
}
