//! What is worth counting (admission §4.15).

use std::time::Duration;

use admission::{Hook, Operation};

use crate::failure::FailOpenCause;

/// The two times at which hooks are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// One after the other, and each may change the object.
    Mutating,
    /// All at once, after the object has got its final form.
    Validating,
}

/// What a refusal is due to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectionCause {
    /// The hook has denied the request.
    Denial,
    /// The call failed, and that must not be ignored.
    Call,
    /// The server itself could not go on.
    Server,
}

/// One call that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallReport<'a> {
    /// The name of the hook.
    pub webhook: &'a str,
    /// When it was called.
    pub phase: Phase,
    /// What the request does.
    pub operation: Operation,
    /// How long it took.
    pub duration: Duration,
    /// 200, or what went wrong: that of the answer's status, or one that says at which step.
    pub code: i32,
    /// Why the request was refused by it, if it was.
    pub rejection: Option<RejectionCause>,
}

/// The highest code that is counted.
const CODE_MAX: i32 = 600;

impl<'a> CallReport<'a> {
    pub(crate) fn new(
        hook: &'a Hook,
        phase: Phase,
        operation: Operation,
        duration: Duration,
        code: i32,
        rejection: Option<RejectionCause>,
    ) -> Self {
        let code = code.min(CODE_MAX);
        Self { webhook: &hook.name, phase, operation, duration, code, rejection }
    }
}

/// What match conditions came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionOutcome {
    /// All hold.
    Hold,
    /// One is false.
    Exclude,
    /// They could not be evaluated.
    Fail,
}

/// One evaluation of the match conditions of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionReport<'a> {
    /// The name of the hook.
    pub webhook: &'a str,
    /// For which phase.
    pub phase: Phase,
    /// What the request does.
    pub operation: Operation,
    /// How long it took.
    pub duration: Duration,
    /// What they came to.
    pub outcome: ConditionOutcome,
}

/// Is told what becomes of calls. Methods must not block.
pub trait Observe: Send + Sync {
    /// A call has ended.
    fn called(&self, report: &CallReport<'_>) {
        let _ = report;
    }

    /// The match conditions of a hook were evaluated.
    fn conditions(&self, report: &ConditionReport<'_>) {
        let _ = report;
    }

    /// A hook has no say in a request because of its failure policy, which was applied to this.
    fn failed_open(&self, webhook: &str, phase: Phase, cause: FailOpenCause) {
        let _ = (webhook, phase, cause);
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observe for Unobserved {}

impl Phase {
    /// What Kubernetes calls the admission controller that asks hooks in this phase.
    #[must_use]
    pub const fn plugin(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingAdmissionWebhook",
            Self::Validating => "ValidatingAdmissionWebhook",
        }
    }

    /// The label `type` of Kubernetes' metrics about webhooks.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validating",
        }
    }

    /// The label `type` of Kubernetes' metrics about match conditions.
    #[must_use]
    pub const fn condition_label(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validate",
        }
    }
}

impl RejectionCause {
    /// The label `error_type` of Kubernetes' metrics about webhooks.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Denial => "no_error",
            Self::Call => "calling_webhook_error",
            Self::Server => "apiserver_internal_error",
        }
    }
}
