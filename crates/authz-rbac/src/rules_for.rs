//! What a user may do.

use authz::{EvaluationErrors, NonResourceRule, ResourceRule, Rules, User};

use crate::policy::PolicyRule;
use crate::snapshot::{LookupError, Snapshot};

/// How much of the rules is listed at most, in bytes of their text and some for each entry. A user who
/// is bound to large roles many times holds far more than anybody reads.
const LISTED_BYTES_MAX: usize = 8 << 20;

/// What an entry costs beside its text.
const ENTRY_BYTES: usize = 32;

/// The rules that a user holds, as the roles have them.
#[derive(Debug, Clone, Default)]
pub struct HeldRules<'a> {
    /// The rules of each role in the order in which bindings are visited, repeated if several bindings
    /// grant the role.
    pub roles: Vec<&'a [PolicyRule]>,
    /// The roles that could not be found; there may be more to hold.
    pub errors: Vec<LookupError>,
}

impl Snapshot {
    /// The rules that a user holds in a namespace, those of the cluster included.
    pub fn held_rules(&self, user: &User, namespace: &str) -> HeldRules<'_> {
        let mut held = HeldRules::default();
        for visit in self.visits(user, namespace) {
            match visit.role {
                Some(compiled) => held.roles.push(&compiled.role.rules),
                None => held.errors.push(LookupError::of(visit.binding)),
            }
        }
        held
    }

    /// The same in the form in which all authorizers list rules. The list is complete even with an
    /// error beside it, as far as the roles that exist go, unless there is too much to list.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Rules {
        let HeldRules { roles, errors } = self.held_rules(user, namespace);
        let mut listed = Rules::default();
        let mut bytes_left = LISTED_BYTES_MAX;
        for rule in roles.into_iter().flatten() {
            let Some(rest) = bytes_left.checked_sub(n_bytes(rule)) else {
                listed.is_incomplete = true;
                break;
            };
            bytes_left = rest;
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
        let truncated = listed.is_incomplete.then(|| {
            let n_mebibytes = LISTED_BYTES_MAX >> 20;
            EvaluationErrors::message(format!(
                "the rules beyond the first {n_mebibytes} MiB are not listed"
            ))
        });
        let failures = errors.into_iter().map(EvaluationErrors::from).chain(truncated);
        listed.error = failures.reduce(|mut all, next| {
            all.merge(next);
            all
        });
        listed
    }
}

/// What listing a rule costs.
fn n_bytes(rule: &PolicyRule) -> usize {
    let PolicyRule { verbs, api_groups, resources, resource_names, non_resource_urls } = rule;
    let lists = [verbs, api_groups, resources, resource_names, non_resource_urls];
    let entries = lists.into_iter().flatten();
    entries.map(|entry| entry.len() + ENTRY_BYTES).sum::<usize>() + ENTRY_BYTES
}
