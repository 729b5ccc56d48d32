//! Attack A2: a role of a few kilobytes stands for millions of permissions. Every operation on such a role
//! takes bounded time and memory. This is a program of its own, because it counts allocations.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use allocation_counter::measure;
use authz::{Attributes, Namespace, Resource, Target, Trace, TraceRecorder, User, Verb, Verdict};
use authz_rbac::{
    AggregationRule, Binding, CHECK_STEPS_MAX, EscalationRefusal, LabelSelector, Metadata,
    PolicyRule, QUICK_CHECK_STEPS_MAX, Role, RoleRef, Snapshot, Subject,
};

/// The time limit: far more than an unoptimized build needs beside other tests, and far less than listing all
/// combinations takes.
const TIME_MAX: Duration = Duration::from_secs(60);

const MIB: u64 = 1 << 20;

fn entries(prefix: &str, n: usize) -> Vec<String> {
    (0..n).map(|number| format!("{prefix}{number}")).collect()
}

fn rule(n_verbs: usize, n_groups: usize, n_resources: usize) -> PolicyRule {
    PolicyRule {
        verbs: entries("v", n_verbs),
        api_groups: entries("g", n_groups),
        resources: entries("r", n_resources),
        ..PolicyRule::default()
    }
}

fn metadata(namespace: &str, name: &str) -> Metadata {
    Metadata { namespace: namespace.to_owned(), name: name.to_owned(), ..Metadata::default() }
}

fn role(namespace: &str, name: &str, rules: Vec<PolicyRule>) -> Role {
    Role { metadata: metadata(namespace, name), rules, aggregation_rule: None }
}

fn binding(name: &str, (kind, role): (&str, &str), subject: Subject) -> Binding {
    let role_ref = RoleRef { kind: kind.to_owned(), name: role.to_owned(), ..RoleRef::default() };
    Binding { metadata: metadata("team", name), role_ref, subjects: vec![subject] }
}

fn user(name: &str) -> User {
    User { name: name.to_owned(), ..User::default() }
}

fn resource_attributes<'a>(
    user: &'a User,
    verb: &'a str,
    group: &'a str,
    resource: &'a str,
) -> Attributes<'a> {
    let target = Resource {
        api_group: group,
        resource,
        namespace: Namespace::new("team"),
        ..Resource::default()
    };
    Attributes { user: Some(user), verb: Verb::new(verb), target: Target::Resource(target) }
}

/// Runs something within limits on time and on memory.
#[track_caller]
fn bounded<T>(bytes_max: u64, run: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let mut outcome = None;
    let allocated = measure(|| outcome = Some(run()));
    let took = begun.elapsed();
    println!("{took:?}, {} bytes at once", allocated.bytes_max);
    assert!(allocated.bytes_max <= bytes_max, "{} bytes", allocated.bytes_max);
    assert!(took < TIME_MAX, "{took:?}");
    outcome.unwrap()
}

/// `eve` administers a namespace: she holds a thousand rules, and none of them grants `v0`.
fn namespace_admin() -> Snapshot {
    let mut snapshot = Snapshot::default();
    for number in 0..100 {
        let held = |at: usize| PolicyRule {
            verbs: entries("v", 46).split_off(1 + at),
            api_groups: entries("g", 46).split_off(number % 40),
            resources: entries("r", 46).split_off((number * 7 + at) % 40),
            ..PolicyRule::default()
        };
        let name = format!("held-{number}");
        snapshot.put_role(role("team", &name, (0..10).map(held).collect()));
        snapshot.put_binding(binding(&name, ("Role", &name), Subject::user("eve")));
    }
    snapshot
}

#[test]
fn a2_the_largest_rule_is_checked_against_a_thousand() {
    let snapshot = namespace_admin();
    let (eve, wanted) = (user("eve"), role("team", "new", vec![rule(46, 46, 46)]));
    let refusal = bounded(2 * MIB, || {
        let quickly = snapshot.check_role_write(&eve, &wanted, None, QUICK_CHECK_STEPS_MAX);
        assert_eq!(quickly, Err(EscalationRefusal::TooManySteps));
        snapshot.check_role_write(&eve, &wanted, None, CHECK_STEPS_MAX).unwrap_err()
    });
    let EscalationRefusal::NotHeld(missing) = &refusal else { panic!("{refusal}") };
    // The message has a line for each resource with the verb `v0`.
    assert_eq!(missing.rules.len(), 100);
    assert_eq!(missing.n_unlisted_permissions, 46 * 46 - 100);
    let message = refusal.to_string();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 102);
    assert_eq!(lines[1], r#"{APIGroups:["g0"], Resources:["r0"], Verbs:["v0"]}"#);
    assert_eq!(lines[101], "and 2016 more");
    let held = role(
        "team",
        "new",
        vec![PolicyRule { verbs: entries("v", 46).split_off(10), ..rule(46, 46, 46) }],
    );
    assert_eq!(
        bounded(2 * MIB, || snapshot.check_role_write(&eve, &held, None, CHECK_STEPS_MAX)),
        Ok(())
    );
}

#[test]
fn a2_roles_with_too_many_combinations_are_refused() {
    let mut snapshot = namespace_admin();
    let eve = user("eve");
    let oversized = role("team", "big", vec![rule(150, 150, 150)]);
    let many = role("team", "many", vec![rule(10, 100, 99); 11]);
    for wanted in [&oversized, &many] {
        let outcome =
            bounded(MIB / 4, || snapshot.check_role_write(&eve, wanted, None, CHECK_STEPS_MAX));
        assert!(matches!(outcome, Err(EscalationRefusal::TooManyCombinations(_))), "{outcome:?}");
        // An update that changes nothing is allowed, however large the role is.
        assert_eq!(snapshot.check_role_write(&eve, wanted, Some(wanted), CHECK_STEPS_MAX), Ok(()));
    }
    snapshot.put_role(oversized);
    let bound = binding("big", ("Role", "big"), Subject::user("eve"));
    let outcome =
        bounded(MIB / 4, || snapshot.check_binding_write(&eve, &bound, None, CHECK_STEPS_MAX));
    assert_eq!(outcome, Err(EscalationRefusal::TooManyCombinations(3_375_000)));
}

#[test]
fn a2_an_escalation_check_has_a_step_limit() {
    // Each held rule grants a part of each requested rule, and no requested rule is granted whole.
    let mut snapshot = Snapshot::default();
    let held = |number: usize| PolicyRule {
        resource_names: vec!["shared".to_owned(), format!("held-{number}")],
        ..rule(1, 1, 1)
    };
    snapshot.put_role(role("team", "held", (0..10_000).map(held).collect()));
    snapshot.put_binding(binding("held", ("Role", "held"), Subject::user("eve")));
    let wanted = |number: usize| PolicyRule {
        resource_names: vec!["shared".to_owned(), format!("wanted-{number}")],
        ..rule(1, 1, 1)
    };
    let wanted = role("team", "new", (0..10_000).map(wanted).collect());
    let outcome = bounded(16 * MIB, || {
        snapshot.check_role_write(&user("eve"), &wanted, None, CHECK_STEPS_MAX)
    });
    assert_eq!(outcome, Err(EscalationRefusal::TooManySteps));
    let text = "to compare the role with all that the user holds takes too many steps; split the role into several, or \
                have it written by a user who may escalate or bind";
    assert_eq!(EscalationRefusal::TooManySteps.to_string(), text);
}

#[test]
fn a2_long_entries_do_not_make_long_messages() {
    let long = "x".repeat(1 << 20);
    let wanted = PolicyRule { verbs: vec!["get".to_owned(), long], ..rule(1, 30, 30) };
    let wanted = role("team", "new", vec![wanted]);
    let message = bounded(4 * MIB, || {
        let outcome =
            Snapshot::default().check_role_write(&user("eve"), &wanted, None, CHECK_STEPS_MAX);
        outcome.unwrap_err().to_string()
    });
    assert!(message.len() < 64 << 10, "{}", message.len());
    assert!(message.ends_with("\nand 1700 more"), "{}", &message[message.len() - 100..]);
}

#[test]
fn a2_large_products_are_not_expanded_in_the_index() {
    let mut snapshot = Snapshot::default();
    let many = vec![rule(3, 32, 32); 3_000];
    for (name, rules) in [("big", vec![rule(150, 150, 150)]), ("many", many)] {
        let stored = role("team", name, rules);
        bounded(8 * MIB, || {
            snapshot.put_role(stored);
            snapshot.put_binding(binding(name, ("Role", name), Subject::user(name)));
        });
        let asker = user(name);
        for (verb, group, resource, want) in [
            ("v2", "g31", "r31", Verdict::Allow),
            ("v2", "g31", "r200", Verdict::NoOpinion),
            ("v200", "g31", "r31", Verdict::NoOpinion),
        ] {
            let asked = resource_attributes(&asker, verb, group, resource);
            let decision =
                bounded(MIB, || snapshot.authorize(&asked, TraceRecorder::disabled_recorder()));
            assert_eq!(decision.verdict, want, "{name} {verb} {group} {resource}");
            let subjects = bounded(MIB, || snapshot.allowed_subjects(&asked));
            assert_eq!(subjects.users.contains(name), want == Verdict::Allow);
        }
    }
}

#[test]
fn a2_the_index_does_not_grow_with_products() {
    let mut snapshot = Snapshot::default();
    let distinct = |number: usize| PolicyRule {
        verbs: vec!["get".to_owned()],
        api_groups: entries(&format!("g{number}-"), 32),
        resources: entries(&format!("r{number}-"), 32),
        ..PolicyRule::default()
    };
    let roles: Vec<Role> = (0..100)
        .map(|number| role("team", &format!("r{number}"), vec![distinct(number)]))
        .collect();
    // 6,400 entries in all, and 102,400 pairs of them.
    bounded(8 * MIB, || roles.into_iter().for_each(|role| snapshot.put_role(role)));
}

#[test]
fn a2_a_rules_review_is_truncated_and_marked_incomplete() {
    let mut snapshot = Snapshot::default();
    snapshot.put_role(role("team", "big", vec![rule(150, 150, 150); 50]));
    for number in 0..1_000 {
        let name = format!("b{number}");
        snapshot.put_binding(binding(&name, ("Role", "big"), Subject::user("eve")));
    }
    let rules = bounded(64 * MIB, || snapshot.rules_for(&user("eve"), Namespace::new("team")));
    assert!(rules.is_incomplete);
    assert!(rules.resource_rules.len() > 100, "{}", rules.resource_rules.len());
    let error = rules.error.unwrap().to_string();
    assert_eq!(error, "the rules beyond the first 8 MiB are not listed");
    snapshot.put_binding(binding("one", ("Role", "big"), Subject::user("bob")));
    let rules = snapshot.rules_for(&user("bob"), Namespace::new("team"));
    assert!(!rules.is_incomplete && rules.error.is_none());
    assert_eq!(rules.resource_rules.len(), 50);
    // A role that fifty bindings grant is checked once.
    let wanted = role("team", "new", vec![rule(40, 40, 40)]);
    let outcome =
        bounded(MIB, || snapshot.check_role_write(&user("eve"), &wanted, None, CHECK_STEPS_MAX));
    assert_eq!(outcome, Ok(()));
}

#[test]
fn a2_an_explanation_has_a_comparison_limit() {
    let mut snapshot = Snapshot::default();
    let near = PolicyRule { api_groups: vec![String::new()], ..rule(1, 1, 50_000) };
    snapshot.put_role(role("team", "near", vec![near; 4]));
    for number in 0..2_000 {
        let name = format!("b{number}");
        let subject = Subject::group(&format!("group-{number}-that-may"));
        snapshot.put_binding(binding(&name, ("Role", "near"), subject));
    }
    let mut asker = user("eve");
    asker.groups = entries("group-that-may-not-", 2_000);
    asker.groups.push("group-7-that-may".to_owned());
    let asked = resource_attributes(&asker, "v0", "", "r1a");
    let mut trace = Trace::default();
    let decision = bounded(2 * MIB, || snapshot.authorize(&asked, TraceRecorder::new(&mut trace)));
    assert_eq!(decision.verdict, Verdict::NoOpinion);
}

#[test]
fn a2_aggregation_copies_only_changed_roles() {
    let mut snapshot = Snapshot::default();
    let labels = [("to".to_owned(), "all".to_owned())];
    for number in 0..20 {
        let mut supplier = role("", &format!("s{number}"), vec![rule(150, 150, 150 + number)]);
        supplier.metadata.labels.extend(labels.clone());
        snapshot.put_role(supplier);
    }
    for number in 0..20 {
        let selector = LabelSelector {
            match_labels: labels.clone().into_iter().collect(),
            ..LabelSelector::default()
        };
        snapshot.put_role(Role {
            aggregation_rule: Some(AggregationRule { cluster_role_selectors: vec![selector] }),
            ..role("", &format!("all{number}"), Vec::new())
        });
    }
    let changed = bounded(32 * MIB, || snapshot.aggregate_roles());
    assert_eq!(changed.len(), 20);
    assert_eq!(changed[0].rules.len(), 20);
    assert!(bounded(MIB / 4, || snapshot.aggregate_roles()).is_empty());
}
