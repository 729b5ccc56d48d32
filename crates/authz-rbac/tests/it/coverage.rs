//! Random rules: the comparison with bits finds the same permissions as a comparison of each permission.

use authz_rbac::{
    CHECK_STEPS_MAX, EscalationRefusal, HeldRules, PolicyRule, check_rules_held, uncovered_rules,
};
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::decisions::user;

const VERBS: [&str; 5] = ["get", "list", "watch", "create", "*"];
const GROUPS: [&str; 4] = ["", "apps", "batch", "*"];
const RESOURCES: [&str; 8] = ["pods", "pods/log", "jobs/log", "*/log", "pods/*", "*", "", "a/b/c"];
const NAMES: [&str; 4] = ["a", "b", "*", ""];
const URLS: [&str; 8] = ["/api", "/api/*", "/api/v1", "/api/**", "*", "/ap*", "/version", ""];

/// A list in any order, with some entries twice.
fn list(from: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    let once = subsequence(from, 0..=from.len()).prop_shuffle();
    (once, any::<bool>()).prop_map(|(mut list, is_doubled)| {
        if is_doubled {
            list.extend(list.first().copied());
        }
        list.into_iter().map(str::to_owned).collect()
    })
}

fn rule() -> impl Strategy<Value = PolicyRule> {
    let names = prop_oneof![2 => Just(Vec::new()), 1 => list(&NAMES)];
    let urls = prop_oneof![1 => Just(Vec::new()), 1 => list(&URLS)];
    (list(&VERBS), list(&GROUPS), list(&RESOURCES), names, urls).prop_map(
        |(verbs, api_groups, resources, resource_names, non_resource_urls)| PolicyRule {
            verbs,
            api_groups,
            resources,
            resource_names,
            non_resource_urls,
        },
    )
}

/// Rules with one long list, so that rows of bits have one word or several.
fn wide_rule() -> impl Strategy<Value = PolicyRule> {
    let list = |prefix: &'static str, n_max: usize| {
        (0..n_max, 1..n_max).prop_map(move |(start, n)| -> Vec<String> {
            (start..start + n).map(|number| format!("{prefix}{number}")).collect()
        })
    };
    let lists = prop_oneof![
        (list("v", 140), list("g", 4), list("r", 4), Just(Vec::new())),
        (list("v", 4), list("g", 70), list("r", 4), list("n", 3)),
        (list("v", 4), list("g", 3), list("r", 4), list("n", 140)),
    ];
    lists.prop_map(|(verbs, api_groups, resources, resource_names)| PolicyRule {
        verbs,
        api_groups,
        resources,
        resource_names,
        ..PolicyRule::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn coverage_agrees_with_the_reference(
        owned in prop::collection::vec(rule(), 0..6),
        // More rules than are compared one by one.
        wanted in prop_oneof![prop::collection::vec(rule(), 0..4), prop::collection::vec(rule(), 18..24)],
    ) {
        prop_assert_eq!(uncovered_rules(&owned, &wanted), authz_reference::uncovered_rules(&owned, &wanted));
    }

    #[test]
    fn coverage_of_long_lists_agrees_with_the_reference(
        owned in prop::collection::vec(wide_rule(), 0..8),
        wanted in prop::collection::vec(wide_rule(), 1..3),
    ) {
        let want = authz_reference::uncovered_rules(&owned, &wanted);
        prop_assert_eq!(&uncovered_rules(&owned, &wanted), &want);
        let held = HeldRules { roles: vec![&owned, &owned], role_lookup_errors: Vec::new() };
        match check_rules_held(&user("bob", ""), held, &wanted, CHECK_STEPS_MAX) {
            Ok(()) => prop_assert!(want.is_empty()),
            Err(EscalationRefusal::NotHeld(refusal)) => {
                let n_missing = refusal.rules.len() as u64 + refusal.n_unlisted_permissions;
                prop_assert_eq!(n_missing, want.len() as u64);
                let n_lines = refusal.to_string().lines().count();
                prop_assert!(n_lines <= 1 + 100 + usize::from(refusal.n_unlisted_permissions > 0));
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
