//! What becomes of a write as a whole.

use admission_hooks::Phase;
use api_object::Status;

use super::consider::{Considered, Fate};
use super::waiting::Waiting;
use super::write::{How, Write};
use crate::exit::Exit;

/// Everything that is known of a write without calling anybody.
#[derive(Debug)]
pub(super) struct Verdict<'a> {
    pub(super) how: &'a How,
    pub(super) write: &'a Write<'a>,
    pub(super) waiting: Waiting<'a>,
    /// All hooks, in the order in which they are asked.
    pub(super) hooks: Vec<Considered<'a>>,
}

impl Verdict<'_> {
    /// Why the write is refused, whatever hooks that are called say. Who comes first counts.
    pub(super) fn refusal(&self) -> Option<&Status> {
        let waiting = match &self.waiting {
            Waiting::Refused(status) => Some(status),
            Waiting::Nobody | Waiting::For(_, _) | Waiting::Open(_) => None,
        };
        let by_hook = || {
            self.hooks.iter().find_map(|considered| match &considered.fate {
                Fate::Refuses(status, _) => Some(status),
                Fate::Unmatched
                | Fate::Skipped(_)
                | Fate::Called
                | Fate::FailsOpen(_)
                | Fate::NotReached
                | Fate::Open(_) => None,
            })
        };
        self.write.refusal.as_ref().or(waiting).or_else(by_hook)
    }

    /// Whether it depends on somebody who is not asked here.
    pub(super) fn is_open(&self) -> bool {
        let is_waiting = match &self.waiting {
            Waiting::For(_, _) | Waiting::Open(_) => true,
            Waiting::Nobody | Waiting::Refused(_) => false,
        };
        let is_hook_open = |considered: &Considered<'_>| match considered.fate {
            Fate::Called | Fate::Open(_) => true,
            Fate::Unmatched
            | Fate::Skipped(_)
            | Fate::FailsOpen(_)
            | Fate::NotReached
            | Fate::Refuses(_, _) => false,
        };
        is_waiting || self.hooks.iter().any(is_hook_open)
    }

    pub(super) fn exit(&self) -> Exit {
        match (self.refusal(), self.is_open()) {
            (Some(_), _) => Exit::Findings,
            (None, true) => Exit::Open,
            (None, false) => Exit::Clean,
        }
    }

    /// The hooks of a phase that are shown: those whose rules match, or all.
    pub(super) fn shown(&self, phase: Phase, all: bool) -> Vec<&Considered<'_>> {
        let is_shown =
            |own: &&Considered<'_>| own.phase == phase && (all || own.fate != Fate::Unmatched);
        self.hooks.iter().filter(is_shown).collect()
    }
}
