//! Asking a chain whose members all answer at once.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use authz::{Attributes, Decision, Failure, Recorder};
use authz_chain::{Chain, Outcome};

/// What the chain answers. No member waits for anything, for webhooks are not called; one that did
/// would be a fault, and the answer the closed one.
pub(crate) fn ask<'c>(
    chain: &'c Chain,
    attributes: &Attributes<'_>,
    recorder: Recorder<'_>,
) -> Outcome<'c> {
    let mut answer = pin!(chain.authorize(attributes, recorder));
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Outcome {
            decision: Decision::deny("")
                .with_error(Failure::message("an authorizer did not answer at once")),
            decided_by: None,
        },
    }
}
