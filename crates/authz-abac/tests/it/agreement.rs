//! The index and the reference implementation decide alike.

use std::collections::BTreeSet;

use authz::{
    Attributes, Namespace, NonResourceRule, Resource, ResourceRule, Target, Trace, TraceRecorder,
    User, Value, Verb, Verdict,
};
use authz_abac::{Policy, PolicySpec, Snapshot};
use authz_reference::ReferenceAbac;
use proptest::prelude::*;
use proptest::sample::select;

const USERS: &[&str] = &["", "ana", "bob", "*"];
const GROUPS: &[&str] = &["", "dev", "ops", "*", "system:authenticated"];
const API_GROUPS: &[&str] = &["", "apps", "*"];
const RESOURCES: &[&str] = &["", "pods", "nodes", "*"];
const NAMESPACES: &[&str] = &["", "web", "prod", "*"];
const PATHS: &[&str] =
    &["", "*", "/", "/a", "/a*", "/a/*", "/a/b", "/a/b**", "/a/b/*", "/b*c", "/ä*"];
const REQUEST_PATHS: &[&str] = &["", "/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/b*c", "/äö", "*"];

fn policy() -> impl Strategy<Value = Policy> {
    let subject = (select(USERS), select(GROUPS));
    let target = (select(API_GROUPS), select(RESOURCES), select(NAMESPACES), select(PATHS));
    (subject, target, any::<bool>(), prop::bool::weighted(0.3)).prop_map(
        |((user, group), (api_group, resource, namespace, path), is_readonly, is_v0)| {
            let spec = PolicySpec {
                user: user.to_owned(),
                group: group.to_owned(),
                is_readonly,
                api_group: api_group.to_owned(),
                resource: resource.to_owned(),
                namespace: namespace.to_owned(),
                non_resource_path: path.to_owned(),
            };
            if is_v0 { Policy::from_v0(0, spec) } else { Policy::from_v1beta1(0, spec) }
        },
    )
}

/// A file in which every policy has its own line number, with gaps.
fn file() -> impl Strategy<Value = Vec<Policy>> {
    prop::collection::vec(policy(), 0..24).prop_map(|policies| {
        let renumber = |(policy, line): (Policy, usize)| {
            // A converted policy converts to itself as v1beta1.
            Policy::from_v1beta1(line, policy.spec().clone())
        };
        policies.into_iter().zip((3..).step_by(2)).map(renumber).collect()
    })
}

fn users() -> Vec<Option<User>> {
    let user = |name: &str, groups: &[&str]| {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Some(User { name: name.to_owned(), groups, ..User::default() })
    };
    vec![
        None,
        user("", &[]),
        user("", &["", "*"]),
        user("*", &["system:authenticated"]),
        user("ana", &[]),
        user("ana", &["dev", "dev", "system:authenticated"]),
        user("bob", &["ops", "dev"]),
        user("bob", &["system:unauthenticated"]),
        user("eve", &["system:authenticated", "ops"]),
        user("Ana", &["Dev"]),
    ]
}

/// Every target that the policies can distinguish, and some that they cannot.
fn targets() -> Vec<Target<'static>> {
    let mut targets: Vec<_> = REQUEST_PATHS.iter().map(|path| Target::Path(path)).collect();
    for namespace in ["", "web", "other", "*"] {
        for resource in ["", "pods", "nodes", "jobs"] {
            for api_group in ["", "apps", "x"] {
                targets.push(Target::Resource(Resource {
                    namespace: Namespace::new(namespace),
                    resource,
                    api_group,
                    subresource: "status",
                    ..Resource::default()
                }));
            }
        }
    }
    targets
}

fn decided_line(trace: &Trace) -> Option<i64> {
    let rule = trace.trace_entries().iter().find(|entry| {
        entry.trace_event.trace_event_values.contains(&("matches".into(), Value::from(true)))
    })?;
    match rule.trace_event.trace_event_values.first() {
        Some((name, Value::Integer(line))) if name == "line" => Some(*line),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// At 10 users, 3 verbs and 58 targets a file, this makes a million decisions and some more,
    /// in which the verdict and the reason agree.
    #[test]
    fn decisions_agree_with_the_reference(file in file()) {
        let policies = Snapshot::new(file.clone()).unwrap();
        let reference = ReferenceAbac::new(file);
        let (users, targets) = (users(), targets());
        for user in &users {
            for verb in ["get", "create", "head"].map(Verb::new) {
                for target in &targets {
                    let attributes = Attributes { user: user.as_ref(), verb, target: *target };
                    let want = reference.authorize(&attributes);
                    let got = policies.authorize(&attributes, TraceRecorder::disabled_recorder());
                    prop_assert_eq!(
                        (got.verdict, got.reason),
                        (want.verdict, want.reason),
                        "{:?}",
                        attributes
                    );
                    prop_assert!(got.error.is_none());
                }
            }
        }
    }

    /// With the recorder on the decision is the same, and the recorded line is the first that matches.
    #[test]
    fn explanations_agree_with_decisions(
        file in file(),
        at in 0..58usize,
        verb in select(&["get", "create"][..]),
    ) {
        let policies = Snapshot::new(file.clone()).unwrap();
        let reference = ReferenceAbac::new(file);
        let (verb, target) = (Verb::new(verb), targets()[at]);
        for user in &users() {
            let attributes = Attributes { user: user.as_ref(), verb, target };
            let mut trace = Trace::default();
            let explained = policies.authorize(&attributes, TraceRecorder::new(&mut trace));
            let decided = policies.authorize(&attributes, TraceRecorder::disabled_recorder());
            prop_assert_eq!(explained.verdict, decided.verdict);
            let want = reference.deciding_line(&attributes);
            let want = want.map(|line| i64::try_from(line).unwrap());
            prop_assert_eq!(decided_line(&trace), want);
            if want.is_some() {
                prop_assert_eq!(trace.trace_entries().len(), 1);
            }
        }
    }

    #[test]
    fn listed_rules_agree_with_the_reference(file in file(), namespace in select(NAMESPACES)) {
        let policies = Snapshot::new(file.clone()).unwrap();
        let reference = ReferenceAbac::new(file);
        for user in users().iter().flatten() {
            let got = policies.rules_for(user, Namespace::new(namespace));
            let mut resource_rules = Vec::new();
            let mut non_resource_rules = Vec::new();
            for policy in reference.policies_for_user(user) {
                let spec = policy.spec().clone();
                let verbs: Vec<String> = if spec.is_readonly {
                    ["get", "list", "watch"].map(str::to_owned).into()
                } else {
                    vec!["*".to_owned()]
                };
                if !spec.resource.is_empty() && (spec.namespace == "*" || spec.namespace == namespace) {
                    resource_rules.push(ResourceRule {
                        verbs: verbs.clone(),
                        api_groups: vec![spec.api_group],
                        resources: vec![spec.resource],
                        resource_names: vec![],
                    });
                }
                if !spec.non_resource_path.is_empty() {
                    let non_resource_urls = vec![spec.non_resource_path];
                    non_resource_rules.push(NonResourceRule { verbs, non_resource_urls });
                }
            }
            prop_assert_eq!(got.resource_rules, resource_rules);
            prop_assert_eq!(got.non_resource_rules, non_resource_rules);
            prop_assert!(!got.is_incomplete && got.error.is_none());
        }
    }

    /// A user or group is listed if and only if it is allowed by itself; a user with a note may
    /// need the group that the note names.
    #[test]
    fn listed_subjects_are_the_allowed_ones(file in file(), at in 0..58usize) {
        let policies = Snapshot::new(file.clone()).unwrap();
        let reference = ReferenceAbac::new(file);
        let target = targets()[at];
        let asked = Attributes { user: None, verb: Verb::GET, target };
        let subjects = policies.allowed_subjects(&asked);
        let is_allowed = |name: &str, groups: &[&str]| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            let user = User { name: name.to_owned(), groups, ..User::default() };
            let decision =
                policies.authorize(&Attributes { user: Some(&user), ..asked }, TraceRecorder::disabled_recorder());
            decision.verdict == Verdict::Allow
        };
        for group in GROUPS.iter().filter(|group| !group.is_empty()) {
            prop_assert_eq!(subjects.groups.contains(*group), is_allowed("nobody", &[group]));
        }
        let mut conditional = BTreeSet::new();
        for policy in reference.policies_granting(&asked) {
            let spec = policy.spec();
            if !spec.user.is_empty() && !spec.group.is_empty() {
                prop_assert!(is_allowed(&spec.user, &[&spec.group]));
                conditional.insert(spec.user.clone());
                let note = format!(
                    "abac: line {} grants user \"{}\" only as a member of group \"{}\"",
                    policy.line_number(), spec.user, spec.group,
                );
                prop_assert!(subjects.subject_listing_notes.contains(&note), "{}", note);
            }
        }
        for user in USERS.iter().filter(|user| !user.is_empty()) {
            let is_listed = subjects.users.contains(*user);
            prop_assert_eq!(is_listed, is_allowed(user, &[]) || conditional.contains(*user));
        }
    }
}
