//! The hooks whose rules match one request.
//!
//! The match of a rule depends on the operation, the resource with its equivalents, the subresource, the scope
//! and the kind of a request. None of these changes while a request is handled, whatever hooks do to its object.
//! So a request is matched once, and the result serves the freshness check and both phases.

use std::sync::Arc;

use super::hook_matching::{MatchedResource, MatchedResourceName};
use crate::attributes::Attributes;
use crate::hook::Hook;
use crate::snapshot::HookList;

/// The hooks of both phases whose rules match one request, in the order of their lists; empty for exempt requests.
///
/// It borrows nothing and costs no allocation if no hook matches, so a request can hold it for its whole life.
/// It is valid for the snapshot that made it and for requests with the same operation, resource, subresource and
/// equivalents: an update that becomes a create is matched again.
#[derive(Debug, Clone, Default)]
pub struct MatchedHooks {
    mutating_hooks: Vec<MatchedHook>,
    validating_hooks: Vec<MatchedHook>,
}

#[derive(Debug, Clone)]
struct MatchedHook {
    hook_list_position: usize,
    hook: Arc<Hook>,
    matched_resource_name: MatchedResourceName,
}

/// A hook with a rule that matches a request.
#[derive(Debug, Clone, Copy)]
pub struct HookMatch<'s, 'a> {
    /// The position in the list of its phase. If several hooks refuse a request, the response has the refusal
    /// with the lowest position.
    pub hook_list_position: usize,
    /// The hook whose rules match the request.
    pub hook: &'s Arc<Hook>,
    /// The resource and kind that the review for this hook has.
    pub matched_resource: MatchedResource<'a>,
}

impl MatchedHooks {
    pub(crate) fn match_hooks_of_both_phases(
        mutating: &HookList,
        validating: &HookList,
        attributes: &Attributes<'_>,
    ) -> Self {
        if attributes.exemption().is_some() {
            return Self::default();
        }
        let matches = |list: &HookList| {
            let found = list.find_hooks_with_matching_rules(attributes).map(
                |(position, hook, matched_name)| MatchedHook {
                    hook_list_position: position,
                    hook: Arc::clone(hook),
                    matched_resource_name: matched_name,
                },
            );
            found.collect()
        };
        Self { mutating_hooks: matches(mutating), validating_hooks: matches(validating) }
    }

    /// Reports whether no hook of either phase matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mutating_hooks.is_empty() && self.validating_hooks.is_empty()
    }

    /// Reports whether a mutating hook matches.
    #[must_use]
    pub fn has_mutating_hooks(&self) -> bool {
        !self.mutating_hooks.is_empty()
    }

    /// Reports whether a validating hook matches.
    #[must_use]
    pub fn has_validating_hooks(&self) -> bool {
        !self.validating_hooks.is_empty()
    }

    /// The mutating hooks that match, in the order in which they are called.
    pub fn mutating_hooks<'a>(
        &self,
        attributes: &Attributes<'a>,
    ) -> impl Iterator<Item = HookMatch<'_, 'a>> + use<'_, 'a> {
        to_hook_matches(&self.mutating_hooks, attributes)
    }

    /// The validating hooks that match, in the order of their list.
    pub fn validating_hooks<'a>(
        &self,
        attributes: &Attributes<'a>,
    ) -> impl Iterator<Item = HookMatch<'_, 'a>> + use<'_, 'a> {
        to_hook_matches(&self.validating_hooks, attributes)
    }

    /// Reports whether a hook that matches evaluates a selector against the stored namespace, so that the caller
    /// has to fetch it; see [`Hook::needs_stored_namespace`].
    #[must_use]
    pub fn needs_stored_namespace(&self, attributes: &Attributes<'_>) -> bool {
        let mut all = self.mutating_hooks.iter().chain(&self.validating_hooks);
        all.any(|matched| matched.hook.needs_stored_namespace(attributes))
    }
}

fn to_hook_matches<'s, 'a>(
    matched: &'s [MatchedHook],
    attributes: &Attributes<'a>,
) -> impl Iterator<Item = HookMatch<'s, 'a>> + use<'s, 'a> {
    let attributes = *attributes;
    matched.iter().map(move |matched| HookMatch {
        hook_list_position: matched.hook_list_position,
        hook: &matched.hook,
        matched_resource: matched.matched_resource_name.to_matched_resource(&attributes),
    })
}
