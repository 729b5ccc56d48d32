//! Which mutating hooks are called a second time.

use std::collections::BTreeSet;

use admission::{Hook, ReinvocationPolicy};
use api_object::Tree;

/// The state that one round of mutating hooks leaves for the next.
///
/// Hooks are identified by their position in the list. A session uses one snapshot of the configuration,
/// so positions do not change.
#[derive(Debug, Default)]
pub(crate) struct ReinvocationState {
    is_second_round: bool,
    /// The hooks with `reinvocationPolicy: IfNeeded` that were called since the last change.
    hooks_called_since_change: BTreeSet<usize>,
    /// The hooks to call in the second round.
    hooks_to_reinvoke: BTreeSet<usize>,
    /// The object after the first round, if the second round has to compare with it.
    object_after_first_round: Option<Tree>,
    has_object_changed: bool,
}

impl ReinvocationState {
    /// The number of the round in audit annotations: 0 or 1.
    pub(crate) fn round_number(&self) -> u8 {
        u8::from(self.is_second_round)
    }

    /// Whether the whole mutating phase runs once more.
    pub(crate) fn needs_another_round(&self) -> bool {
        self.has_object_changed && !self.is_second_round
    }

    /// Begins the second round with the object as the built-in mutators left it.
    pub(crate) fn begin_second_round(&mut self, object: Option<&Tree>) {
        self.is_second_round = true;
        if self.object_after_first_round.as_ref() != object {
            self.hooks_to_reinvoke.append(&mut self.hooks_called_since_change);
        }
        self.object_after_first_round = None;
    }

    /// Whether a selected hook is called in this round.
    pub(crate) fn should_call_hook(&self, index: usize) -> bool {
        !self.is_second_round || self.hooks_to_reinvoke.contains(&index)
    }

    /// Records a call of a hook and whether its patch changed the object.
    pub(crate) fn record_call(&mut self, index: usize, hook: &Hook, has_changed: bool) {
        if has_changed {
            self.hooks_to_reinvoke.append(&mut self.hooks_called_since_change);
            self.has_object_changed = true;
        }
        match hook.reinvocation_policy {
            ReinvocationPolicy::IfNeeded => {
                self.hooks_called_since_change.insert(index);
            }
            ReinvocationPolicy::Never => {}
        }
    }

    /// Records the object at the end of a round.
    pub(crate) fn record_object_after_round(&mut self, object: Option<&Tree>) {
        if self.needs_another_round() && !self.hooks_called_since_change.is_empty() {
            self.object_after_first_round = object.cloned();
        }
    }
}
