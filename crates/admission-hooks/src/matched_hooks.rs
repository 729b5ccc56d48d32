//! The hooks whose rules match a write, found once and used for the whole write.

use std::sync::Arc;

use admission::{Attributes, Hook, HookList, Identity, Snapshot};

use crate::observer::Phase;

/// The hooks of both phases one of whose rules matches a write, each in the order of its list.
///
/// INVARIANT: one value is right for both phases and for every round of a write. Rules match on the
/// operation, the resource, the subresource and the scope, and no mutating hook can change these. The
/// session evaluates label selectors and match conditions when it is about to call a hook, because they
/// depend on the object.
#[derive(Debug, Clone, Default)]
pub struct MatchedHooks {
    mutating: Vec<MatchedHook>,
    validating: Vec<MatchedHook>,
}

/// A hook one of whose rules matches a write.
#[derive(Debug, Clone)]
pub(crate) struct MatchedHook {
    /// The position of the hook in the list of its phase.
    pub(crate) position: usize,
    pub(crate) hook: Arc<Hook>,
    /// The index of the equivalent resource that the matching rule names; `None` if the rule names the
    /// resource of the request.
    equivalent_index: Option<usize>,
}

impl MatchedHooks {
    /// Matches the rules of all hooks of a snapshot against a write. Exempt requests match none.
    #[must_use]
    pub fn find(snapshot: &Snapshot, attributes: &Attributes<'_>) -> Self {
        Self {
            mutating: matches_in(snapshot.mutating(), attributes),
            validating: matches_in(snapshot.validating(), attributes),
        }
    }

    /// Whether no hook of either phase matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }

    /// Whether a hook of this phase matches.
    #[must_use]
    pub fn has_any(&self, phase: Phase) -> bool {
        !self.of_phase(phase).is_empty()
    }

    pub(crate) fn of_phase(&self, phase: Phase) -> &[MatchedHook] {
        match phase {
            Phase::Mutating => &self.mutating,
            Phase::Validating => &self.validating,
        }
    }
}

impl MatchedHook {
    /// The resource and kind under which the hook is told of the write. The attributes are those that
    /// were matched; only their objects may be others.
    pub(crate) fn identity<'a>(&self, attributes: &Attributes<'a>) -> Identity<'a> {
        let equivalent = self.equivalent_index.and_then(|index| attributes.equivalents.get(index));
        match equivalent {
            Some(other) => Identity { resource: other.resource, kind: other.kind },
            None => Identity { resource: attributes.resource, kind: Some(attributes.kind) },
        }
    }
}

fn matches_in(list: &HookList, attributes: &Attributes<'_>) -> Vec<MatchedHook> {
    let matches = list.matching(attributes).into_iter();
    let owned = matches.map(|found| MatchedHook {
        position: found.position,
        hook: Arc::clone(found.hook),
        equivalent_index: (found.identity.resource != attributes.resource)
            .then(|| {
                let mut equivalents = attributes.equivalents.iter();
                equivalents.position(|other| other.resource == found.identity.resource)
            })
            .flatten(),
    });
    owned.collect()
}
