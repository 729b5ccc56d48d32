use authz::{Namespace, Resource, Target, Verb};
use proptest::prelude::*;

use super::*;
use crate::policy::PolicySpec;

/// Path prefixes, each of which begins with all earlier ones.
fn nested_prefix(depth: usize) -> String {
    "/a".repeat(depth) + "*"
}

fn policy() -> impl Strategy<Value = Policy> {
    let user = prop_oneof![Just(String::new()), (0..3_u8).prop_map(|n| format!("u{n}"))];
    let group = prop_oneof![Just(String::new()), (0..150_u8).prop_map(|n| format!("g{n}"))];
    let part = || prop::sample::select(&["", "*", "x", "y"][..]).prop_map(str::to_owned);
    let path =
        prop_oneof![Just(String::new()), Just("/a".into()), (0..14_usize).prop_map(nested_prefix)];
    (user, group, any::<bool>(), part(), part(), part(), path).prop_map(
        |(user, group, is_readonly, api_group, resource, namespace, non_resource_path)| {
            let spec = PolicySpec {
                user,
                group,
                is_readonly,
                api_group,
                resource,
                namespace,
                non_resource_path,
            };
            Policy::from_v1beta1(1, spec)
        },
    )
}

fn targets() -> Vec<Target<'static>> {
    let resource = |namespace, resource| {
        Target::Resource(Resource { namespace, resource, ..Resource::default() })
    };
    let paths = ["", "/a", "/a/a/a", "/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a"].map(Target::Path);
    [
        resource(Namespace::CLUSTER_SCOPE, ""),
        resource(Namespace::new("x"), "y"),
        resource(Namespace::new("y"), "z"),
    ]
    .into_iter()
    .chain(paths)
    .collect()
}

proptest! {
    /// If the candidate were another policy, decisions would still be right, but they would try all
    /// policies.
    #[test]
    fn the_candidate_is_the_first_policy_that_grants_the_request(
        policies in prop::collection::vec(policy(), 0..400),
        name in prop::sample::select(&["u0", "u1", "u9"][..]),
        groups in prop::collection::vec(0..160_u8, 0..140),
        verb in prop::sample::select(&["get", "create"][..]),
    ) {
        let index = Index::new(&policies);
        let groups = groups.iter().map(|group| format!("g{group}")).collect();
        let user = User { name: name.into(), groups, ..User::default() };
        for target in targets() {
            let attributes = Attributes { user: Some(&user), verb: Verb::new(verb), target };
            let first = policies.iter().position(|policy| policy.matches_request(&user, &attributes));
            let candidate = index.first_candidate_policy(&user, &attributes);
            prop_assert_eq!(candidate.map(|idx| idx as usize), first);
        }
        let of_user: Vec<usize> = policies
            .iter()
            .enumerate()
            .filter(|(_, policy)| policy.matches_subject(&user))
            .map(|(idx, _)| idx)
            .collect();
        let candidates = index.policies_of_user(&user).into_iter();
        prop_assert_eq!(candidates.map(|idx| idx as usize).collect::<Vec<_>>(), of_user);
    }
}

/// The subjects of a target are scanned if they are few, and looked up if they are many.
#[test]
fn a_target_may_have_any_number_of_subjects() {
    for n_subjects in [1, SCANNED_SUBJECTS_MAX, SCANNED_SUBJECTS_MAX + 1, 100] {
        let policies: Vec<Policy> = (0..n_subjects)
            .map(|number| {
                let user = format!("u{number}");
                let spec =
                    PolicySpec { user, non_resource_path: "/p".into(), ..PolicySpec::default() };
                Policy::from_v1beta1(number, spec)
            })
            .collect();
        let index = Index::new(&policies);
        for number in 0..=n_subjects {
            let user = User { name: format!("u{number}"), ..User::default() };
            let target = Target::Path("/p");
            let attributes = Attributes { user: Some(&user), verb: Verb::GET, target };
            let expected = (number < n_subjects).then_some(number as PolicyIdx);
            assert_eq!(index.first_candidate_policy(&user, &attributes), expected, "{n_subjects}");
        }
    }
}
