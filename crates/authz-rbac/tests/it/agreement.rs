//! Random policies, changed step by step, and random requests: the index and the reference agree.

use authz::{Attributes, Namespace, Resource, Target, Trace, TraceRecorder, User, Verb, Verdict};
use authz_rbac::{Binding, Metadata, PolicyRule, Role, RoleRef, Snapshot, Subject};
use authz_reference::ReferenceRbac;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const NAMESPACES: [&str; 4] = ["", "ns1", "ns2", "*"];
const NAMES: [&str; 6] = ["a", "b", "c", "d", "*", ""];
const VERBS: [&str; 4] = ["get", "list", "create", "*"];
const GROUPS: [&str; 3] = ["", "apps", "*"];
const RESOURCES: [&str; 7] = ["pods", "pods/log", "*/log", "pods/*", "jobs", "*", ""];
const URLS: [&str; 6] = ["/api", "/api/*", "/api/**", "*", "/version", ""];

/// One of this many requests is also explained, which takes longer than deciding.
const EXPLAINED_EACH: usize = 4;

/// One change of a policy.
#[derive(Debug, Clone)]
enum Step {
    PutRole(Role),
    RemoveRole(String, String),
    PutBinding(Binding),
    RemoveBinding(String, String),
}

fn text(from: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(from).prop_map(str::to_owned)
}

fn list(from: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    subsequence(from, 0..=from.len().min(3))
        .prop_map(|list| list.into_iter().map(str::to_owned).collect())
}

fn rule() -> impl Strategy<Value = PolicyRule> {
    let names = prop_oneof![3 => Just(Vec::new()), 1 => list(&NAMES)];
    (list(&VERBS), list(&GROUPS), list(&RESOURCES), names, list(&URLS)).prop_map(
        |(verbs, api_groups, resources, resource_names, non_resource_urls)| PolicyRule {
            verbs,
            api_groups,
            resources,
            resource_names,
            non_resource_urls,
        },
    )
}

fn metadata() -> impl Strategy<Value = Metadata> {
    (text(&NAMESPACES), text(&NAMES)).prop_map(|(namespace, name)| Metadata {
        namespace,
        name,
        ..Metadata::default()
    })
}

fn role() -> impl Strategy<Value = Role> {
    (metadata(), prop::collection::vec(rule(), 0..3)).prop_map(|(metadata, rules)| Role {
        metadata,
        rules,
        aggregation_rule: None,
    })
}

fn subject() -> impl Strategy<Value = Subject> {
    let kind = text(&["User", "User", "Group", "Group", "ServiceAccount", "Robot"]);
    (kind, text(&NAMES), text(&NAMESPACES)).prop_map(|(kind, name, namespace)| Subject {
        kind,
        api_group: String::new(),
        name,
        namespace,
    })
}

fn binding() -> impl Strategy<Value = Binding> {
    let kind = text(&["Role", "ClusterRole", "ClusterRole", "Other"]);
    let role_ref =
        (kind, text(&NAMES)).prop_map(|(kind, name)| RoleRef { kind, name, ..RoleRef::default() });
    (metadata(), role_ref, prop::collection::vec(subject(), 0..4))
        .prop_map(|(metadata, role_ref, subjects)| Binding { metadata, role_ref, subjects })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => role().prop_map(Step::PutRole),
        1 => (text(&NAMESPACES), text(&NAMES)).prop_map(|(ns, name)| Step::RemoveRole(ns, name)),
        6 => binding().prop_map(Step::PutBinding),
        1 => (text(&NAMESPACES), text(&NAMES)).prop_map(|(ns, name)| Step::RemoveBinding(ns, name)),
    ]
}

fn user() -> impl Strategy<Value = User> {
    let account = (text(&NAMESPACES), text(&NAMES))
        .prop_map(|(namespace, name)| format!("system:serviceaccount:{namespace}:{name}"));
    (prop_oneof![2 => text(&NAMES), 1 => account], list(&NAMES)).prop_map(|(name, groups)| User {
        name,
        groups,
        ..User::default()
    })
}

/// A request without its user: verb, and either a path or the parts of a resource.
type RequestWithoutUser = (String, Result<String, [String; 5]>);

fn request_without_user() -> impl Strategy<Value = RequestWithoutUser> {
    let path = text(&["/api", "/api/v1", "/version", "", "/other"]).prop_map(Ok);
    let resource = (
        text(&NAMESPACES),
        text(&["", "apps", "batch"]),
        text(&["pods", "jobs", ""]),
        text(&["", "log", "*"]),
        text(&NAMES),
    )
        .prop_map(|(a, b, c, d, e)| Err([a, b, c, d, e]));
    (text(&["get", "list", "delete", "*"]), prop_oneof![1 => path, 4 => resource])
}

fn attributes<'a>(
    user: Option<&'a User>,
    (verb, target): &'a RequestWithoutUser,
) -> Attributes<'a> {
    let target = match target {
        Ok(path) => Target::Path(path),
        Err([namespace, api_group, resource, subresource, name]) => Target::Resource(Resource {
            namespace: Namespace::new(namespace),
            api_group,
            resource,
            subresource,
            name,
            ..Resource::default()
        }),
    };
    Attributes { user, verb: Verb::new(verb), target }
}

fn apply(snapshot: &mut Snapshot, oracle: &mut ReferenceRbac, step: Step) {
    match step {
        Step::PutRole(role) => {
            snapshot.put_role(role.clone());
            oracle.put_role(role);
        }
        Step::RemoveRole(namespace, name) => {
            snapshot.remove_role(Namespace::new(&namespace), &name);
            oracle.remove_role(&namespace, &name);
        }
        Step::PutBinding(binding) => {
            snapshot.put_binding(binding.clone());
            oracle.put_binding(binding);
        }
        Step::RemoveBinding(namespace, name) => {
            snapshot.remove_binding(Namespace::new(&namespace), &name);
            oracle.remove_binding(&namespace, &name);
        }
    }
}

fn check(
    snapshot: &Snapshot,
    oracle: &ReferenceRbac,
    users: &[User],
    requests: &[RequestWithoutUser],
) -> Result<(), TestCaseError> {
    for (idx, request_without_user) in requests.iter().enumerate() {
        let allowed = snapshot.allowed_subjects(&attributes(None, request_without_user));
        let want = oracle.who_can(&attributes(None, request_without_user));
        prop_assert_eq!((&allowed.users, &allowed.groups), (&want.users, &want.groups));
        for user in users {
            let request_without_user = attributes(Some(user), request_without_user);
            let got = snapshot.authorize(&request_without_user, TraceRecorder::disabled_recorder());
            let want = oracle.authorize(&request_without_user);
            prop_assert_eq!((got.verdict, &got.reason), (want.verdict, &want.reason));
            prop_assert!(got.error.is_none());
            if idx % EXPLAINED_EACH == 0 {
                // A recorder does not change the decision.
                let mut trace = Trace::default();
                let explained =
                    snapshot.authorize(&request_without_user, TraceRecorder::new(&mut trace));
                prop_assert_eq!((got.verdict, &got.reason), (explained.verdict, &explained.reason));
            }
            // The listed subjects are those that are allowed.
            let is_listed = allowed.users.contains(&user.name)
                || user.groups.iter().any(|group| allowed.groups.contains(group));
            prop_assert_eq!(is_listed, got.verdict == Verdict::Allow);
        }
    }
    for user in users {
        for namespace in NAMESPACES {
            let held = snapshot.held_rules(user, Namespace::new(namespace));
            let rules: Vec<&PolicyRule> = held.roles.into_iter().flatten().collect();
            prop_assert_eq!(rules, oracle.rules_for(user, namespace));
        }
    }
    Ok(())
}

proptest! {
    // Two versions of each policy answer about 400 requests: a million decisions need 1,250 cases.
    #![proptest_config(ProptestConfig::with_cases(1_300))]

    /// L31: wildcards of every field are part of the random policy.
    #[test]
    fn index_and_oracle_agree(
        steps in prop::collection::vec(step(), 0..40),
        users in prop::collection::vec(user(), 8..20),
        requests in prop::collection::vec(request_without_user(), 20..40),
    ) {
        let (mut snapshot, mut oracle) = (Snapshot::default(), ReferenceRbac::default());
        let middle = steps.len() / 2;
        let mut kept = None;
        for (idx, step) in steps.into_iter().enumerate() {
            if idx == middle {
                kept = Some((snapshot.clone(), oracle.clone()));
            }
            apply(&mut snapshot, &mut oracle, step);
        }
        check(&snapshot, &oracle, &users, &requests)?;
        // A reader of the old version saw none of the later changes.
        if let Some((snapshot, oracle)) = kept {
            check(&snapshot, &oracle, &users, &requests)?;
        }
    }
}
