//! Counting the permissions that a role grants without listing them.
//!
//! A rule grants every combination of its lists, so a few kilobytes of text can stand for billions of
//! permissions. Only the escalation check reads combinations, and these limits bound it.

use crate::policy::PolicyRule;

/// The maximum number of combinations of API groups, resources, verbs and resource names in one rule, or of paths and
/// verbs. The largest rule of the default policy has a few hundred.
pub const RULE_COMBINATIONS_MAX: u64 = 100_000;

/// The maximum number of combinations in all rules of a role: ten rules of the largest size, or the rules for tens of
/// thousands of custom resources. A check of that many combinations takes a few megabytes of memory.
pub const ROLE_COMBINATIONS_MAX: u64 = 1_000_000;

impl PolicyRule {
    /// Counts the permissions that the rule grants: a verb on a resource, with a name if the rule has
    /// names, or a verb on a path.
    pub fn n_permissions(&self) -> u64 {
        let n_verbs = count(&self.verbs);
        let n_targets = count(&self.api_groups).saturating_mul(count(&self.resources));
        let n_named = n_targets.saturating_mul(count(&self.resource_names).max(1));
        n_named.saturating_add(count(&self.non_resource_urls)).saturating_mul(n_verbs)
    }

    /// Counts the elements of all lists of the rule.
    pub(crate) fn n_rule_list_elements(&self) -> u64 {
        let lists = [
            &self.verbs,
            &self.api_groups,
            &self.resources,
            &self.resource_names,
            &self.non_resource_urls,
        ];
        lists.iter().map(|list| count(list)).sum()
    }
}

/// Counts the permissions of all rules; a permission of two rules counts twice.
pub fn n_permissions_of_rules(rules: &[PolicyRule]) -> u64 {
    rules.iter().fold(0, |sum: u64, rule| sum.saturating_add(rule.n_permissions()))
}

fn count(list: &[String]) -> u64 {
    u64::try_from(list.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_are_counted_and_never_overflow() {
        let list = |n: usize| vec![String::new(); n];
        let many = 70_000;
        for (verbs, groups, resources, names, urls, want) in [
            (0, 0, 0, 0, 0, 0),
            (2, 3, 5, 0, 0, 30),
            (2, 3, 5, 7, 0, 210),
            (2, 0, 5, 7, 0, 0),
            (2, 0, 0, 0, 4, 8),
            (2, 3, 5, 0, 4, 38),
            (150, 150, 150, 0, 0, 3_375_000),
            (many, many, many, many, many, u64::MAX),
        ] {
            let rule = PolicyRule {
                verbs: list(verbs),
                api_groups: list(groups),
                resources: list(resources),
                resource_names: list(names),
                non_resource_urls: list(urls),
            };
            assert_eq!(rule.n_permissions(), want, "{verbs} {groups} {resources} {names} {urls}");
            assert_eq!(n_permissions_of_rules(&[rule.clone(), rule]), want.saturating_mul(2));
        }
    }
}
