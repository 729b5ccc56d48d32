//! Reports of calls, for metrics.

use std::time::Duration;

use admission::{Hook, Operation};

use crate::call_failure::HookFailureCause;

/// The two phases of admission in which hooks are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Hooks are called one after the other, and each may change the object.
    Mutating,
    /// Hooks are called all at once, after the object has its final form.
    Validating,
}

/// Why a request was refused at a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectionCause {
    /// The hook denied the request.
    Denial,
    /// The call failed, and the failure policy is `Fail`.
    Call,
    /// This server could not process the call.
    Server,
}

/// The report of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallReport<'a> {
    /// The name of the hook.
    pub webhook_name: &'a str,
    /// The phase of the call.
    pub phase: Phase,
    /// The operation of the request.
    pub operation: Operation,
    /// How long the call took.
    pub call_duration: Duration,
    /// 200, or the code of the error: that of the status in the response, or one for the failed step.
    pub code: i32,
    /// The cause of the refusal, if the call led to one.
    pub rejection_cause: Option<RejectionCause>,
}

/// The highest code in the metrics; higher ones count as this.
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
        Self {
            webhook_name: &hook.name,
            phase,
            operation,
            call_duration: duration,
            code,
            rejection_cause: rejection,
        }
    }
}

/// The result of the match conditions of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionOutcome {
    /// All conditions are true.
    Hold,
    /// One condition is false.
    Exclude,
    /// A condition could not be evaluated.
    Fail,
}

/// One evaluation of the match conditions of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionReport<'a> {
    /// The name of the hook.
    pub webhook_name: &'a str,
    /// The phase of the hook.
    pub phase: Phase,
    /// The operation of the request.
    pub operation: Operation,
    /// How long the evaluation took.
    pub evaluation_duration: Duration,
    /// The result of the evaluation.
    pub condition_outcome: ConditionOutcome,
}

/// Receives reports of calls. Its methods must not block.
pub trait HookObserver: Send + Sync {
    /// Receives the report of a call that ended.
    fn on_call(&self, report: &CallReport<'_>) {
        let _ = report;
    }

    /// Receives the report of an evaluation of match conditions.
    fn on_conditions(&self, report: &ConditionReport<'_>) {
        let _ = report;
    }

    /// Receives a failure that the failure policy `Ignore` was applied to.
    fn on_fail_open(&self, webhook: &str, phase: Phase, cause: HookFailureCause) {
        let _ = (webhook, phase, cause);
    }
}

/// An observer that ignores all reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl HookObserver for NoObserver {}

impl Phase {
    /// The name of Kubernetes' admission plugin for this phase.
    #[must_use]
    pub const fn plugin_name(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingAdmissionWebhook",
            Self::Validating => "ValidatingAdmissionWebhook",
        }
    }

    /// The label `type` of Kubernetes' metrics about webhooks.
    #[must_use]
    pub const fn metric_label(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validating",
        }
    }

    /// The label `type` of Kubernetes' metrics about match conditions.
    #[must_use]
    pub const fn condition_metric_label(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validate",
        }
    }
}

impl RejectionCause {
    /// The label `error_type` of Kubernetes' metrics about webhooks.
    #[must_use]
    pub const fn metric_label(self) -> &'static str {
        match self {
            Self::Denial => "no_error",
            Self::Call => "calling_webhook_error",
            Self::Server => "apiserver_internal_error",
        }
    }
}
