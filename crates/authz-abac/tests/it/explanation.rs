//! The events that an explained decision records.

use authz::{Attributes, Namespace, Resource, Target, Trace, TraceRecorder, User, Value, Verb};
use authz_abac::{NEAR_MISSES_MAX, Policy, PolicySpec, Snapshot};

/// Makes policies with lines from 1. Each row is user, group, namespace, resource, API group, path.
fn policies(lines: &[(bool, [&str; 6])]) -> Snapshot {
    let policies = lines.iter().zip(1..).map(|((is_readonly, parts), line)| {
        let [user, group, namespace, resource, api_group, path] = parts.map(str::to_owned);
        let is_readonly = *is_readonly;
        let non_resource_path = path;
        let spec = PolicySpec {
            user,
            group,
            is_readonly,
            api_group,
            resource,
            namespace,
            non_resource_path,
        };
        Policy::from_v1beta1(line, spec)
    });
    Snapshot::new(policies.collect()).unwrap()
}

fn user(name: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    User { name: name.to_owned(), groups, ..User::default() }
}

fn pods(namespace: &str) -> Target<'_> {
    Target::Resource(Resource {
        namespace: Namespace::new(namespace),
        resource: "pods",
        ..Resource::default()
    })
}

/// The recorded lines, each with the part that it lacks; the part is empty if the policy matches.
fn explain(policies: &Snapshot, user: &User, verb: &str, target: Target<'_>) -> Vec<(i64, String)> {
    let mut trace = Trace::default();
    let attributes = Attributes { user: Some(user), verb: Verb::new(verb), target };
    let decision = policies.authorize(&attributes, TraceRecorder::new(&mut trace));
    let noted = trace.trace_entries().iter().map(|entry| {
        assert_eq!(entry.trace_event.kind, "rule");
        let field = |name: &str| {
            entry
                .trace_event
                .trace_event_values
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
        };
        let matches = field("matches") == Some(Value::Bool(true));
        assert_eq!(matches, decision.verdict == authz::Verdict::Allow);
        match (field("line"), field("lacks")) {
            (Some(Value::Integer(line)), Some(Value::Text(lack))) => (line, lack),
            (Some(Value::Integer(line)), None) => (line, String::new()),
            other => panic!("{other:?}"),
        }
    });
    noted.collect()
}

fn missing_part(noted: &[(i64, String)]) -> Vec<(i64, &str)> {
    noted.iter().map(|(line, lack)| (*line, lack.as_str())).collect()
}

#[test]
fn the_matching_line_is_recorded_with_all_parts() {
    let policies = policies(&[
        (true, ["", "dev", "*", "*", "*", ""]),
        (false, ["ana", "", "web", "pods", "", ""]),
        (false, ["ana", "", "*", "*", "*", ""]),
    ]);
    let mut trace = Trace::default();
    let ana = user("ana", &["dev"]);
    let attributes = Attributes { user: Some(&ana), verb: Verb::CREATE, target: pods("web") };
    let _ = policies.authorize(&attributes, TraceRecorder::new(&mut trace));
    let [entry] = trace.trace_entries() else { panic!("{trace:?}") };
    let fields: Vec<_> = entry
        .trace_event
        .trace_event_values
        .iter()
        .map(|(name, value)| (name.as_ref(), value.clone()))
        .collect();
    let want = [
        ("line", Value::Integer(2)),
        ("user", "ana".into()),
        ("namespace", "web".into()),
        ("resource", "pods".into()),
        ("readonly", false.into()),
        ("matches", true.into()),
    ];
    assert_eq!(fields, want);
    assert_eq!(missing_part(&explain(&policies, &ana, "get", pods("web"))), [(1, "")]);
}

#[test]
fn near_misses_name_the_missing_part() {
    let policies = policies(&[
        (true, ["ana", "", "web", "pods", "", ""]), // Lacks the verb.
        (false, ["ana", "", "prod", "pods", "", ""]), // Another namespace.
        (false, ["ana", "", "web", "pod", "", ""]), // One letter off.
        (false, ["ana", "", "web", "secrets", "", ""]), // Another resource: no near miss.
        (false, ["ana", "", "web", "pods", "apps", ""]), // Another API group.
        (true, ["ana", "", "prod", "pods", "", ""]), // Two things.
        (false, ["ana", "ops", "web", "pods", "", ""]), // Not in the group.
        (false, ["anna", "", "web", "pods", "", ""]), // Almost the name.
        (false, ["", "devs", "web", "pods", "", ""]), // Almost the group.
        (false, ["", "other", "web", "pods", "", ""]), // Somebody else.
        (false, ["ana", "", "", "", "", "/healthz"]), // Not about resources.
    ]);
    let ana = user("ana", &["dev"]);
    let want = [
        (1, "verb"),
        (2, "namespace"),
        (3, "resource"),
        (5, "apiGroup"),
        (7, "group"),
        (8, "user"),
        (9, "group"),
    ];
    assert_eq!(missing_part(&explain(&policies, &ana, "create", pods("web"))), want);
}

#[test]
fn near_misses_of_paths() {
    let policies = policies(&[
        (true, ["ana", "", "", "", "", "/api"]),
        (false, ["ana", "", "", "", "", "/healthz/*"]),
        (false, ["ana", "", "", "", "", "/version"]),
    ]);
    let ana = user("ana", &[]);
    let explain = |verb: &str, path: &str| explain(&policies, &ana, verb, Target::Path(path));
    assert_eq!(missing_part(&explain("post", "/api")), [(1, "verb")]);
    assert_eq!(missing_part(&explain("get", "/healthz")), [(2, "nonResourcePath")]);
    assert_eq!(missing_part(&explain("get", "/versio")), [(3, "nonResourcePath")]);
    assert_eq!(missing_part(&explain("get", "/logs")), []);
}

#[test]
fn near_misses_are_few_and_in_file_order() {
    let lines: Vec<_> = (0..30).map(|_| (true, ["ana", "", "web", "pods", "", ""])).collect();
    let policies = policies(&lines);
    let noted = explain(&policies, &user("ana", &[]), "create", pods("web"));
    let lines: Vec<i64> = noted.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, (1..=i64::try_from(NEAR_MISSES_MAX).unwrap()).collect::<Vec<_>>());
}

#[test]
fn a_request_without_user_has_no_near_misses() {
    let policies = policies(&[(false, ["ana", "", "web", "pods", "", ""])]);
    let mut trace = Trace::default();
    let attributes = Attributes { user: None, verb: Verb::GET, target: pods("web") };
    let decision = policies.authorize(&attributes, TraceRecorder::new(&mut trace));
    assert_eq!(decision.verdict, authz::Verdict::NoOpinion);
    assert!(trace.trace_entries().is_empty());
}
