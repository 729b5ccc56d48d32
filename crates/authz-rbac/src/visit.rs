//! The plain way through the bindings of a user, in the order of the specification.

use std::sync::Arc;

use authz::User;

use crate::bound::BindingSlot;
use crate::compiled::CompiledRole;
use crate::policy::{Binding, Subject};
use crate::snapshot::Snapshot;

/// A binding that applies to a user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit<'s> {
    /// The number of the binding.
    pub(crate) number: u32,
    pub(crate) binding: &'s Arc<Binding>,
    /// The first subject that means the user.
    pub(crate) subject_idx: usize,
    /// The role; `None` if it can not be found.
    pub(crate) role: Option<&'s CompiledRole>,
}

impl Snapshot {
    /// The bindings that apply to a user in a namespace: those of the cluster before those of the
    /// namespace, both by name.
    pub(crate) fn visits(&self, user: &User, namespace: &str) -> Vec<Visit<'_>> {
        let mut visits = self.visits_in(user, "");
        if !namespace.is_empty() {
            visits.extend(self.visits_in(user, namespace));
        }
        visits
    }

    /// The bindings of a namespace for a user, by name; an empty one means those of the cluster.
    pub(crate) fn visits_in(&self, user: &User, namespace: &str) -> Vec<Visit<'_>> {
        let Some(scope) = self.scope(namespace) else { return Vec::new() };
        let mut numbers: Vec<u32> =
            self.hashes.keys(user).flat_map(|key| scope.holders.bindings(key)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        // The table goes by hashes, so names have the last word.
        let held = numbers.into_iter().filter_map(|number| {
            let slot = self.bindings.get(number)?;
            Some((number, slot, first_subject(&slot.binding, user)?))
        });
        let mut held: Vec<(u32, &BindingSlot, usize)> = held.collect();
        held.sort_unstable_by(|(_, a, _), (_, b, _)| a.order(b));
        let visits = held.into_iter().map(|(number, slot, subject_idx)| {
            let role = self.roles.get(slot.role).and_then(|role| role.compiled.as_deref());
            Visit { number, binding: &slot.binding, subject_idx, role }
        });
        visits.collect()
    }
}

/// The first subject of a binding that means the user.
pub(crate) fn first_subject(binding: &Binding, user: &User) -> Option<usize> {
    let is_meant = |subject: &Subject| {
        subject.is_user(&user.name, binding.namespace())
            || user.groups.iter().any(|group| subject.is_group(group))
    };
    binding.subjects.iter().position(is_meant)
}
