//! How outsiders plug in.

use std::pin::Pin;

use crate::attributes::Attributes;
use crate::decision::Decision;
use crate::rules::Rules;
use crate::subjects::Subjects;
use crate::trace::Recorder;
use crate::user::User;

/// A decision that may take time.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Decision> + Send + 'a>>;

/// An authorizer that is not built in.
///
/// What an implementation has to keep to:
/// - It is asked concurrently, so it shares state safely and never blocks the thread.
/// - Dropping the future must be harmless at every await point: callers give up when a request is
///   cancelled or out of time. State that others see changes in one step or not at all.
/// - It does not cache across changes of its own policy.
/// - When it fails it chooses the closed answer, or [`Verdict::NoOpinion`](crate::Verdict) with
///   the error beside it, never [`Verdict::Allow`](crate::Verdict). When this server is what failed
///   (a limit, a deadline, no descriptors) it answers [`Verdict::Unavailable`](crate::Verdict).
/// - It does not panic.
///
/// ```
/// use authz::{Answer, Attributes, Authorizer, Decision, Event, Recorder};
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
///         mut recorder: Recorder<'a>,
///     ) -> Answer<'a> {
///         Box::pin(async move {
///             recorder.note(|| Event::new("freeze").with("isFrozen", self.is_frozen));
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
/// # use authz::{Target, Verdict};
/// # let attributes = Attributes { user: None, verb: "post", target: Target::Path("/x") };
/// # let mut answer = plugin.authorize(&attributes, Recorder::off());
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # let std::task::Poll::Ready(decision) = answer.as_mut().poll(&mut context) else { panic!() };
/// # assert_eq!(decision.verdict, Verdict::Deny);
/// ```
pub trait Authorizer: Send + Sync {
    /// Answers whether the request is allowed.
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        recorder: Recorder<'a>,
    ) -> Answer<'a>;

    /// What the user may do in the namespace, as far as this can be listed. Answers from memory.
    fn rules_for(&self, user: &User, namespace: &str) -> Rules {
        let _ = (user, namespace);
        Rules::unknown("authorizer does not support user rule resolution")
    }

    /// Who would be allowed what is asked, and who would be denied; the user of the attributes is
    /// ignored. Answers from memory.
    ///
    /// An authorizer that denies and does not say whom makes the lists of the chain wrong, so one
    /// that can not say it keeps this answer.
    fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        let _ = attributes;
        Subjects::unknown("authorizer cannot enumerate subjects")
    }
}
