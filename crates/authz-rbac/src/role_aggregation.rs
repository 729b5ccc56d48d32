//! Role aggregation: ClusterRoles whose rules other ClusterRoles supply.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::policy::{LabelExpression, LabelSelector, PolicyRule, Role};
use crate::snapshot::Snapshot;

/// The maximum number of passes over all aggregated roles for one change. A chain of roles is complete after as many
/// passes as it is long. Roles that supply each other in a cycle may change in every pass, and keep the rules of the
/// last one.
pub const AGGREGATION_PASSES_MAX: usize = 16;

impl Snapshot {
    /// Recomputes the rules of all aggregated roles. Returns the roles that changed, for the caller to
    /// store.
    pub fn aggregate_roles(&mut self) -> Vec<Arc<Role>> {
        let mut changed: BTreeMap<String, Arc<Role>> = BTreeMap::new();
        for _ in 0..AGGREGATION_PASSES_MAX {
            let pass = self.run_aggregation_pass();
            if pass.is_empty() {
                break;
            }
            changed.extend(pass.into_iter().map(|role| (role.name().to_owned(), role)));
        }
        changed.into_values().collect()
    }

    fn run_aggregation_pass(&mut self) -> Vec<Arc<Role>> {
        let is_aggregated = |role: &&Arc<Role>| role.aggregation_rule.is_some();
        let aggregated_roles: Vec<Arc<Role>> =
            self.cluster_roles().into_iter().filter(is_aggregated).cloned().collect();
        let mut changed = Vec::new();
        for role in aggregated_roles {
            let rules = self.rules_of_selected_roles(&role);
            let is_stale = !rules.iter().copied().eq(&role.rules);
            // Most changes concern few roles, so only their rules are copied.
            let rules = is_stale.then(|| rules.into_iter().cloned().collect());
            if let Some(rules) = rules {
                let metadata = role.metadata.clone();
                let aggregation_rule = role.aggregation_rule.clone();
                let role = Role { metadata, rules, aggregation_rule };
                self.put_role(role.clone());
                changed.push(Arc::new(role));
            }
        }
        changed
    }

    /// The rules of every other ClusterRole that a selector of `role` selects: selector by selector, each
    /// in the order of role names, each rule once.
    fn rules_of_selected_roles(&self, role: &Role) -> Vec<&PolicyRule> {
        let suppliers = self.cluster_roles();
        let mut added_rules: HashSet<&PolicyRule> = HashSet::new();
        let mut rules = Vec::new();
        let selectors = role.aggregation_rule.iter().flat_map(|rule| &rule.cluster_role_selectors);
        for selector in selectors {
            for supplier in &suppliers {
                if supplier.name() == role.name()
                    || !selector.matches_labels(&supplier.metadata.labels)
                {
                    continue;
                }
                rules.extend(supplier.rules.iter().filter(|rule| added_rules.insert(*rule)));
            }
        }
        rules
    }
}

impl LabelSelector {
    /// Reports whether all requirements of the selector hold for these labels. An empty selector selects
    /// every object.
    pub fn matches_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|expression| expression.matches_labels(labels))
    }
}

impl LabelExpression {
    fn matches_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator.as_str() {
            "In" => value.is_some_and(|value| self.values.contains(value)),
            "NotIn" => value.is_none_or(|value| !self.values.contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{AggregationRule, Metadata};

    fn rules(verbs: &[&str]) -> Vec<PolicyRule> {
        let rule =
            |verb: &&str| PolicyRule { verbs: vec![(*verb).into()], ..PolicyRule::default() };
        verbs.iter().map(rule).collect()
    }

    fn role(name: &str, label: &str, verbs: &[&str], selects: &[&str]) -> Role {
        let labels = BTreeMap::from([(label.to_owned(), "true".to_owned())]);
        let selector = |key: &&str| LabelSelector {
            match_labels: BTreeMap::from([((*key).to_owned(), "true".to_owned())]),
            ..LabelSelector::default()
        };
        Role {
            metadata: Metadata { name: name.to_owned(), labels, ..Metadata::default() },
            rules: rules(verbs),
            aggregation_rule: (!selects.is_empty()).then(|| AggregationRule {
                cluster_role_selectors: selects.iter().map(selector).collect(),
            }),
        }
    }

    #[track_caller]
    fn check(roles: Vec<Role>, want: &[(&str, &[&str])]) {
        let mut snapshot = Snapshot::default();
        roles.into_iter().for_each(|role| snapshot.put_role(role));
        let changed: Vec<_> = snapshot
            .aggregate_roles()
            .iter()
            .map(|role| (role.name().to_owned(), role.rules.clone()))
            .collect();
        let want: Vec<_> =
            want.iter().map(|(name, verbs)| ((*name).to_owned(), rules(verbs))).collect();
        assert_eq!(changed, want);
    }

    #[test]
    fn rules_come_from_the_selected_roles() {
        check(
            vec![role("all", "none", &["saw"], &["tool"]), role("hammer", "tool", &["hit"], &[])],
            &[("all", &["hit"])],
        );
    }

    #[test]
    fn rules_are_empty_if_no_role_is_selected() {
        check(vec![role("all", "none", &["saw"], &["tool"])], &[("all", &[])]);
    }

    #[test]
    fn selected_roles_are_sorted_and_rules_deduplicated() {
        let roles = vec![
            role("all", "tool", &[], &["tool", "other"]),
            role("hammer", "tool", &["hit", "cut"], &[]),
            role("chisel", "tool", &["cut"], &[]),
            role("saw", "other", &["saw", "hit"], &[]),
        ];
        check(roles, &[("all", &["cut", "hit", "saw"])]);
    }

    #[test]
    fn current_roles_are_not_written() {
        check(vec![role("all", "x", &["a"], &["t"]), role("r", "t", &["a"], &[])], &[]);
    }

    #[test]
    fn chains_of_aggregated_roles_converge() {
        let roles = vec![
            role("a", "x", &[], &["to-a"]),
            role("b", "to-a", &[], &["to-b"]),
            role("c", "to-b", &["get"], &[]),
        ];
        check(roles, &[("a", &["get"]), ("b", &["get"])]);
    }

    #[test]
    fn cyclic_aggregation_terminates() {
        let mut snapshot = Snapshot::default();
        for (name, label, selects) in [("a", "1", "2"), ("b", "2", "3"), ("c", "3", "1")] {
            snapshot.put_role(role(name, label, &[name], &[selects]));
        }
        assert_eq!(snapshot.aggregate_roles().len(), 3);
    }

    #[test]
    fn match_expressions_select_roles() {
        let labels = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        for (key, operator, values, want) in [
            ("a", "In", vec!["1"], true),
            ("a", "In", vec!["2"], false),
            ("b", "In", vec!["1"], false),
            ("a", "NotIn", vec!["1"], false),
            ("b", "NotIn", vec!["1"], true),
            ("a", "Exists", vec![], true),
            ("b", "Exists", vec![], false),
            ("a", "DoesNotExist", vec![], false),
            ("b", "DoesNotExist", vec![], true),
            ("a", "Gt", vec!["0"], false),
        ] {
            let expression = LabelExpression {
                key: key.to_owned(),
                operator: operator.to_owned(),
                values: values.into_iter().map(str::to_owned).collect(),
            };
            assert_eq!(expression.matches_labels(&labels), want, "{key} {operator}");
        }
    }
}
