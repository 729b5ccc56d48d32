//! The subjects that a chain lists are those that it allows.

use std::sync::Arc;

use authz::{
    Attributes, Authorizer, Decision, DecisionFuture, DeniedSubjects, Namespace, Resource,
    Subjects, Target, TraceRecorder, User, Verb, Verdict,
};
use authz_abac::{Policy, PolicySpec};
use authz_chain::{AuthorizerName, Chain, ChainMember};
use authz_rbac::{Binding, Metadata, PolicyRule, Role, RoleRef, Snapshot, Subject};
use proptest::prelude::*;

use crate::policy::{chain, question, user_with_groups};
use crate::{finish, user};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// A user is listed, by name or by a group, if and only if the chain allows it.
    /// L28, L31: denials and the groups of everybody are part of the random policy.
    #[test]
    fn who_is_listed_is_allowed_and_nobody_else(
        chain in chain(),
        questions in prop::collection::vec(question(), 5),
        askers in prop::collection::vec(user_with_groups(), 12),
    ) {
        for question in &questions {
            let listed = chain.who_can(&question.attributes(None));
            let by_name = listed.users.iter().map(|name| user(name, &groups_of(name)));
            // The group of nodes stands only for members that are nodes.
            let groups = listed.groups.iter().filter(|group| *group != "system:nodes");
            let by_group = groups.map(|group| user("nobody", &[group]));
            for user_with_groups in by_name.chain(by_group) {
                let outcome =
                    finish(chain.authorize(&question.attributes(Some(&user_with_groups)), TraceRecorder::disabled_recorder()));
                let verdict = outcome.decision.verdict;
                prop_assert_eq!(verdict, Verdict::Allow, "{:?} {:?} {:?}", user_with_groups, listed, chain);
            }
            for user_with_groups in &askers {
                let attributes = question.attributes(Some(user_with_groups));
                let outcome = finish(chain.authorize(&attributes, TraceRecorder::disabled_recorder()));
                let is_allowed = outcome.decision.verdict == Verdict::Allow;
                let is_listed = listed.users.contains(&user_with_groups.name)
                    || user_with_groups.groups.iter().any(|group| listed.groups.contains(group));
                let context = format!("{user_with_groups:?} {question:?} {listed:?} {chain:?}");
                if is_denied_in_part(user_with_groups, &listed) {
                    // The user is listed by a group or by name and denied by the other one: a note says so.
                    prop_assert!(!is_allowed || is_listed, "{}", context);
                } else {
                    prop_assert_eq!(is_allowed, is_listed, "{}", context);
                }
            }
        }
    }
}

/// The groups that every user of this name has.
fn groups_of(name: &str) -> Vec<&'static str> {
    let is_node = name.starts_with("system:node:");
    if is_node {
        vec!["system:authenticated", "system:nodes"]
    } else {
        vec!["system:authenticated"]
    }
}

fn is_denied_in_part(user_with_groups: &User, listed: &Subjects) -> bool {
    match &listed.denied_subjects {
        DeniedSubjects::Nobody | DeniedSubjects::Everybody => false,
        DeniedSubjects::Listed { users, groups } => {
            users.contains(&user_with_groups.name)
                || user_with_groups.groups.iter().any(|it| groups.contains(it))
        }
    }
}

fn list_in_default<'a>(verb: &'a str, resource: &'a str) -> Attributes<'a> {
    let resource =
        Resource { namespace: Namespace::new("default"), resource, ..Resource::default() };
    Attributes { user: None, verb: Verb::new(verb), target: Target::Resource(resource) }
}

/// Formats the subjects as `users|groups|notes`, each joined by commas.
fn show(subjects: &Subjects) -> String {
    let users: Vec<&str> = subjects.users.iter().map(String::as_str).collect();
    let groups: Vec<&str> = subjects.groups.iter().map(String::as_str).collect();
    format!("{}|{}|{}", users.join(","), groups.join(","), subjects.subject_listing_notes.join(","))
}

fn who_can(members: Vec<ChainMember>, asked: &Attributes<'_>) -> String {
    show(&Chain::new(members).unwrap().who_can(asked))
}

fn abac(lines: &[PolicySpec]) -> ChainMember {
    let lines = lines.iter().zip(1..).map(|(spec, line)| Policy::from_v0(line, spec.clone()));
    ChainMember::Abac(Arc::new(authz_abac::Snapshot::new(lines.collect()).unwrap()))
}

fn spec(user: &str, group: &str, resource: &str, is_readonly: bool) -> PolicySpec {
    PolicySpec {
        user: user.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        is_readonly,
        ..PolicySpec::default()
    }
}

fn binding(namespace: &str, name: &str, role: &str, subjects: Vec<Subject>) -> Binding {
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    let role_ref =
        RoleRef { kind: "ClusterRole".into(), name: role.to_owned(), ..RoleRef::default() };
    Binding { metadata: Metadata { namespace, name, ..Metadata::default() }, role_ref, subjects }
}

/// ClusterRole `reader` lists replication controllers.
fn rbac(bindings: Vec<Binding>) -> ChainMember {
    let mut snapshot = Snapshot::default();
    let list = |text: &str| vec![text.to_owned()];
    snapshot.put_role(Role {
        metadata: Metadata { name: "reader".into(), ..Metadata::default() },
        rules: vec![PolicyRule {
            verbs: list("list"),
            api_groups: list(""),
            resources: list("replicationcontrollers"),
            ..PolicyRule::default()
        }],
        aggregation_rule: None,
    });
    bindings.into_iter().for_each(|binding| snapshot.put_binding(binding));
    ChainMember::Rbac(Arc::new(snapshot))
}

#[test]
fn each_authorizer_contributes() {
    let asked = list_in_default("list", "replicationcontrollers");
    let events = list_in_default("list", "events");
    let two_lines = || abac(&[spec("alice", "", "", false), spec("", "", "events", true)]);
    let ana = || Subject::user("ana");
    let masters = "system:masters";
    for (members, asked, want) in [
        (
            vec![ChainMember::AlwaysAllow],
            asked,
            "|system:authenticated,system:masters,system:unauthenticated|".to_owned(),
        ),
        (vec![ChainMember::AlwaysDeny], asked, format!("|{masters}|")),
        (vec![two_lines()], events, format!("alice|system:authenticated,{masters}|")),
        (
            vec![two_lines()],
            Attributes { verb: Verb::CREATE, ..events },
            format!("alice|{masters}|"),
        ),
        (
            vec![abac(&[spec("u", "g", "", false)])],
            asked,
            format!("u|{masters}|abac: line 1 grants user \"u\" only as a member of group \"g\""),
        ),
        (
            vec![rbac(vec![
                binding("default", "broken", "gone", vec![Subject::user("bob")]),
                binding("default", "good", "reader", vec![ana()]),
            ])],
            asked,
            format!("ana|{masters}|rbac: clusterrole.rbac.authorization.k8s.io \"gone\" not found"),
        ),
        (
            vec![rbac(vec![
                binding("", "one", "reader", vec![ana(), ana()]),
                binding("default", "two", "reader", vec![ana()]),
            ])],
            asked,
            format!("ana|{masters}|"),
        ),
        (
            vec![rbac(vec![binding(
                "default",
                "one",
                "reader",
                vec![Subject::service_account_subject("", "ci")],
            )])],
            asked,
            format!("system:serviceaccount:default:ci|{masters}|"),
        ),
        (
            vec![
                abac(&[spec("Clark", "", "replicationcontrollers", true)]),
                rbac(vec![
                    binding("", "all", "reader", vec![Subject::group("cluster-admins")]),
                    binding(
                        "default",
                        "some",
                        "reader",
                        vec![Subject::user("Hubert"), Subject::service_account_subject("", "ci")],
                    ),
                ]),
            ],
            asked,
            format!("Clark,Hubert,system:serviceaccount:default:ci|cluster-admins,{masters}|"),
        ),
    ] {
        assert_eq!(who_can(members, &asked), want);
    }
}

#[test]
fn nodes_are_listed_by_their_related_objects() {
    let list = |text: &str| vec![text.to_owned()];
    let services = authz::ResourceRule {
        verbs: list("get"),
        api_groups: list(""),
        resources: list("services"),
        ..authz::ResourceRule::default()
    };
    let rules = authz_node::NodeRules {
        resource_rules: vec![services],
        ..authz_node::NodeRules::default()
    };
    let mut policy =
        authz_node::Snapshot { node_rules: Arc::new(rules), ..authz_node::Snapshot::default() };
    policy.graph.add_object(&authz_node::GraphObject::Pod(Box::new(authz_node::Pod {
        namespace: "ns0".into(),
        name: "pod0".into(),
        node_name: "node0".into(),
        secret_names: vec!["s0".into()],
        ..authz_node::Pod::default()
    })));
    let members = || vec![ChainMember::Node(Arc::new(policy.clone()))];
    let secret = Resource {
        namespace: Namespace::new("ns0"),
        resource: "secrets",
        name: "s0",
        ..Resource::default()
    };
    let secret = Attributes { user: None, verb: Verb::GET, target: Target::Resource(secret) };
    assert_eq!(who_can(members(), &secret), "system:node:node0|system:masters|");
    let services = list_in_default("get", "services");
    assert_eq!(who_can(members(), &services), "|system:masters,system:nodes|");
}

/// An authorizer that cannot list subjects, with or without a note of its own.
struct UnlistableAuthorizer {
    subjects: Option<Subjects>,
}

impl Authorizer for UnlistableAuthorizer {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>, _: TraceRecorder<'a>) -> DecisionFuture<'a> {
        Box::pin(std::future::ready(Decision::no_opinion("")))
    }

    fn allowed_subjects(&self, _: &Attributes<'_>) -> Subjects {
        let unknown =
            || Subjects::unlistable_subjects("webhook authorizer cannot enumerate subjects");
        self.subjects.clone().unwrap_or_else(unknown)
    }
}

fn remote(name: &str, subjects: Option<Subjects>) -> ChainMember {
    ChainMember::Plugin(
        AuthorizerName::new(name).unwrap(),
        Arc::new(UnlistableAuthorizer { subjects }),
    )
}

#[test]
fn an_authorizer_that_can_not_list_is_named() {
    let asked = list_in_default("list", "pods");
    let chain = Chain::new(vec![remote("authz", None), ChainMember::AlwaysDeny]).unwrap();
    let subjects = chain.who_can(&asked);
    let want = "|system:masters|authz: webhook authorizer cannot enumerate subjects";
    assert_eq!(show(&subjects), want);
    assert!(subjects.is_incomplete);
}

/// L31: a subject that an earlier authorizer denies is not listed by a later one.
#[test]
fn denials_count_for_those_who_come_later() {
    let asked = list_in_default("list", "replicationcontrollers");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let denying =
        |denied| remote("guard", Some(Subjects { denied_subjects: denied, ..Subjects::default() }));
    let granting = || {
        let subjects = vec![Subject::user("ana"), Subject::user("bob"), Subject::group("dev")];
        rbac(vec![binding("", "all", "reader", subjects)])
    };
    let some = DeniedSubjects::Listed { users: names(&["bob"]), groups: names(&["ops"]) };
    for (members, want) in [
        (
            vec![denying(some.clone()), granting()],
            "ana|dev,system:masters|guard: denies user \"bob\" and group \"ops\", whatever the \
             authorizers after it say",
        ),
        (
            vec![granting(), denying(some)],
            "ana,bob|dev,system:masters|guard: denies user \"bob\" and group \"ops\", whatever the \
             authorizers after it say",
        ),
        (vec![denying(DeniedSubjects::Everybody), granting()], "|system:masters|"),
        (vec![denying(DeniedSubjects::Everybody), remote("later", None)], "|system:masters|"),
        (
            vec![
                denying(DeniedSubjects::Listed { users: names(&["a", "b"]), groups: names(&[]) }),
                ChainMember::AlwaysDeny,
            ],
            "|system:masters|guard: denies 2 users, whatever the authorizers after it say",
        ),
    ] {
        assert_eq!(who_can(members, &asked), want);
    }
}
