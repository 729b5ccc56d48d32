//! Random policies over few names, so that many rules match a random request.

use std::collections::BTreeSet;
use std::sync::Arc;

use authz::{
    Attributes, Authorizer, Decision, DecisionFuture, DeniedSubjects, Namespace, Resource,
    Subjects, Target, TraceRecorder, User, Verb,
};
use authz_chain::{AuthorizerName, Chain, ChainMember};
use authz_rbac::{Binding, Metadata, PolicyRule, Role, RoleRef, Snapshot, Subject};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

pub(crate) const USERS: [&str; 6] = [
    "ana",
    "bob",
    "system:serviceaccount:a:ci",
    "system:serviceaccount:b:ci",
    NODE,
    "system:node:m",
];
pub(crate) const GROUPS: [&str; 5] =
    ["dev", "ops", "system:authenticated", "system:unauthenticated", "system:masters"];
const NODE: &str = "system:node:n";
const NAMESPACES: [&str; 3] = ["", "a", "b"];
const RESOURCES: [&str; 4] = ["pods", "secrets", "nodes", "leases"];
const VERBS: [&str; 3] = ["get", "list", "create"];
const NAMES: [&str; 3] = ["", "x", "n"];
const PATHS: [&str; 3] = ["/healthz", "/logs/a", ""];

/// A request without its user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestWithoutUser {
    verb: &'static str,
    path: Option<&'static str>,
    namespace: &'static str,
    resource: &'static str,
    name: &'static str,
}

impl RequestWithoutUser {
    pub(crate) fn attributes<'a>(&self, user: Option<&'a User>) -> Attributes<'a> {
        let target = match self.path {
            Some(path) => Target::Path(path),
            None => Target::Resource(Resource {
                namespace: Namespace::new(self.namespace),
                resource: self.resource,
                name: self.name,
                ..Resource::default()
            }),
        };
        Attributes { user, verb: Verb::new(self.verb), target }
    }
}

pub(crate) fn question() -> impl Strategy<Value = RequestWithoutUser> {
    let path = prop::option::weighted(0.2, select(&PATHS[..]));
    let parts = (select(&VERBS[..]), path, select(&NAMESPACES[..]), select(&RESOURCES[..]));
    (parts, select(&NAMES[..])).prop_map(|((verb, path, namespace, resource), name)| {
        RequestWithoutUser { verb, path, namespace, resource, name }
    })
}

/// An authorizer that decides by lists of names.
#[derive(Debug, Clone)]
struct NameListAuthorizer {
    allowed: Subjects,
}

impl Authorizer for NameListAuthorizer {
    fn authorize<'a>(
        &'a self,
        asked: &'a Attributes<'a>,
        _: TraceRecorder<'a>,
    ) -> DecisionFuture<'a> {
        let has = |users: &BTreeSet<String>, groups: &BTreeSet<String>| {
            asked.user.is_some_and(|user| {
                users.contains(&user.name) || user.groups.iter().any(|it| groups.contains(it))
            })
        };
        let decision = if has(&self.allowed.users, &self.allowed.groups) {
            Decision::allow("on the list")
        } else {
            match &self.allowed.denied_subjects {
                DeniedSubjects::Everybody => Decision::deny("not on the list"),
                DeniedSubjects::Listed { users, groups } if has(users, groups) => {
                    Decision::deny("on the other list")
                }
                DeniedSubjects::Listed { .. } | DeniedSubjects::Nobody => Decision::no_opinion(""),
            }
        };
        Box::pin(std::future::ready(decision))
    }

    fn allowed_subjects(&self, _: &Attributes<'_>) -> Subjects {
        self.allowed.clone()
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn names(from: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<String>> {
    subsequence(from, 0..=most).prop_map(|names| owned(&names))
}

fn lists() -> impl Strategy<Value = ChainMember> {
    let denied = prop_oneof![
        3 => Just(DeniedSubjects::Nobody),
        1 => Just(DeniedSubjects::Everybody),
        4 => (names(&USERS, 2), names(&GROUPS[..2], 1)).prop_map(|(users, groups)| {
            DeniedSubjects::Listed {
                users: users.into_iter().collect(),
                groups: groups.into_iter().collect(),
            }
        }),
    ];
    (names(&USERS, 1), names(&GROUPS[..2], 1), denied).prop_map(|(users, groups, denied)| {
        let (users, groups) = (users.into_iter().collect(), groups.into_iter().collect());
        let allowed = Subjects { users, groups, denied_subjects: denied, ..Subjects::default() };
        ChainMember::Plugin(
            AuthorizerName::new("lists").unwrap(),
            Arc::new(NameListAuthorizer { allowed }),
        )
    })
}

/// Policies for a user or for a group, but not for a user as a member of a group: the listing can only add a
/// note about those.
fn abac() -> impl Strategy<Value = ChainMember> {
    let subject = prop_oneof![
        select(&USERS[..]).prop_map(|user| (user, "")),
        select(&GROUPS[..]).prop_map(|group| ("", group)),
        Just(("*", "")),
    ];
    let target = (any::<bool>(), select(&["", "*", "pods", "secrets"][..]));
    let place = (select(&["", "*", "a"][..]), select(&["", "*", "/logs/*", "/healthz"][..]));
    let line = (any::<bool>(), subject, target, place).prop_map(
        |(is_v0, (user, group), (is_readonly, resource), (namespace, path))| {
            let spec = authz_abac::PolicySpec {
                user: user.to_owned(),
                group: group.to_owned(),
                is_readonly,
                api_group: String::new(),
                resource: resource.to_owned(),
                namespace: namespace.to_owned(),
                non_resource_path: path.to_owned(),
            };
            match is_v0 {
                true => authz_abac::Policy::from_v0(1, spec),
                false => authz_abac::Policy::from_v1beta1(1, spec),
            }
        },
    );
    prop::collection::vec(line, 0..4)
        .prop_map(|lines| ChainMember::Abac(Arc::new(authz_abac::Snapshot::new(lines).unwrap())))
}

fn rule() -> impl Strategy<Value = PolicyRule> {
    let verbs = prop_oneof![Just(owned(&["*"])), names(&VERBS, 2)];
    let resources = prop_oneof![Just(owned(&["*"])), names(&RESOURCES, 2)];
    (verbs, resources, names(&NAMES[1..], 1), names(&PATHS[..2], 1), any::<bool>()).prop_map(
        |(verbs, resources, resource_names, paths, is_for_paths)| match is_for_paths {
            true => PolicyRule { verbs, non_resource_urls: paths, ..PolicyRule::default() },
            false => PolicyRule {
                verbs,
                api_groups: vec![String::new()],
                resources,
                resource_names,
                ..PolicyRule::default()
            },
        },
    )
}

fn subject() -> impl Strategy<Value = Subject> {
    prop_oneof![
        select(&USERS[..]).prop_map(Subject::user),
        select(&GROUPS[..]).prop_map(Subject::group),
        select(&NAMESPACES[..])
            .prop_map(|namespace| Subject::service_account_subject(namespace, "ci")),
    ]
}

fn rbac() -> impl Strategy<Value = ChainMember> {
    let role = (select(&NAMESPACES[..]), prop::collection::vec(rule(), 0..3));
    let roles = prop::collection::vec(role, 0..4);
    let subjects = prop::collection::vec(subject(), 0..3);
    let binding = (select(&NAMESPACES[..]), 0..5usize, any::<bool>(), subjects);
    let bindings = prop::collection::vec(binding, 0..5);
    (roles, bindings).prop_map(|(roles, bindings)| {
        let mut snapshot = Snapshot::default();
        let metadata = |namespace: &str, name: String| Metadata {
            namespace: namespace.to_owned(),
            name,
            ..Metadata::default()
        };
        for (at, (namespace, rules)) in roles.into_iter().enumerate() {
            let metadata = metadata(namespace, format!("r{at}"));
            snapshot.put_role(Role { metadata, rules, aggregation_rule: None });
        }
        for (at, (namespace, role, is_local, subjects)) in bindings.into_iter().enumerate() {
            let kind = if is_local && !namespace.is_empty() { "Role" } else { "ClusterRole" };
            snapshot.put_binding(Binding {
                metadata: metadata(namespace, format!("b{at}")),
                role_ref: RoleRef {
                    kind: kind.to_owned(),
                    name: format!("r{role}"),
                    ..RoleRef::default()
                },
                subjects,
            });
        }
        ChainMember::Rbac(Arc::new(snapshot))
    })
}

fn node() -> impl Strategy<Value = ChainMember> {
    let pod = (select(&NAMESPACES[1..]), select(&["n", "m"][..]), names(&NAMES[1..], 2));
    prop::collection::vec(pod, 0..3).prop_map(|pods| {
        let mut policy = authz_node::Snapshot::default();
        for (at, (namespace, node, secrets)) in pods.into_iter().enumerate() {
            policy.graph.add_object(&authz_node::GraphObject::Pod(Box::new(authz_node::Pod {
                namespace: namespace.to_owned(),
                name: format!("p{at}"),
                node_name: node.to_owned(),
                secret_names: secrets,
                ..authz_node::Pod::default()
            })));
        }
        ChainMember::Node(Arc::new(policy))
    })
}

/// A chain of some authorizers, in any order.
pub(crate) fn chain() -> impl Strategy<Value = Chain> {
    let always =
        prop_oneof![9 => Just(ChainMember::AlwaysDeny), 1 => Just(ChainMember::AlwaysAllow)];
    let all = (abac(), rbac(), node(), lists(), always)
        .prop_map(|(abac, rbac, node, lists, always)| vec![abac, rbac, node, lists, always])
        .prop_shuffle();
    (all, 0..=5usize).prop_map(|(mut members, n)| {
        members.truncate(n);
        Chain::new(members).unwrap()
    })
}

/// A user as authentication makes it: in `system:authenticated` or `system:unauthenticated`, and in the group
/// of nodes if the name is that of a node.
pub(crate) fn user_with_groups() -> impl Strategy<Value = User> {
    let groups = subsequence(&GROUPS[..2], 0..=2);
    let everybody = select(&["system:authenticated", "system:unauthenticated"][..]);
    let is_master = prop::bool::weighted(0.05);
    (select(&USERS[..]), groups, everybody, is_master).prop_map(
        |(name, mut groups, all, master)| {
            groups.push(all);
            if name.starts_with("system:node:") {
                groups.push("system:nodes");
            }
            if master {
                groups.push("system:masters");
            }
            User { name: name.to_owned(), groups: owned(&groups), ..User::default() }
        },
    )
}
