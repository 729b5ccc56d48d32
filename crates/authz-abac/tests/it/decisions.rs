//! The rules of ABAC decisions, read from `testdata/decisions.txt`: for each rule the requests that it allows, and
//! the nearest ones that it does not.

use authz::{Attributes, Namespace, Reason, Resource, Target, TraceRecorder, User, Verb, Verdict};
use authz_abac::{NO_POLICY_MATCHED, Policy, PolicySpec, Snapshot};

const BLOCKS: &str = include_str!("../../testdata/decisions.txt");

fn parse_policy(line: usize, text: &str) -> Policy {
    let (version, fields) = text.split_once(' ').unwrap_or((text, ""));
    let mut spec = PolicySpec::default();
    for field in fields.split_whitespace() {
        match field.split_once('=').unwrap_or((field, "")) {
            ("user", value) => spec.user = value.into(),
            ("group", value) => spec.group = value.into(),
            ("namespace", value) => spec.namespace = value.into(),
            ("resource", value) => spec.resource = value.into(),
            ("apiGroup", value) => spec.api_group = value.into(),
            ("nonResourcePath", value) => spec.non_resource_path = value.into(),
            ("readonly", _) => spec.is_readonly = true,
            (other, _) => panic!("unknown field {other}"),
        }
    }
    match version {
        "v0" => Policy::from_v0(line, spec),
        "v1beta1" => Policy::from_v1beta1(line, spec),
        other => panic!("unknown version {other}"),
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

/// Checks one request: the line of the policy that decides it, or `-`.
fn check(snapshot: &Snapshot, case: &str) {
    let [want, user, verb, target] = case.split(' ').collect::<Vec<_>>()[..] else {
        panic!("malformed case {case}");
    };
    let mut names = user.split('+').map(str::to_owned);
    let name = names.next().unwrap_or_default();
    let user = User { name, groups: names.collect(), ..User::default() };
    let attributes =
        Attributes { user: Some(&user), verb: Verb::new(verb), target: parse_target(target) };
    let decision = snapshot.authorize(&attributes, TraceRecorder::disabled_recorder());
    match (decision.verdict, &decision.reason) {
        (Verdict::Allow, Reason::AbacPolicy { line }) => assert_eq!(line.to_string(), want),
        (Verdict::NoOpinion, reason) => {
            assert_eq!(want, "-");
            assert_eq!(*reason, NO_POLICY_MATCHED);
        }
        (verdict, reason) => panic!("{verdict:?} {reason}"),
    }
}

#[test]
fn each_rule_allows_its_requests_and_not_the_nearest_others() {
    let text: String = BLOCKS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut n_cases = 0;
    for block in text.split("== ").skip(1) {
        let (rule, lines) = block.split_once('\n').unwrap();
        let (policies, cases): (Vec<&str>, Vec<&str>) =
            lines.lines().filter(|line| !line.is_empty()).partition(|line| line.starts_with('v'));
        let policies = (1..).zip(policies).map(|(line, policy)| parse_policy(line, policy));
        let snapshot = Snapshot::new(policies.collect()).unwrap();
        for case in cases {
            println!("{rule}: {case}");
            check(&snapshot, case);
            n_cases += 1;
        }
    }
    assert!(n_cases > 200, "{n_cases}");
}
