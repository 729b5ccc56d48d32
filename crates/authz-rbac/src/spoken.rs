//! What a role lists, target by target.

use std::sync::Arc;

use crate::compiled::{TargetRoom, Verbs, is_plain, verbs};
use crate::policy::{PolicyRule, Role};
use crate::question::Hashes;
use crate::speakers::TargetName;

/// A target that a role lists.
#[derive(Debug)]
pub(crate) struct SpokenTarget {
    pub(crate) target: u64,
    pub(crate) name: Arc<TargetName>,
    /// The verbs that the role speaks of there.
    pub(crate) verbs: Verbs,
    /// Those that it grants there, whatever else is asked.
    pub(crate) granted: Verbs,
}

impl Hashes {
    /// The targets that a role lists, each once, in their order. Those of a role of a namespace are
    /// mixed with its hash.
    pub(crate) fn spoken(&self, role: &Role) -> Vec<SpokenTarget> {
        let namespace = self.namespace(&role.metadata.namespace);
        let mut room = TargetRoom::default();
        let of_rule = |rule: &PolicyRule| {
            let verbs = verbs(rule);
            let granted = if is_plain(rule, verbs) { verbs } else { 0 };
            let targets = room.targets(self, rule);
            // Without targets nothing is named: there may be a name for each pair.
            let names: Vec<TargetName> = targets.iter().flat_map(|_| names(rule)).collect();
            let all =
                targets.into_iter().flat_map(|own| own.resources.into_iter().chain(own.paths));
            all.zip(names).map(move |(target, name)| SpokenTarget {
                target: target ^ namespace,
                name: Arc::new(name),
                verbs,
                granted,
            })
        };
        let mut spoken: Vec<SpokenTarget> = role.rules.iter().flat_map(of_rule).collect();
        spoken.sort_by_key(|own| own.target);
        spoken.dedup_by(|own, kept| {
            let is_same = own.target == kept.target;
            if is_same {
                kept.verbs |= own.verbs;
                kept.granted |= if own.name == kept.name { own.granted } else { 0 };
            }
            is_same
        });
        spoken
    }
}

/// What the targets of a rule are called, in the order of [`TargetRoom::targets`].
fn names(rule: &PolicyRule) -> impl Iterator<Item = TargetName> {
    let pairs = rule.api_groups.iter().flat_map(|api_group| {
        rule.resources.iter().map(|entry| TargetName::resource(api_group, entry))
    });
    pairs.chain(rule.non_resource_urls.iter().map(|url| TargetName::path(url)))
}
