//! The index of a role allows what its rules allow.

use authz::Verb;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;

const VERBS: [&str; 5] = ["get", "list", "frob", "frobnicate", "*"];
const GROUPS: [&str; 3] = ["", "apps", "*"];
const RESOURCES: [&str; 11] =
    ["pods", "pods/log", "*/log", "pods/*", "*", "", "pods/", "/log", "a/b/c", "/", "*/"];
const PARTS: [&str; 9] = ["pods", "log", "*", "", "pods/log", "/", "a", "b/c", "c"];
const URLS: [&str; 7] = ["/api", "/api/*", "/api/**", "*", "/version", "", "pods"];

fn list(from: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    subsequence(from, 0..=3).prop_map(|list| list.into_iter().map(str::to_owned).collect())
}

/// Some rules have lists whose product is too large for entries.
fn rule() -> impl Strategy<Value = PolicyRule> {
    let names = prop_oneof![3 => Just(Vec::new()), 1 => list(&["", "a", "b"])];
    let urls = prop_oneof![Just(Vec::new()), list(&URLS)];
    let n_unlisted_permissions = prop_oneof![4 => Just(0usize), 1 => Just(12)];
    (list(&VERBS), list(&GROUPS), list(&RESOURCES), names, urls, n_unlisted_permissions).prop_map(
        |(
            verbs,
            mut api_groups,
            mut resources,
            resource_names,
            non_resource_urls,
            n_unlisted_permissions,
        )| {
            api_groups.extend((0..n_unlisted_permissions).map(|number| format!("group-{number}")));
            resources
                .extend((0..n_unlisted_permissions).map(|number| format!("resource-{number}")));
            PolicyRule { verbs, api_groups, resources, resource_names, non_resource_urls }
        },
    )
}

fn target() -> impl Strategy<Value = Target<'static>> {
    let parts = (select(&GROUPS[..]), select(&PARTS[..]), select(&PARTS[..]));
    let resource = (parts, select(&["", "a"][..])).prop_map(|(parts, name)| {
        let (api_group, resource, subresource) = parts;
        let resource = Resource { api_group, resource, subresource, name, ..Resource::default() };
        Target::Resource(resource)
    });
    prop_oneof![3 => resource, 1 => select(&URLS[..]).prop_map(Target::Path)]
}

proptest! {
    #[test]
    fn a_compiled_role_allows_what_its_rules_allow(
        rules in prop::collection::vec(rule(), 0..6),
        requests in prop::collection::vec((select(&VERBS[..]), target()), 40),
        all_names_collide in any::<bool>(),
    ) {
        let hash_builder = RandomState::default();
        let role = Arc::new(Role { rules, ..Role::default() });
        let mut compiled = CompiledRole::new(&hash_builder, Arc::clone(&role));
        if all_names_collide {
            compiled.rule_entries.iter_mut().for_each(|entry| entry.target_hash = 7);
        }
        for (verb, target) in requests {
            let attributes = Attributes { user: None, verb: Verb::new(verb), target };
            let mut request = CompiledRequest::new(&hash_builder, &attributes);
            if all_names_collide {
                request.target_hashes = [7; N_TARGET_PATTERNS];
            }
            let want = role.rules.iter().any(|rule| rule.allows(&attributes));
            prop_assert_eq!(compiled.allows(&request), want);
            prop_assert!(!want || compiled.target_bloom_filter & request.target_bloom_filter != 0);
        }
    }
}

#[test]
fn rules_for_the_same_target_share_few_entries() {
    let rule = |verb: &str| PolicyRule {
        verbs: vec![verb.to_owned()],
        api_groups: vec![String::new()],
        resources: vec!["pods".to_owned()],
        ..PolicyRule::default()
    };
    let rules = (0..10_000).map(|number| rule(KNOWN_VERBS[number % 8])).collect();
    let role = Arc::new(Role { rules, ..Role::default() });
    assert_eq!(CompiledRole::new(&RandomState::default(), role).rule_entries.len(), 8);
}
