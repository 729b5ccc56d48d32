//! Which mutating hooks are called a second time (admission §4.14).

use std::collections::BTreeSet;

use admission::{Hook, ReinvocationPolicy};
use api_object::Tree;

/// What is remembered from one round of mutating hooks for the next.
///
/// Hooks are known by their place: a request sees one snapshot only, so that places do not move.
#[derive(Debug, Default)]
pub(crate) struct Reinvocation {
    is_second_round: bool,
    /// The hooks that were called since something changed and may be called again.
    previous: BTreeSet<usize>,
    /// The hooks to call in the second round.
    again: BTreeSet<usize>,
    /// The object after the hooks of the first round; kept only while somebody may need it.
    last: Option<Tree>,
    has_changes: bool,
}

impl Reinvocation {
    pub(crate) fn round(&self) -> u8 {
        u8::from(self.is_second_round)
    }

    /// Whether the whole mutating phase runs once more.
    pub(crate) fn needs_another_round(&self) -> bool {
        self.has_changes && !self.is_second_round
    }

    /// Begins the second round with the object as built-in mutators left it.
    pub(crate) fn begin_second_round(&mut self, object: Option<&Tree>) {
        self.is_second_round = true;
        if self.last.as_ref() != object {
            self.again.append(&mut self.previous);
        }
        self.last = None;
    }

    /// Whether a hook that matches is called in this round.
    pub(crate) fn calls(&self, index: usize) -> bool {
        !self.is_second_round || self.again.contains(&index)
    }

    /// Takes note of a call.
    pub(crate) fn called(&mut self, index: usize, hook: &Hook, has_changed: bool) {
        if has_changed {
            self.again.append(&mut self.previous);
            self.has_changes = true;
        }
        match hook.reinvocation_policy {
            ReinvocationPolicy::IfNeeded => {
                self.previous.insert(index);
            }
            ReinvocationPolicy::Never => {}
        }
    }

    /// Takes note of the object at the end of a round.
    pub(crate) fn ended(&mut self, object: Option<&Tree>) {
        if self.needs_another_round() && !self.previous.is_empty() {
            self.last = object.cloned();
        }
    }
}
