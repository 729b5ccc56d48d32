//! Allowing a request allocates nothing. This is a program of its own, because it counts all allocations.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use authz::{
    Attributes, Decision, Namespace, Resource, Target, TraceRecorder, User, Verb, Verdict,
};
use authz_chain::{Chain, ChainMember};
use authz_rbac::{Binding, Metadata, PolicyRule, Role, RoleRef, Snapshot, Subject};

/// The number of roles that read pods.
const N_READERS: usize = 60;
/// The number of groups of a user: more than one batch of lookups.
const N_GROUPS: usize = 100;

fn metadata(namespace: &str, name: &str) -> Metadata {
    Metadata { namespace: namespace.to_owned(), name: name.to_owned(), ..Metadata::default() }
}

fn role(name: &str, verb: &str, resource: &str) -> Role {
    let list = |text: &str| vec![text.to_owned()];
    let (verbs, api_groups, resources) = (list(verb), list(""), list(resource));
    let rule = PolicyRule { verbs, api_groups, resources, ..PolicyRule::default() };
    Role { metadata: metadata("", name), rules: vec![rule], aggregation_rule: None }
}

fn binding(namespace: &str, name: &str, role: &str, subject: Subject) -> Binding {
    let kind = "ClusterRole".to_owned();
    let role_ref = RoleRef { kind, name: role.to_owned(), ..RoleRef::default() };
    Binding { metadata: metadata(namespace, name), role_ref, subjects: vec![subject] }
}

/// Many roles grant reading pods, one grants reading jobs, and one grants everything.
fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::default();
    for number in 0..N_READERS {
        snapshot.put_role(role(&format!("reader-{number}"), "get", "pods"));
        let group = Subject::group(&format!("group-{number}"));
        let name = format!("readers-{number}");
        snapshot.put_binding(binding("", &name, &format!("reader-{number}"), group));
    }
    snapshot.put_role(role("jobs", "get", "jobs"));
    snapshot.put_role(role("all", "*", "*"));
    snapshot.put_binding(binding("team", "jobs", "jobs", Subject::group("group-90")));
    snapshot.put_binding(binding("", "ci", "jobs", Subject::service_account_subject("team", "ci")));
    snapshot.put_binding(binding("", "all", "all", Subject::user("root")));
    snapshot
}

fn user_with_groups(name: &str) -> User {
    let groups = (0..N_GROUPS).map(|number| format!("group-{number}")).collect();
    User { name: name.to_owned(), groups, ..User::default() }
}

fn attributes<'a>(user: &'a User, resource: &'a str) -> Attributes<'a> {
    let resource = Resource { resource, namespace: Namespace::new("team"), ..Resource::default() };
    Attributes { user: Some(user), verb: Verb::GET, target: Target::Resource(resource) }
}

/// Runs a future that never waits.
fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("waits"),
    }
}

/// Checks the decision for each user and resource, and that allowing allocates nothing.
#[track_caller]
fn check(decide: &dyn Fn(&Attributes<'_>) -> Decision) {
    let alone = User { name: "system:serviceaccount:team:ci".to_owned(), ..User::default() };
    for (user, resource, want) in [
        (&user_with_groups("ana"), "pods", Verdict::Allow),
        (&user_with_groups("ana"), "jobs", Verdict::Allow),
        (&user_with_groups("root"), "secrets", Verdict::Allow),
        (&user_with_groups("ana"), "secrets", Verdict::NoOpinion),
        (&alone, "jobs", Verdict::Allow),
        (&alone, "pods", Verdict::NoOpinion),
    ] {
        let asked = attributes(user, resource);
        let mut verdict = None;
        let counted = allocation_counter::measure(|| verdict = Some(decide(&asked).verdict));
        assert_eq!(verdict, Some(want), "{} {resource}", user.name);
        assert!(want != Verdict::Allow || counted.count_total == 0, "{resource}: {counted:?}");
    }
}

#[test]
fn rbac_allows_without_an_allocation() {
    let snapshot = snapshot();
    check(&|attributes| snapshot.authorize(attributes, TraceRecorder::disabled_recorder()));
}

#[test]
fn a_chain_allows_without_an_allocation() {
    let Ok(chain) = Chain::new(vec![ChainMember::Rbac(Arc::new(snapshot()))]) else {
        panic!("names")
    };
    check(&|attributes| {
        finish(chain.authorize(attributes, TraceRecorder::disabled_recorder())).decision
    });
}

#[test]
fn allocations_are_counted() {
    let mut snapshot = snapshot();
    snapshot.remove_role(Namespace::CLUSTER_SCOPE, "all");
    let (user, mut text) = (user_with_groups("root"), String::new());
    let counted = allocation_counter::measure(|| {
        let decision =
            snapshot.authorize(&attributes(&user, "secrets"), TraceRecorder::disabled_recorder());
        text = decision.reason.to_string();
    });
    assert_eq!(text, "RBAC: clusterrole.rbac.authorization.k8s.io \"all\" not found");
    assert!(counted.count_total > 0);
}
