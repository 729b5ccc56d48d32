//! Who touched my object: what is remembered of each hook, for those who may ask.

use std::time::Duration;

use admission::Hook;
use serde_json::Value;

use crate::annotations::{Annotation, Annotations, Position};
use crate::answer::Answer;
use crate::failure::FailOpenCause;
use crate::observe::{Observe, Phase};
use crate::warnings::Warnings;

/// What became of one hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When.
    pub phase: Phase,
    /// 0, or 1 if mutating hooks were gone through a second time.
    pub round: u8,
    /// The place of the hook in the list of all hooks of the phase.
    pub index: usize,
    /// The configuration that it belongs to.
    pub configuration: String,
    /// Its name.
    pub webhook: String,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a hook.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// It was not called.
    Skipped(SkipReason),
    /// It was called, or should have been.
    Called {
        /// How long it took.
        duration: Duration,
        /// What came of it.
        verdict: Verdict,
    },
}

/// Why a hook whose rules match was not called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// The labels of the namespace.
    NamespaceSelector,
    /// The labels of the objects.
    ObjectSelector,
    /// The condition of this name is false.
    Condition(String),
    /// Conditions could not be evaluated, for this reason, and the hook ignores failures.
    ConditionError(String),
    /// In the second round, it had no reason to look at the object again.
    NotAgain,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It allows the request as it is.
    Allow,
    /// It allows the request and has sent this patch.
    Patch {
        /// The operations.
        patch: Value,
        /// Whether the object was another one afterwards.
        changed: bool,
    },
    /// It denies the request; the text is for the client.
    Deny(String),
    /// The call failed on the far side, which was ignored.
    FailOpen {
        /// What the failure policy was applied to.
        cause: FailOpenCause,
        /// What happened.
        message: String,
    },
    /// The call failed for this reason, and therefore the request.
    FailClosed(String),
    /// The server could not go on, for this reason.
    Error(String),
}

/// What all hooks of a request leave behind besides the object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Notes {
    /// What the client is warned of: texts for headers.
    pub warnings: Vec<String>,
    /// What the audit log is told.
    pub annotations: Vec<Annotation>,
    /// What became of each hook that was looked at, in order.
    pub events: Vec<Event>,
}

/// Notes that are being taken.
#[derive(Debug, Default)]
pub(crate) struct Notepad {
    pub(crate) warnings: Warnings,
    pub(crate) annotations: Annotations,
    events: Vec<Event>,
}

impl Notepad {
    pub(crate) fn event(&mut self, phase: Phase, at: Position, hook: &Hook, fate: Fate) {
        self.events.push(Event {
            phase,
            round: at.round,
            index: at.index,
            configuration: hook.configuration_name.clone(),
            webhook: hook.name.clone(),
            fate,
        });
    }

    /// A hook has no say because its failure is ignored. All who watch are told, and why.
    pub(crate) fn fail_open(
        &mut self,
        observe: &dyn Observe,
        phase: Phase,
        at: Position,
        hook: &Hook,
        cause: FailOpenCause,
    ) {
        observe.failed_open(&hook.name, phase, cause);
        self.annotations.failed_open(phase, at, &hook.name, cause);
    }

    /// Takes over what an answer that keeps the rules says besides its decision.
    pub(crate) fn hear(&mut self, webhook: &str, answer: &Answer) {
        for (key, value) in &answer.audit_annotations {
            self.annotations.told(webhook, key, value.clone());
        }
        for warning in &answer.warnings {
            self.warnings.add(warning.clone());
        }
    }

    pub(crate) fn into_notes(self) -> Notes {
        Notes {
            warnings: self.warnings.into_texts(),
            annotations: self.annotations.all,
            events: self.events,
        }
    }
}
