//! What a user may do.

use authz::{Failure, NonResourceRule, ResourceRule, Rules, User};

use crate::policy::PolicyRule;
use crate::snapshot::{LookupError, Snapshot};

/// The rules that a user holds, as the roles have them.
#[derive(Debug, Clone, Default)]
pub struct HeldRules<'a> {
    /// The rules in the order in which they are visited, repeated if several bindings grant them.
    pub rules: Vec<&'a PolicyRule>,
    /// The roles that could not be found; there may be more to hold.
    pub errors: Vec<LookupError>,
}

impl Snapshot {
    /// The rules that a user holds in a namespace, those of the cluster included.
    pub fn held_rules(&self, user: &User, namespace: &str) -> HeldRules<'_> {
        let mut held = HeldRules::default();
        for visit in self.visits(user, namespace) {
            match visit.role {
                Some(compiled) => held.rules.extend(&compiled.role.rules),
                None => held.errors.push(LookupError::of(visit.binding)),
            }
        }
        held
    }

    /// The same in the form in which all authorizers list rules. The list is complete even with an
    /// error beside it, as far as the roles that exist go.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Rules {
        let HeldRules { rules, errors } = self.held_rules(user, namespace);
        let mut listed = Rules::default();
        for rule in rules {
            if !rule.resources.is_empty() {
                listed.resource_rules.push(ResourceRule {
                    verbs: rule.verbs.clone(),
                    api_groups: rule.api_groups.clone(),
                    resources: rule.resources.clone(),
                    resource_names: rule.resource_names.clone(),
                });
            }
            if !rule.non_resource_urls.is_empty() {
                listed.non_resource_rules.push(NonResourceRule {
                    verbs: rule.verbs.clone(),
                    non_resource_urls: rule.non_resource_urls.clone(),
                });
            }
        }
        listed.error = errors.into_iter().map(Failure::from).reduce(|mut all, next| {
            all.merge(next);
            all
        });
        listed
    }
}
