//! One call of one hook.

use std::sync::Arc;
use std::time::Duration;

use admission::{Attributes, Hook, ReviewVersion, SideEffects};
use bytes::Bytes;
use object::{Status, uuid4};
use remote::Reply;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::answer::{self, Answer, Received};
use crate::caught::caught;
use crate::connection::{Connection, ExchangeError};
use crate::failure::CallFailure;
use crate::observe::Phase;
use crate::refusal::Refusal;
use crate::review::encode;
use crate::select::Presented;
use crate::time::query;

/// A call that is ready to be made. It borrows nothing, so that a task can make it.
#[derive(Debug)]
pub(crate) struct Call {
    phase: Phase,
    version: ReviewVersion,
    uid: String,
    body: Bytes,
}

/// Why a hook has no say in a request.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The call failed, and the failure policy decides (class C).
    Failed(CallFailure),
    /// The call ended with a fault of ours; the failure policy decides about that, too.
    Panicked { phase: Phase, text: String },
    /// The server can not go on, whatever the failure policy (class E).
    Error(Refusal),
}

impl Call {
    /// Puts the question to a hook. A uid is new for each call.
    pub(crate) fn new(
        phase: Phase,
        hook: &Hook,
        attributes: &Attributes<'_>,
        presented: &Presented<'_>,
    ) -> Result<Self, Trouble> {
        if attributes.is_dry_run {
            check_side_effects(hook)?;
        }
        let version = hook.review_versions.first().copied().ok_or_else(|| {
            CallFailure::no_question(
                "webhook does not accept known AdmissionReview versions (v1, v1beta1)",
            )
        })?;
        let uid = new_uid()?;
        let body =
            encode(version, &uid, attributes, presented).map_err(CallFailure::no_question)?;
        Ok(Self { phase, version, uid, body })
    }

    /// Makes the call. A fault of ours on the way is trouble with this hook only.
    pub(crate) async fn send(
        self,
        connection: Option<Arc<Connection>>,
        limit: Duration,
    ) -> Result<Answer, Trouble> {
        let phase = self.phase;
        match caught(self.exchange(connection, limit)).await {
            Ok(answer) => Ok(answer?),
            Err(text) => Err(Trouble::Panicked { phase, text }),
        }
    }

    async fn exchange(
        self,
        connection: Option<Arc<Connection>>,
        limit: Duration,
    ) -> Result<Answer, CallFailure> {
        let connection = connection.ok_or_else(|| CallFailure::no_client("none was made"))?;
        let reply = connection.exchange(&query(limit), self.body, limit).await;
        let reply = reply.map_err(|error| match error {
            // Whoever makes clients says so by itself.
            ExchangeError::NoClient(cause) => CallFailure { cause, code: 500 },
            ExchangeError::Halted(halt) => CallFailure::no_answer(halt),
            ExchangeError::Fault(fault) => CallFailure::no_answer(fault),
        })?;
        answer::read(received(&reply), self.version, self.phase, &self.uid)
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
            let cause = "Webhook SideEffects is nil".to_owned();
            Err(CallFailure { cause, code: 400 }.into())
        }
        Some(SideEffects::Some | SideEffects::Unknown) => {
            let name = gotext::quote(&hook.name);
            let message = format!("admission webhook {name} does not support dry run");
            Err(Trouble::Error(Status::bad_request(message).into()))
        }
    }
}

fn new_uid() -> Result<String, CallFailure> {
    let mut random = [0; 16];
    let filled = SystemRandom::new().fill(&mut random);
    filled.map_err(|_| CallFailure::no_question("the system has no random bytes"))?;
    Ok(uuid4(random))
}
