//! The trait of authorizers that are not built in.

use std::pin::Pin;

use crate::allowed_and_denied_subjects::Subjects;
use crate::attributes::Attributes;
use crate::decision::Decision;
use crate::decision_trace::TraceRecorder;
use crate::namespace::Namespace;
use crate::user::User;
use crate::user_rules::Rules;

/// The future of a decision.
pub type DecisionFuture<'a> = Pin<Box<dyn Future<Output = Decision> + Send + 'a>>;

/// An authorizer that is not built in.
///
/// An implementation must obey these rules:
/// - It is called concurrently, so it shares state safely and never blocks the thread.
/// - Dropping the future must be harmless at every await point: callers drop it when a request is cancelled or reaches its
///   deadline. Shared state changes in one step or not at all.
/// - It does not cache across changes of its own policy.
/// - When it fails it returns [`Verdict::Deny`](crate::Verdict), or [`Verdict::NoOpinion`](crate::Verdict) with
///   the error, never [`Verdict::Allow`](crate::Verdict). When this server failed (a limit, a deadline, no descriptors) it
///   returns [`Verdict::Unavailable`](crate::Verdict).
/// - It does not panic.
///
/// ```
/// use authz::{DecisionFuture, Attributes, Authorizer, Decision, TraceEvent, TraceRecorder};
///
/// /// Refuses every write while the cluster is frozen.
/// struct Freeze {
///     is_frozen: bool,
/// }
///
/// impl Authorizer for Freeze {
///     fn authorize<'a>(
///         &'a self,
///         attributes: &'a Attributes<'a>,
///         mut recorder: TraceRecorder<'a>,
///     ) -> DecisionFuture<'a> {
///         Box::pin(async move {
///             recorder.record_trace_event(|| TraceEvent::new("freeze").with_trace_event_value("isFrozen", self.is_frozen));
///             if self.is_frozen && !attributes.is_read_only() {
///                 Decision::deny("the cluster is frozen")
///             } else {
///                 Decision::no_opinion("")
///             }
///         })
///     }
/// }
///
/// let plugin: Box<dyn Authorizer> = Box::new(Freeze { is_frozen: true });
/// # use authz::{Target, Verb, Verdict};
/// # let verb = Verb::new("post");
/// # let attributes = Attributes { user: None, verb, target: Target::Path("/x") };
/// # let mut answer = plugin.authorize(&attributes, TraceRecorder::disabled_recorder());
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # let std::task::Poll::Ready(decision) = answer.as_mut().poll(&mut context) else { panic!() };
/// # assert_eq!(decision.verdict, Verdict::Deny);
/// ```
pub trait Authorizer: Send + Sync {
    /// Decides whether a request is allowed.
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        recorder: TraceRecorder<'a>,
    ) -> DecisionFuture<'a>;

    /// Lists the rules of a user in a namespace, as far as possible, without I/O.
    fn rules_for(&self, user: &User, namespace: Namespace<'_>) -> Rules {
        let _ = (user, namespace);
        Rules::unlistable_rules("authorizer does not support user rule resolution")
    }

    /// Lists the subjects that this authorizer allows, and those that it denies, without I/O. The user of the attributes is
    /// ignored.
    ///
    /// An authorizer that can deny and cannot list the denied subjects keeps this default; otherwise the lists of the chain
    /// are wrong.
    fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        let _ = attributes;
        Subjects::unlistable_subjects("authorizer cannot enumerate subjects")
    }
}
