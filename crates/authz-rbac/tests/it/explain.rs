//! The events that an explained decision records.

use authz::{Trace, TraceEvent, TraceRecorder, Value};
use authz_rbac::{Snapshot, Subject};

use crate::decisions::{attributes, binding, role, rule, snapshot, user};

fn policy() -> Snapshot {
    let roles = vec![role("", "reader", vec![rule("get list", "core", "pods")])];
    let bindings = vec![
        binding("ns1", "b", ("ClusterRole", "reader"), &[Subject::user("ana")]),
        binding("ns1", "g", ("ClusterRole", "reader"), &[Subject::group("developers")]),
    ];
    snapshot(roles, bindings)
}

fn show(event: &TraceEvent) -> String {
    let mut shown = event.kind.to_string();
    for (name, value) in &event.trace_event_values {
        let value = match value {
            Value::Bool(truth) => truth.to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Text(text) => text.clone(),
            Value::List(texts) => texts.join(","),
        };
        shown.push_str(&format!(" {name}={value}"));
    }
    shown
}

#[track_caller]
fn check(name: &str, groups: &str, asked: &str, want: &[&str]) {
    let (policy, user) = (policy(), user(name, groups));
    let mut trace = Trace::default();
    let _ = policy.authorize(&attributes(&user, asked), TraceRecorder::new(&mut trace));
    let got: Vec<String> =
        trace.trace_entries().iter().map(|entry| show(&entry.trace_event)).collect();
    assert_eq!(got, want);
}

#[test]
fn an_allowed_request_names_binding_and_rule() {
    check(
        "ana",
        "",
        "get pods ns1",
        &[concat!(
            r#"binding name=b namespace=ns1 role=ClusterRole reader subject=User "ana" "#,
            r#"allows=true ruleIndex=0 "#,
            r#"rule={APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}"#,
        )],
    );
}

#[test]
fn a_missing_verb_is_a_near_miss() {
    check(
        "ana",
        "",
        "delete pods ns1",
        &[
            r#"binding name=b namespace=ns1 role=ClusterRole reader subject=User "ana" allows=false"#,
            "nearMiss name=b namespace=ns1 role=ClusterRole reader ruleIndex=0 lacks=verbs \
             has=get,list",
        ],
    );
}

#[test]
fn another_namespace_is_a_near_miss() {
    check(
        "ana",
        "",
        "get pods ns2",
        &["nearMiss name=b namespace=ns1 role=ClusterRole reader lacks=namespace"],
    );
}

#[test]
fn a_name_one_letter_off_is_a_near_miss() {
    check(
        "bob",
        "developer",
        "get pods ns1",
        &["nearMiss lacks=subject group=developer allowed=developers"],
    );
    check("zoe", "auditors", "get pods ns1", &[]);
}
