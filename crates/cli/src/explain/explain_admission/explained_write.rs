//! The explanation of one write.

use admission_hooks::Phase;
use api_object::Status;

use super::admission_write::{AdmissionWrite, AdmissionWriteOptions};
use super::expected_initializers::ExpectedInitializers;
use super::hook_outcomes::{ExplainedHook, HookOutcome};
use crate::exit::Exit;

/// The explanation of a write: its initializers and hooks.
#[derive(Debug)]
pub(super) struct ExplainedWrite<'a> {
    pub(super) options: &'a AdmissionWriteOptions,
    pub(super) write: &'a AdmissionWrite<'a>,
    pub(super) expected_initializers: ExpectedInitializers<'a>,
    /// All hooks in call order.
    pub(super) explained_hooks: Vec<ExplainedHook<'a>>,
}

impl ExplainedWrite<'_> {
    /// Returns the first refusal that does not depend on a hook call.
    pub(super) fn first_refusal(&self) -> Option<&Status> {
        let waiting = match &self.expected_initializers {
            ExpectedInitializers::Refused(status) => Some(status),
            ExpectedInitializers::None
            | ExpectedInitializers::For(_, _)
            | ExpectedInitializers::Unknown(_) => None,
        };
        let by_hook = || {
            self.explained_hooks.iter().find_map(|hook| match &hook.hook_outcome {
                HookOutcome::Refuses(status, _) => Some(status),
                HookOutcome::Unmatched
                | HookOutcome::Skipped(_)
                | HookOutcome::Called
                | HookOutcome::FailsOpen(_)
                | HookOutcome::NotReached
                | HookOutcome::Unknown(_) => None,
            })
        };
        self.write.pre_admission_rejection.as_ref().or(waiting).or_else(by_hook)
    }

    /// Reports whether the result depends on hook calls or initializers.
    pub(super) fn is_undecided(&self) -> bool {
        let is_waiting = match &self.expected_initializers {
            ExpectedInitializers::For(_, _) | ExpectedInitializers::Unknown(_) => true,
            ExpectedInitializers::None | ExpectedInitializers::Refused(_) => false,
        };
        let is_hook_undecided = |hook: &ExplainedHook<'_>| match hook.hook_outcome {
            HookOutcome::Called | HookOutcome::Unknown(_) => true,
            HookOutcome::Unmatched
            | HookOutcome::Skipped(_)
            | HookOutcome::FailsOpen(_)
            | HookOutcome::NotReached
            | HookOutcome::Refuses(_, _) => false,
        };
        is_waiting || self.explained_hooks.iter().any(is_hook_undecided)
    }

    pub(super) fn exit_code(&self) -> Exit {
        match (self.first_refusal(), self.is_undecided()) {
            (Some(_), _) => Exit::Findings,
            (None, true) => Exit::Undecided,
            (None, false) => Exit::Clean,
        }
    }

    /// Returns the hooks of a phase to show: those with a matching rule, or all.
    pub(super) fn shown_hooks(&self, phase: Phase, all: bool) -> Vec<&ExplainedHook<'_>> {
        let is_shown = |own: &&ExplainedHook<'_>| {
            own.admission_phase == phase && (all || own.hook_outcome != HookOutcome::Unmatched)
        };
        self.explained_hooks.iter().filter(is_shown).collect()
    }
}
