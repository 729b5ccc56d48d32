//! The rules of RBAC decisions, read from `testdata/decisions.txt`: for each rule the requests that it allows, and
//! the nearest ones that it does not.

use authz::{Attributes, Namespace, Resource, Target, TraceRecorder, User, Verb, Verdict};
use authz_rbac::{PolicyRule, Role, Snapshot, Subject};

use crate::decisions::{binding, role};

const BLOCKS: &str = include_str!("../../testdata/decisions.txt");

/// Splits `NAME@NAMESPACE`; without a namespace the object is cluster-scoped.
fn split_scope(text: &str) -> (&str, &str) {
    text.split_once('@').unwrap_or((text, ""))
}

fn parse_rule(fields: &[&str]) -> PolicyRule {
    let mut rule = PolicyRule::default();
    for field in fields {
        let (name, values) = field.split_once('=').unwrap();
        let values = values.split(',').map(|value| if value == "core" { "" } else { value });
        let list = match name {
            "verbs" => &mut rule.verbs,
            "groups" => &mut rule.api_groups,
            "resources" => &mut rule.resources,
            "names" => &mut rule.resource_names,
            "urls" => &mut rule.non_resource_urls,
            other => panic!("unknown field {other}"),
        };
        list.extend(values.map(str::to_owned));
    }
    rule
}

fn parse_subject(text: &str) -> Subject {
    match text.split_once(':').unwrap() {
        ("user", name) => Subject::user(name),
        ("group", name) => Subject::group(name),
        ("account", account) => {
            let (namespace, name) = account.split_once('/').unwrap();
            Subject::service_account_subject(namespace, name)
        }
        (other, _) => panic!("unknown subject {other}"),
    }
}

fn put_object(snapshot: &mut Snapshot, words: &[&str]) {
    match words {
        ["role", name, fields @ ..] => {
            let (name, namespace) = split_scope(name);
            let existing =
                snapshot.role(Namespace::new(namespace), name).map(|role| role.rules.clone());
            let mut rules = existing.unwrap_or_default();
            rules.push(parse_rule(fields));
            snapshot.put_role(Role { rules, ..role(namespace, name, Vec::new()) });
        }
        ["bind", name, role_ref, subjects @ ..] => {
            let (name, namespace) = split_scope(name);
            let subjects: Vec<Subject> = subjects.iter().map(|text| parse_subject(text)).collect();
            let role_ref = role_ref.split_once('/').unwrap();
            snapshot.put_binding(binding(namespace, name, role_ref, &subjects));
        }
        other => panic!("malformed object {other:?}"),
    }
}

fn parse_target(text: &str) -> Target<'_> {
    let Some((namespace, rest)) = text.split_once(':') else { return Target::Path(text) };
    let mut parts = rest.splitn(3, '/');
    let resource = parts.next().unwrap_or_default();
    let (resource, api_group) = resource.split_once('.').unwrap_or((resource, ""));
    let (subresource, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let resource = Resource {
        api_group,
        namespace: Namespace::new(namespace),
        resource,
        subresource,
        name,
        ..Resource::default()
    };
    Target::Resource(resource)
}

/// Checks one request: the name of the binding that decides it, or `-`. The explained decision is the same.
fn check(snapshot: &Snapshot, words: &[&str]) {
    let [want, user, verb, target] = words else { panic!("malformed case {words:?}") };
    let mut names = user.split('+').map(str::to_owned);
    let name = names.next().unwrap_or_default();
    let user = User { name, groups: names.collect(), ..User::default() };
    let attributes =
        Attributes { user: Some(&user), verb: Verb::new(verb), target: parse_target(target) };
    let mut trace = authz::Trace::default();
    for recorder in [TraceRecorder::disabled_recorder(), TraceRecorder::new(&mut trace)] {
        let decision = snapshot.authorize(&attributes, recorder);
        match decision.reason.rbac_grant() {
            Some(grant) => {
                assert_eq!((decision.verdict, grant.binding_name), (Verdict::Allow, *want))
            }
            None => assert_eq!((decision.verdict, "-"), (Verdict::NoOpinion, *want)),
        }
    }
    let subjects = snapshot.allowed_subjects(&attributes);
    let is_listed = subjects.users.contains(&user.name)
        || user
            .groups
            .iter()
            .any(|group| group != "system:masters" && subjects.groups.contains(group));
    assert_eq!(is_listed, *want != "-", "listed subjects: {subjects:?}");
}

#[test]
fn each_rule_allows_its_requests_and_not_the_nearest_others() {
    let lines = BLOCKS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut snapshot = Snapshot::default();
    let mut n_cases = 0;
    for line in lines {
        println!("{line}");
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["==", ..] => snapshot = Snapshot::default(),
            ["role" | "bind", ..] => put_object(&mut snapshot, &words),
            _ => {
                check(&snapshot, &words);
                n_cases += 1;
            }
        }
    }
    assert!(n_cases > 190, "{n_cases}");
}
