//! The decision of an authorizer.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::decision_reason::Reason;

/// The verdict of an authorizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Verdict {
    /// The request is denied, and no other authorizer is consulted. The default, so that a missing verdict fails closed.
    #[default]
    Deny,
    /// The request is allowed, and no other authorizer is consulted.
    Allow,
    /// This authorizer neither allows nor denies; the next one is consulted.
    NoOpinion,
    /// This server could not consult the authorizer. The request fails with an error of the server, and no other
    /// authorizer is consulted.
    ///
    /// INVARIANT: no failure policy turns this into another verdict. A policy applies to failures of the remote service.
    Unavailable(UnavailableCause),
}

/// The reason why this server could not consult an authorizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnavailableCause {
    /// A limit of this server is reached. The client may try again soon.
    TooManyCalls,
    /// This server is shutting down, has no descriptors, ports or memory left, or may not connect to the address of a
    /// webhook.
    OutOfResources,
    /// The deadline of the request passed before there was a decision.
    DeadlineExceeded,
}

impl Verdict {
    /// The name in traces and metrics: `deny`, `allow`, `noOpinion`, `unavailable`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
            Self::NoOpinion => "noOpinion",
            Self::Unavailable(_) => "unavailable",
        }
    }
}

/// A verdict with its source and the errors that occurred.
///
/// The parts are independent: an authorizer that fails still has to choose a verdict.
#[derive(Debug, Clone, Default)]
#[must_use = "a decision must be enforced"]
pub struct Decision {
    /// Whether the request is allowed, denied, or left to the next authorizer.
    pub verdict: Verdict,
    /// The source of the verdict: the rule that decided, or a text.
    pub reason: Reason,
    /// The errors that occurred, if any.
    pub error: Option<EvaluationErrors>,
}

impl Decision {
    /// A decision that allows the request.
    pub fn allow(reason: impl Into<Reason>) -> Self {
        Self { verdict: Verdict::Allow, reason: reason.into(), error: None }
    }

    /// A decision that denies the request.
    pub fn deny(reason: impl Into<Reason>) -> Self {
        Self { verdict: Verdict::Deny, reason: reason.into(), error: None }
    }

    /// A decision that leaves the request to the next authorizer.
    pub fn no_opinion(reason: impl Into<Reason>) -> Self {
        Self { verdict: Verdict::NoOpinion, reason: reason.into(), error: None }
    }

    /// A decision that reports that this server could not consult the authorizer.
    pub fn authorizer_unavailable(cause: UnavailableCause) -> Self {
        Self { verdict: Verdict::Unavailable(cause), ..Self::default() }
    }

    /// The same decision with an error.
    pub fn with_error(self, error: impl Into<EvaluationErrors>) -> Self {
        Self { error: Some(error.into()), ..self }
    }
}

/// The errors of a decision. A chain merges those of several authorizers and displays each message once.
///
/// Displays as Kubernetes' aggregate of the messages. The errors keep their types.
#[derive(Debug, Clone, Default)]
pub struct EvaluationErrors {
    errors: Vec<Arc<dyn Error + Send + Sync>>,
}

impl EvaluationErrors {
    /// Makes a list with one error that consists of this message.
    pub fn message(text: impl Into<String>) -> Self {
        let cause: Box<dyn Error + Send + Sync> = text.into().into();
        Self { errors: vec![cause.into()] }
    }

    /// The errors in the order in which they occurred.
    pub fn errors(&self) -> &[Arc<dyn Error + Send + Sync>] {
        &self.errors
    }

    /// Appends the errors of `other`.
    pub fn append_errors(&mut self, other: Self) {
        self.errors.extend(other.errors);
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for EvaluationErrors {
    fn from(cause: E) -> Self {
        Self { errors: vec![Arc::new(cause)] }
    }
}

/// [`EvaluationErrors`] does not implement [`Error`], because then the conversion from any error could not be
/// implemented.
impl fmt::Display for EvaluationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<String> = self.errors.iter().map(ToString::to_string).collect();
        f.write_str(&field_errors::aggregate_messages(&messages))
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
    fn errors_merge_and_display_once() {
        let mut failure = EvaluationErrors::message("a");
        assert_eq!(failure.to_string(), "a");
        failure.append_errors(EvaluationErrors::from(fmt::Error));
        failure.append_errors(EvaluationErrors::message("a"));
        assert_eq!(failure.to_string(), format!("[a, {}]", fmt::Error));
        assert!(failure.errors()[1].is::<fmt::Error>());
    }
}
