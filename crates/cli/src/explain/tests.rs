//! An explanation contains the same answer that `portcullis eval` gives.

use std::sync::Arc;

use authz::{User, Verdict};
use authz_chain::{AuthorizerName, Chain, ChainMember};
use authz_rbac::Snapshot;
use document::Source;
use manifests::abac;
use manifests::rbac::{RbacObject, decode_unvalidated_rbac_object};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::offline::{AssumedAnswer, test_stand_in};

const USERS: &[&str] = &["ana", "anna", "bob", "system:node:n1", ""];
const GROUPS: &[&str] = &["dev", "devs", "system:nodes", "system:masters", "system:authenticated"];
const NAMESPACES: &[&str] = &["", "prod", "dev"];
const VERBS: &[&str] = &["get", "list", "create", "*"];
const RESOURCES: &[&str] = &["pods", "pods/log", "secrets", "*"];
const CONDITIONS: &[&str] = &[
    "request.user != 'bob'",
    "request.resourceAttributes.namespace == 'prod'",
    "has(request.resourceAttributes)",
    "'dev' in request.groups",
];

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(texts)
}

fn some_of(texts: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(one_of(texts), 0..3)
}

fn rule() -> impl Strategy<Value = Value> {
    (some_of(VERBS), some_of(RESOURCES), some_of(&["", "apps", "*"])).prop_map(
        |(verbs, resources, groups)| {
            json!({"verbs": verbs, "resources": resources, "apiGroups": groups})
        },
    )
}

/// A role and a binding to this role, to another role or to a missing role.
fn grant() -> impl Strategy<Value = [Value; 2]> {
    let name = one_of(&["a", "b", "c"]);
    let role = one_of(&["a", "b", "c", "gone"]);
    let kind = one_of(&["User", "Group"]);
    (one_of(NAMESPACES), name, role, kind, one_of(USERS), one_of(GROUPS), rule()).prop_map(
        |(namespace, name, role, kind, user, group, rule)| {
            let in_namespace = !namespace.is_empty();
            let (role_kind, binding_kind) = match in_namespace {
                true => ("Role", "RoleBinding"),
                false => ("ClusterRole", "ClusterRoleBinding"),
            };
            let subject = if kind == "User" { user } else { group };
            let metadata = json!({"namespace": namespace, "name": name});
            let api_version = "rbac.authorization.k8s.io/v1";
            [
                json!({
                    "apiVersion": api_version, "kind": role_kind, "metadata": metadata,
                    "rules": [rule],
                }),
                json!({
                    "apiVersion": api_version, "kind": binding_kind, "metadata": metadata,
                    "roleRef": {"kind": role_kind, "name": role},
                    "subjects": [{"kind": kind, "name": subject}],
                }),
            ]
        },
    )
}

fn rbac_member() -> impl Strategy<Value = ChainMember> {
    proptest::collection::vec(grant(), 0..5).prop_map(|grants| {
        let mut snapshot = Snapshot::default();
        for object in grants.iter().flatten() {
            match decode_unvalidated_rbac_object(object).unwrap().into_object_unvalidated().unwrap()
            {
                RbacObject::Role(role) => snapshot.put_role(role),
                RbacObject::Binding(binding) => snapshot.put_binding(binding),
            }
        }
        ChainMember::Rbac(Arc::new(snapshot))
    })
}

fn abac_member() -> impl Strategy<Value = ChainMember> {
    let line = (one_of(USERS), one_of(GROUPS), one_of(RESOURCES), any::<bool>()).prop_map(
        |(user, group, resource, readonly)| {
            json!({"user": user, "group": group, "resource": resource, "readonly": readonly})
        },
    );
    proptest::collection::vec(line, 0..4).prop_map(|lines| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let source = Source { name: "p", file_bytes: text.as_bytes() };
        let loaded =
            abac::load_abac_policies(&source, &abac::AbacPolicyLoadOptions::default()).unwrap();
        ChainMember::Abac(Arc::new(loaded.abac_policy_snapshot))
    })
}

fn webhook_member() -> impl Strategy<Value = ChainMember> {
    let assumed = prop_oneof![
        Just(None),
        Just(Some(AssumedAnswer::Verdict(Verdict::Allow))),
        Just(Some(AssumedAnswer::Verdict(Verdict::Deny))),
        Just(Some(AssumedAnswer::Verdict(Verdict::NoOpinion))),
        Just(Some(AssumedAnswer::Error)),
    ];
    (some_of(CONDITIONS), assumed, any::<bool>()).prop_map(|(conditions, assumed, is_closed)| {
        let name = AuthorizerName::new("guard").unwrap();
        ChainMember::Plugin(name, Arc::new(test_stand_in("guard", &conditions, is_closed, assumed)))
    })
}

fn authorizer() -> impl Strategy<Value = OfflineAuthorizer> {
    let node = ChainMember::Node(Arc::new(authz_node::Snapshot::default()));
    let members = (webhook_member(), rbac_member(), abac_member())
        .prop_map(move |(w, r, a)| vec![w, r, node.clone(), a, ChainMember::AlwaysDeny]);
    members
        .prop_shuffle()
        .prop_map(|members| OfflineAuthorizer::from_chain(Chain::new(members).unwrap()))
}

fn question() -> impl Strategy<Value = AccessQuestion<'static>> {
    let target = prop_oneof![
        4 => (one_of(RESOURCES), one_of(NAMESPACES)).prop_map(|(resource, namespace)| {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let target = json!({
                "verb": "get", "resource": resource, "subresource": subresource,
                "namespace": namespace,
            });
            ("resourceAttributes", target)
        }),
        1 => one_of(&["/healthz", "/"]).prop_map(|path| {
            ("nonResourceAttributes", json!({"verb": "get", "path": path}))
        }),
    ];
    (one_of(USERS), some_of(GROUPS), one_of(VERBS), target).prop_map(
        |(user, groups, verb, (kind, mut target))| {
            target["verb"] = verb.into();
            let groups = if groups.is_empty() { vec!["other"] } else { groups };
            let spec = json!({"user": user, "groups": groups, (kind): target});
            access_reviews::review_parsing::read_review_line("", 1, &spec.to_string())
                .unwrap()
                .into_owned()
        },
    )
}

fn show(answer: &AccessAnswer<'_>) -> String {
    Value::Object(answer.to_json_map()).to_string()
}

proptest! {
    #[test]
    fn an_explanation_is_the_answer(authorizer in authorizer(), question in question()) {
        let quiet = authorizer.authorize(&question.attributes(), TraceRecorder::disabled_recorder());
        let quiet = AccessAnswer::new(&question, quiet);
        let explanation = explain_decision(&authorizer, &question);
        prop_assert_eq!(show(&quiet), show(&explanation.access_answer));
        prop_assert_eq!(quiet.exit_code(), explanation.access_answer.exit_code());
        let (mut people, mut programs) = (Vec::new(), Vec::new());
        human_output::write_human_explanation(&mut people, &explanation, TraceDetail::All, false).unwrap();
        json_output::write_json_explanation(&mut programs, &explanation).unwrap();
        let programs: Value = serde_json::from_slice(&programs).unwrap();
        prop_assert_eq!(programs["allowed"].as_bool(), Some(quiet.is_allowed()));
        let people = String::from_utf8(people).unwrap();
        let heading = match quiet.exit_code() {
            Exit::Clean => "ALLOWED  ",
            Exit::Undecided => "UNKNOWN  ",
            _ => "DENIED  ",
        };
        prop_assert!(people.starts_with(heading), "{}", people);
        // The tree contains every authorizer and marks the one that decided.
        for member in authorizer.authorizer_chain().chain_members() {
            prop_assert!(people.contains(&format!(" {}: ", member.name())), "{}", people);
        }
        let marks = people.lines().filter(|line| {
            ["├─ ✓ ", "└─ ✓ ", "├─ ✗ ", "└─ ✗ ", "├─ ? ", "└─ ? "]
                .iter()
                .any(|mark| line.starts_with(mark))
        });
        prop_assert_eq!(marks.count(), usize::from(quiet.chain_decision.deciding_authorizer_name.is_some()));
    }
}

/// A plugin may record events of any kind, and nest them.
#[test]
fn unknown_events_are_shown_as_they_are() {
    struct Talkative;
    impl authz::Authorizer for Talkative {
        fn authorize<'a>(
            &'a self,
            _: &'a authz::Attributes<'a>,
            mut recorder: TraceRecorder<'a>,
        ) -> authz::DecisionFuture<'a> {
            let event = || {
                authz::TraceEvent::new("moon")
                    .with_trace_event_value("phase", "full")
                    .with_trace_event_value("isUp", true)
                    .with_trace_event_value("days", 3usize)
                    .with_trace_event_value(
                        "seen\u{1b}",
                        vec!["here".to_owned(), "there\u{9b}".to_owned()],
                    )
            };
            recorder
                .record_parent_trace_event(event)
                .record_trace_event(|| authz::TraceEvent::new("tide"));
            Box::pin(std::future::ready(authz::Decision::deny("not tonight")))
        }
    }
    let name = AuthorizerName::new("almanac").unwrap();
    let chain =
        Chain::new(vec![ChainMember::Plugin(name, Arc::new(Talkative)), ChainMember::AlwaysAllow])
            .unwrap();
    let user = User { name: "ana".to_owned(), ..User::default() };
    let target = access_reviews::review_parsing::AccessTarget::Path("/x".into());
    let question = AccessQuestion { user, verb: "get".into(), target };
    let mut text = Vec::new();
    let authorizer = OfflineAuthorizer::from_chain(chain);
    human_output::write_human_explanation(
        &mut text,
        &explain_decision(&authorizer, &question),
        TraceDetail::All,
        false,
    )
    .unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "DENIED  ana get /x\n\
         ├─ ○ superuser: not in group system:masters\n\
         ├─ ✗ almanac: denies\n\
         │  └─ moon phase=full isUp=true days=3 seen␛=[here, there·]\n\
         │     └─ tide\n\
         └─ · alwaysallow: not asked\n\
         reason: not tonight\n"
    );
}
