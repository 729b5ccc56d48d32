//! The report of a session: client warnings, audit annotations, and what happened with each hook.

use std::time::Duration;

use admission::Hook;
use serde_json::Value;

use crate::audit_annotations::{
    AuditAnnotation, AuditAnnotations, HookPosition, RESPONSE_ANNOTATIONS_MAX,
};
use crate::call_failure::HookFailureCause;
use crate::client_warnings::{ClientWarnings, ITEMS_MAX};
use crate::hook_observer::{HookObserver, Phase};
use crate::hook_response::HookResponse;

/// The event of one hook in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    /// The phase of the hook.
    pub phase: Phase,
    /// 0, or 1 in the second round of mutating hooks.
    pub round: u8,
    /// The position of the hook in the list of all hooks of the phase.
    pub index: usize,
    /// The name of the configuration that contains the hook.
    pub configuration_name: String,
    /// The name of the hook.
    pub webhook_name: String,
    /// Whether the hook was called, and the result.
    pub hook_outcome: HookOutcome,
}

/// Whether a matched hook was called.
#[derive(Debug, Clone, PartialEq)]
pub enum HookOutcome {
    /// The session did not call the hook.
    Skipped(SkipReason),
    /// The session called the hook, or failed to prepare the call.
    Called {
        /// How long the call took.
        duration: Duration,
        /// The result of the call.
        verdict: CallVerdict,
    },
}

/// Why a hook whose rules match was not called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// The `namespaceSelector` of the hook does not match the labels of the namespace.
    NamespaceSelector,
    /// The `objectSelector` of the hook matches neither object.
    ObjectSelector,
    /// The match condition of this name is false.
    Condition(String),
    /// The match conditions of the hook failed with this error, and its `failurePolicy` is
    /// `Ignore`.
    ConditionError(String),
    /// In the second round, no other hook changed the object after its first call.
    NotAgain,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallVerdict {
    /// The hook allows the request unchanged.
    Allow,
    /// The hook allows the request and sent this patch.
    Patch {
        /// The operations of the JSON Patch.
        patch: Value,
        /// Whether the patch changed the object.
        changed: bool,
    },
    /// The hook denies the request with this message for the client.
    Deny(String),
    /// The hook failed, and its `failurePolicy` is `Ignore`.
    FailOpen {
        /// The kind of failure.
        cause: HookFailureCause,
        /// The failure in words.
        message: String,
    },
    /// The hook failed for this reason, and its `failurePolicy` is `Fail`.
    FailClosed(String),
    /// The request was refused for this reason, whatever the `failurePolicy`.
    Error(String),
}

/// The warnings, audit annotations and events of all hooks of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionReport {
    /// The texts of the `Warning` headers.
    pub warnings: Vec<String>,
    /// The annotations for the audit event of the request.
    pub annotations: Vec<AuditAnnotation>,
    /// One event for each hook whose selectors were evaluated, in order.
    pub hook_events: Vec<HookEvent>,
}

/// Collects the parts of a [`SessionReport`].
#[derive(Debug, Default)]
pub(crate) struct SessionReportBuilder {
    pub(crate) warnings: ClientWarnings,
    pub(crate) annotations: AuditAnnotations,
    hook_events: Vec<HookEvent>,
}

impl SessionReportBuilder {
    pub(crate) fn record_hook_event(
        &mut self,
        phase: Phase,
        at: HookPosition,
        hook: &Hook,
        outcome: HookOutcome,
    ) {
        self.hook_events.push(HookEvent {
            phase,
            round: at.round,
            index: at.index,
            configuration_name: hook.configuration_name.clone(),
            webhook_name: hook.name.clone(),
            hook_outcome: outcome,
        });
    }

    /// Reports a hook whose failure was ignored to the metrics and to the audit log.
    pub(crate) fn record_fail_open(
        &mut self,
        observer: &dyn HookObserver,
        phase: Phase,
        at: HookPosition,
        hook: &Hook,
        cause: HookFailureCause,
    ) {
        observer.on_fail_open(&hook.name, phase, cause);
        self.annotations.add_fail_open_annotation(phase, at, &hook.name, cause);
    }

    /// Adds the warnings and audit annotations of a valid response, up to their limits.
    pub(crate) fn add_response_warnings_and_annotations(
        &mut self,
        webhook: &str,
        response: &HookResponse,
    ) {
        for (key, value) in response.audit_annotations.iter().take(RESPONSE_ANNOTATIONS_MAX) {
            self.annotations.add_hook_annotation(webhook, key, value.clone());
        }
        for warning in response.warnings.iter().take(ITEMS_MAX) {
            self.warnings.add_warning(warning.clone());
        }
    }

    pub(crate) fn build(self) -> SessionReport {
        SessionReport {
            warnings: self.warnings.into_warning_texts(),
            annotations: self.annotations.items,
            hook_events: self.hook_events,
        }
    }
}
