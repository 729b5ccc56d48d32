//! For any policy, explanations agree with decisions, and the listed subjects are those that are allowed.

#![no_main]

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use authz::{Attributes, Namespace, Resource, Target, Trace, TraceRecorder, User, Verb, Verdict};
use authz_chain::{Chain, ChainDecision, ChainMember};
use authz_rbac::{Binding, Metadata, PolicyRule, Role, RoleRef, Snapshot, Subject};
use libfuzzer_sys::fuzz_target;

const USERS: [&str; 4] = ["ana", "bob", "system:serviceaccount:a:ci", "system:node:n"];
const GROUPS: [&str; 4] = ["dev", "ops", "system:authenticated", "system:masters"];
const NAMESPACES: [&str; 3] = ["", "a", "b"];
const RESOURCES: [&str; 4] = ["*", "pods", "secrets", "pods/log"];
const VERBS: [&str; 3] = ["*", "get", "create"];
const NAMES: [&str; 3] = ["", "x", "y"];
const PATHS: [&str; 4] = ["", "/logs", "/logs/*", "*"];

fuzz_target!(|bytes: &[u8]| {
    let mut choices = Choices { bytes };
    let chain = chain(&mut choices);
    for _ in 0..4 {
        let asked = question(&mut choices);
        let listed = chain.who_can(&asked);
        for name in USERS {
            for groups in [&[][..], &["dev"], &["ops", "dev"], &["system:masters"]] {
                let user = user(name, groups);
                let attributes = Attributes { user: Some(&user), ..asked };
                let decided =
                    finish(chain.authorize(&attributes, TraceRecorder::disabled_recorder()));
                let mut trace = Trace::default();
                let explained =
                    finish(chain.authorize(&attributes, TraceRecorder::new(&mut trace)));
                assert_eq!(show(&decided), show(&explained));
                let is_listed = listed.users.contains(name)
                    || user.groups.iter().any(|group| listed.groups.contains(group));
                let is_allowed = decided.decision.verdict == Verdict::Allow;
                assert_eq!(is_allowed, is_listed, "{user:?} {asked:?} {listed:?}");
            }
        }
    }
});

/// Bytes as a row of choices; when they are used up, always the first one.
struct Choices<'a> {
    bytes: &'a [u8],
}

impl Choices<'_> {
    fn number(&mut self, below: usize) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        usize::from(*first) % below
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.number(from.len())]
    }

    fn some(&mut self, from: &[&'static str]) -> Vec<String> {
        (0..self.number(3)).map(|_| self.pick(from).to_owned()).collect()
    }
}

fn chain(choices: &mut Choices<'_>) -> Chain {
    let (abac, rbac, node) = (abac(choices), rbac(choices), node(choices));
    let members = match choices.number(4) {
        0 => vec![abac, rbac, node],
        1 => vec![node, rbac],
        2 => vec![ChainMember::AlwaysDeny, rbac, abac],
        _ => vec![rbac],
    };
    Chain::new(members).expect("names differ")
}

fn abac(choices: &mut Choices<'_>) -> ChainMember {
    let mut line = |at| {
        let subject = match choices.number(3) {
            0 => (choices.pick(&USERS), ""),
            1 => ("", choices.pick(&GROUPS)),
            _ => ("*", ""),
        };
        let spec = authz_abac::PolicySpec {
            user: subject.0.to_owned(),
            group: subject.1.to_owned(),
            is_readonly: choices.number(2) == 1,
            api_group: String::new(),
            resource: choices.pick(&RESOURCES).to_owned(),
            namespace: choices.pick(&["", "*", "a"]).to_owned(),
            non_resource_path: choices.pick(&PATHS).to_owned(),
        };
        match choices.number(2) {
            0 => authz_abac::Policy::from_v1beta1(at, spec),
            _ => authz_abac::Policy::from_v0(at, spec),
        }
    };
    let lines = (1..4).map(&mut line).collect();
    ChainMember::Abac(Arc::new(authz_abac::Snapshot::new(lines).expect("few lines")))
}

fn rbac(choices: &mut Choices<'_>) -> ChainMember {
    let mut snapshot = Snapshot::default();
    for _ in 0..choices.number(12) {
        let metadata = Metadata {
            namespace: choices.pick(&NAMESPACES).to_owned(),
            name: choices.pick(&["p", "q", "r"]).to_owned(),
            ..Metadata::default()
        };
        let Metadata { namespace, name, .. } = metadata.clone();
        match choices.number(5) {
            0 => drop(snapshot.remove_role(Namespace::new(&namespace), &name)),
            1 => drop(snapshot.remove_binding(Namespace::new(&namespace), &name)),
            2 => snapshot.put_role(Role {
                metadata,
                rules: (0..choices.number(3)).map(|_| rule(choices)).collect(),
                aggregation_rule: None,
            }),
            _ => snapshot.put_binding(Binding {
                metadata,
                role_ref: RoleRef {
                    kind: choices.pick(&["ClusterRole", "Role", "Other"]).to_owned(),
                    name: choices.pick(&["p", "q", "r"]).to_owned(),
                    ..RoleRef::default()
                },
                subjects: (0..choices.number(4)).map(|_| subject(choices)).collect(),
            }),
        }
    }
    ChainMember::Rbac(Arc::new(snapshot))
}

fn rule(choices: &mut Choices<'_>) -> PolicyRule {
    let verbs = choices.some(&VERBS);
    if choices.number(4) == 0 {
        return PolicyRule {
            verbs,
            non_resource_urls: choices.some(&PATHS),
            ..PolicyRule::default()
        };
    }
    PolicyRule {
        verbs,
        api_groups: choices.some(&["", "*", "apps"]),
        resources: choices.some(&RESOURCES),
        resource_names: choices.some(&NAMES),
        ..PolicyRule::default()
    }
}

fn subject(choices: &mut Choices<'_>) -> Subject {
    match choices.number(3) {
        0 => Subject::user(choices.pick(&USERS)),
        1 => Subject::group(choices.pick(&GROUPS)),
        _ => Subject::service_account_subject(choices.pick(&NAMESPACES), "ci"),
    }
}

fn node(choices: &mut Choices<'_>) -> ChainMember {
    let mut policy = authz_node::Snapshot::default();
    let mut old: Option<authz_node::GraphObject> = None;
    for _ in 0..choices.number(6) {
        let pod = authz_node::GraphObject::Pod(Box::new(authz_node::Pod {
            namespace: choices.pick(&NAMESPACES[1..]).to_owned(),
            name: choices.pick(&["p", "q"]).to_owned(),
            node_name: choices.pick(&["", "n", "m"]).to_owned(),
            secret_names: choices.some(&NAMES),
            ..authz_node::Pod::default()
        }));
        match (choices.number(3), old.take()) {
            (0, Some(old)) => policy.graph.update_object(&old, &pod),
            (1, Some(old)) => policy.graph.delete_object(&old),
            _ => policy.graph.add_object(&pod),
        }
        old = Some(pod);
    }
    ChainMember::Node(Arc::new(policy))
}

fn question(choices: &mut Choices<'_>) -> Attributes<'static> {
    let verb = choices.pick(&["get", "create", "list", ""]);
    let target = match choices.number(4) {
        0 => Target::Path(choices.pick(&["", "/logs", "/logs/a", "/"])),
        _ => Target::Resource(Resource {
            api_group: choices.pick(&["", "apps"]),
            namespace: Namespace::new(choices.pick(&NAMESPACES)),
            resource: choices.pick(&["pods", "secrets", ""]),
            subresource: choices.pick(&["", "log"]),
            name: choices.pick(&NAMES),
            ..Resource::default()
        }),
    };
    Attributes { user: None, verb: Verb::new(verb), target }
}

fn user(name: &str, groups: &[&str]) -> User {
    let everybody: &[&str] = match name.starts_with("system:node:") {
        true => &["system:authenticated", "system:nodes"],
        false => &["system:authenticated"],
    };
    let groups = groups.iter().chain(everybody).map(|group| (*group).to_owned()).collect();
    User { name: name.to_owned(), groups, ..User::default() }
}

fn show(outcome: &ChainDecision<'_>) -> String {
    let decision = &outcome.decision;
    let error = decision.error.as_ref().map(ToString::to_string);
    format!(
        "{:?} {} {error:?} {:?}",
        decision.verdict, decision.reason, outcome.deciding_authorizer_name
    )
}

fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("nothing here waits"),
    }
}
