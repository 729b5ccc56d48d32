//! Posting a review to a chain.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use access_reviews::{
    AnswerError, ReviewError, ReviewKind, ReviewRequest, answer_review, prepare_review,
};
use authz::{Attributes, Authorizer, Decision, DecisionFuture, TraceRecorder, User};
use authz_chain::{AuthorizerName, Chain, ChainMember};
use authz_rbac::Snapshot;
use document::Source;
use jiff::Timestamp;
use serde_json::Value;

/// A review that a user posts to a chain.
pub(crate) struct ReviewPost<'p> {
    pub(crate) chain: &'p Chain,
    pub(crate) kind: ReviewKind,
    pub(crate) version: &'p str,
    pub(crate) namespace: &'p str,
    pub(crate) user: Option<&'p User>,
}

/// The class of the error of a review that has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The body is malformed, the review needs a user and has none, or it is posted to the wrong path.
    Malformed,
    /// The review breaks a rule of its kind.
    Invalid,
    /// The caller lacks a permission.
    Forbidden,
    /// An authorizer failed to decide about that permission.
    PermissionCheck,
    /// No authorizer could be consulted.
    Unavailable,
}

impl Fault {
    fn of_review(error: ReviewError) -> (Self, String) {
        let fault = match error {
            ReviewError::Malformed { .. }
            | ReviewError::NamespaceRequired
            | ReviewError::NamespaceMismatch
            | ReviewError::NoUser
            | ReviewError::NoNamespace => Fault::Malformed,
            ReviewError::Invalid { .. } => Fault::Invalid,
        };
        (fault, error.to_string())
    }

    fn of_answer(error: AnswerError) -> (Self, String) {
        let fault = match error {
            AnswerError::Unavailable(_) => Fault::Unavailable,
            AnswerError::PermissionCheck(_) => Fault::PermissionCheck,
            AnswerError::Forbidden(_) => Fault::Forbidden,
        };
        (fault, error.to_string())
    }
}

impl ReviewPost<'_> {
    pub(crate) fn send(&self, body: &Value) -> Result<Value, (Fault, String)> {
        let Self { chain, kind, version, namespace, user } = *self;
        let now: Timestamp = "2026-11-16T03:04:05.678Z".parse().unwrap();
        let review = prepare_review(kind, body, &ReviewRequest { version, namespace, user, now })
            .map_err(Fault::of_review)?;
        let answer = pin!(assert_send(answer_review(chain, review, user)));
        let Poll::Ready(answer) = answer.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("nothing here waits");
        };
        answer.map_err(Fault::of_answer)
    }

    /// The fault and the message of a review that is refused.
    #[track_caller]
    pub(crate) fn refused(&self, body: &Value) -> (Fault, String) {
        self.send(body).expect_err("it is refused")
    }
}

/// Checks that a future is `Send`, because servers move it between threads.
fn assert_send<F: Future + Send>(answer: F) -> F {
    answer
}

pub(crate) fn user(name: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(|&group| group.to_owned()).collect();
    User { name: name.to_owned(), groups, ..User::default() }
}

pub(crate) fn chain(members: Vec<ChainMember>) -> Chain {
    Chain::new(members).unwrap()
}

/// An authorizer that returns the same decision for every request.
pub(crate) struct FixedAuthorizer(pub(crate) Decision);

impl Authorizer for FixedAuthorizer {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>, _: TraceRecorder<'a>) -> DecisionFuture<'a> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

pub(crate) fn fixed(name: &str, decision: Decision) -> ChainMember {
    ChainMember::Plugin(AuthorizerName::new(name).unwrap(), Arc::new(FixedAuthorizer(decision)))
}

pub(crate) fn abac(lines: &str) -> ChainMember {
    let source = Source { name: "policy", file_bytes: lines.as_bytes() };
    let loaded = manifests::abac::load_abac_policies(
        &source,
        &manifests::abac::AbacPolicyLoadOptions::default(),
    )
    .unwrap();
    ChainMember::Abac(Arc::new(loaded.abac_policy_snapshot))
}

pub(crate) fn rbac(objects: &[Value]) -> ChainMember {
    let mut snapshot = Snapshot::default();
    for object in objects {
        match manifests::rbac::decode_unvalidated_rbac_object(object)
            .unwrap()
            .into_object_unvalidated()
            .unwrap()
        {
            manifests::rbac::RbacObject::Role(role) => snapshot.put_role(role),
            manifests::rbac::RbacObject::Binding(binding) => snapshot.put_binding(binding),
        }
    }
    ChainMember::Rbac(Arc::new(snapshot))
}
