//! What is answered.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::reason::Reason;

/// The three answers of an authorizer, and that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Verdict {
    /// The request is refused, and no other authorizer is asked. The default, so that a forgotten
    /// answer fails closed.
    #[default]
    Deny,
    /// The request is allowed, and no other authorizer is asked.
    Allow,
    /// This authorizer has nothing to say; the next one is asked.
    NoOpinion,
    /// This server failed to ask, so that nobody knows the answer. The request is refused with an
    /// error of the server, and no other authorizer is asked.
    ///
    /// INVARIANT: no failure policy turns this into another verdict. A policy speaks about failures of
    /// the service that is asked.
    Unavailable(Unavailable),
}

/// Why this server failed to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unavailable {
    /// A limit of this server is reached. Trying again soon may help.
    TooManyCalls,
    /// This server is stopping, it has no descriptors, ports or memory left, or it does not connect to the
    /// address that a webhook has.
    OutOfResources,
    /// The time of the request ended before there was an answer.
    DeadlineExceeded,
}

impl Verdict {
    /// The name as it is shown and counted: `deny`, `allow`, `noOpinion`, `unavailable`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
            Self::NoOpinion => "noOpinion",
            Self::Unavailable(_) => "unavailable",
        }
    }
}

/// An answer with its reason, and what went wrong on the way to it.
///
/// The parts are independent: an authorizer that fails still has to choose a verdict.
#[derive(Debug, Clone, Default)]
#[must_use = "a decision that nobody looks at protects nothing"]
pub struct Decision {
    /// The answer.
    pub verdict: Verdict,
    /// Why; may be empty.
    pub reason: Reason,
    /// What failed while deciding, if anything did.
    pub error: Option<Failure>,
}

impl Decision {
    /// The request is allowed.
    pub fn allow(reason: impl Into<Reason>) -> Self {
        Self { verdict: Verdict::Allow, reason: reason.into(), error: None }
    }

    /// The request is refused.
    pub fn deny(reason: impl Into<Reason>) -> Self {
        Self { verdict: Verdict::Deny, reason: reason.into(), error: None }
    }

    /// The next authorizer decides.
    pub fn no_opinion(reason: impl Into<Reason>) -> Self {
        Self { verdict: Verdict::NoOpinion, reason: reason.into(), error: None }
    }

    /// This server failed to ask.
    pub fn unavailable(why: Unavailable) -> Self {
        Self { verdict: Verdict::Unavailable(why), ..Self::default() }
    }

    /// The same decision, with an error beside it.
    pub fn with_error(self, error: impl Into<Failure>) -> Self {
        Self { error: Some(error.into()), ..self }
    }
}

/// What went wrong while deciding: one or more causes, kept apart so that a chain can merge the
/// causes of several authorizers and name each once.
///
/// Displays as the aggregate of the causes, which is empty if there are none. The causes keep
/// their types, for callers who know them.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    causes: Vec<Arc<dyn Error + Send + Sync>>,
}

impl Failure {
    /// A failure of which only a message is known.
    pub fn message(text: impl Into<String>) -> Self {
        let cause: Box<dyn Error + Send + Sync> = text.into().into();
        Self { causes: vec![cause.into()] }
    }

    /// The causes in order.
    pub fn causes(&self) -> &[Arc<dyn Error + Send + Sync>] {
        &self.causes
    }

    /// Adds the causes of another failure at the end.
    pub fn merge(&mut self, other: Self) {
        self.causes.extend(other.causes);
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(cause: E) -> Self {
        Self { causes: vec![Arc::new(cause)] }
    }
}

/// Not an [`Error`] itself, because any error converts into it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<String> = self.causes.iter().map(ToString::to_string).collect();
        f.write_str(&field_errors::aggregate(&messages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_fails_closed() {
        let forgotten = Decision::default();
        assert_eq!(forgotten.verdict, Verdict::Deny);
        assert_eq!(forgotten.reason, "");
        assert!(forgotten.error.is_none());
    }

    #[test]
    fn failures_merge_and_aggregate() {
        let mut failure = Failure::message("a");
        assert_eq!(failure.to_string(), "a");
        failure.merge(Failure::from(fmt::Error));
        failure.merge(Failure::message("a"));
        assert_eq!(failure.to_string(), format!("[a, {}]", fmt::Error));
        assert!(failure.causes()[1].is::<fmt::Error>());
    }
}
