use authz::{Namespace, Verb};

use super::*;
use crate::stage::Stage;

fn policy(rules: &str) -> Policy {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}\n");
    let (policy, warnings) = Policy::parse(text.as_bytes()).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    policy
}

fn resource<'a>(combined: &'a str, group: &'a str, ns: &'a str, name: &'a str) -> Target<'a> {
    let (resource, subresource) = combined.split_once('/').unwrap_or((combined, ""));
    let api_group = group;
    Target::Resource(Resource {
        api_group,
        namespace: Namespace::new(ns),
        resource,
        subresource,
        name,
        ..Resource::default()
    })
}

fn ana() -> User {
    User { name: "ana".to_owned(), groups: vec!["dev".to_owned()], ..User::default() }
}

fn level(rules: &str, user: Option<&User>, verb: &str, target: Target<'_>) -> Level {
    policy(rules).config_for_request(&Attributes { user, verb: Verb::new(verb), target }).level
}

#[test]
fn patterns_of_resources() {
    let cases = [
        ("pods", "pods", true),
        ("pods", "pods/log", false),
        ("pods/log", "pods/log", true),
        ("pods/log", "pods", false),
        ("pods/*", "pods", true),
        ("pods/*", "pods/log", true),
        ("pods/*", "services/log", false),
        ("*/scale", "deployments/scale", true),
        ("*/scale", "deployments", false),
        ("*/scale", "deployments/status", false),
        ("*/", "deployments", false),
        ("pods/", "pods", false),
        ("*", "pods", true),
        ("*", "pods/log", true),
        ("*/*", "pods/log", false), // neither of the two wildcards, as in Kubernetes
    ];
    for (pattern, asked, want) in cases {
        let rules = format!("- {{level: Metadata, resources: [{{resources: [\"{pattern}\"]}}]}}");
        let got = level(&rules, None, "get", resource(asked, "", "", ""));
        assert_eq!(got == Level::Metadata, want, "{pattern} for {asked}");
    }
}

#[test]
fn groups_names_and_namespaces() {
    let cases = [
        ("resources: [{group: apps}]", ("pods", "apps", "a", "x"), true),
        ("resources: [{group: apps}]", ("pods", "", "a", "x"), false),
        ("resources: [{group: \"\"}]", ("pods", "", "a", "x"), true),
        ("resources: [{group: \"*\"}]", ("pods", "any.io", "a", "x"), true),
        ("resources: [{group: a.io}, {resources: [pods]}]", ("pods", "", "a", "x"), true),
        ("resources: [{resources: [pods], resourceNames: [x]}]", ("pods", "", "a", "x"), true),
        ("resources: [{resources: [pods], resourceNames: [x]}]", ("pods", "", "a", "y"), false),
        ("namespaces: [a, b]", ("pods", "", "b", "x"), true),
        ("namespaces: [a, b]", ("pods", "", "c", "x"), false),
        ("namespaces: [\"\"]", ("nodes", "", "", "x"), true),
        ("namespaces: [\"\"]", ("pods", "", "a", "x"), false),
        ("namespaces: [a], resources: [{resources: [pods]}]", ("pods", "", "a", ""), true),
        ("namespaces: [a], resources: [{resources: [pods]}]", ("services", "", "a", ""), false),
    ];
    for (fields, (combined, group, ns, name), want) in cases {
        let rules = format!("- {{level: Request, {fields}}}");
        let got = level(&rules, None, "get", resource(combined, group, ns, name));
        assert_eq!(got == Level::Request, want, "{fields} for {combined} {group} {ns} {name}");
        // A rule about resources never is about paths.
        assert_eq!(level(&rules, None, "get", Target::Path("/pods")), Level::None, "{fields}");
    }
}

#[test]
fn paths() {
    let cases = [
        ("*", "/healthz", true),
        ("/healthz", "/healthz", true),
        ("/healthz", "/healthz/etcd", false),
        ("/healthz*", "/healthz/etcd", true),
        ("/healthz*", "/healthz", true),
        ("/healthz/*", "/healthz", false),
        ("/*", "/", true),
    ];
    for (pattern, path, want) in cases {
        let rules = format!("- {{level: Metadata, nonResourceURLs: [\"{pattern}\"]}}");
        let got = level(&rules, None, "get", Target::Path(path));
        assert_eq!(got == Level::Metadata, want, "{pattern} for {path}");
        assert_eq!(level(&rules, None, "get", resource("pods", "", "", "")), Level::None);
    }
}

#[test]
fn users_groups_and_verbs() {
    let user = ana();
    let cases = [
        ("users: [ana]", Some(&user), true),
        ("users: [bob]", Some(&user), false),
        ("users: [ana]", None, false),
        ("userGroups: [ops, dev]", Some(&user), true),
        ("userGroups: [ops]", Some(&user), false),
        ("userGroups: [dev]", None, false),
        ("users: [ana], userGroups: [ops]", Some(&user), false),
        ("verbs: [get, list]", None, true),
        ("verbs: [list]", None, false),
        ("verbs: [\"*\"]", None, false), // a verb has no wildcard
        ("verbs: []", None, true),
    ];
    for (fields, user, want) in cases {
        let rules = format!("- {{level: Metadata, {fields}}}");
        for target in [Target::Path("/version"), resource("pods", "", "", "")] {
            assert_eq!(level(&rules, user, "get", target) == Level::Metadata, want, "{fields}");
        }
    }
}

#[test]
fn the_first_rule_that_matches_wins() {
    let rules = "- {level: None, verbs: [get]}\n- {level: RequestResponse, users: [ana]}\n\
                 - {level: Metadata}";
    let user = ana();
    let path = Target::Path("/x");
    assert_eq!(level(rules, Some(&user), "get", path), Level::None);
    assert_eq!(level(rules, Some(&user), "post", path), Level::RequestResponse);
    assert_eq!(level(rules, None, "post", path), Level::Metadata);
}

#[test]
fn stages_add_up_and_managed_fields_are_overridden() {
    let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n\
                omitManagedFields: true\nrules:\n\
                - {level: Metadata, verbs: [get], omitStages: [Panic]}\n\
                - {level: Request, omitManagedFields: false, verbs: [list]}\n";
    let (policy, _) = Policy::parse(text.as_bytes()).unwrap();
    let config = |verb| {
        policy.config_for_request(&Attributes { user: None, verb, target: Target::Path("/") })
    };
    let received = StageSet::default().with_stage(Stage::RequestReceived);
    let want = |level, omit_stages, omit_managed_fields| RequestAuditConfig {
        level,
        omit_stages,
        omit_managed_fields,
    };
    assert_eq!(config(Verb::GET), want(Level::Metadata, received.with_stage(Stage::Panic), true));
    assert_eq!(config(Verb::LIST), want(Level::Request, received, false));
    assert_eq!(config(Verb::new("put")), want(Level::None, received, true));
}

fn refusal(text: &str) -> String {
    Policy::parse(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn what_is_no_policy_is_refused() {
    let head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";
    assert!(refusal("a: b: c").starts_with("the policy cannot be read: yaml: "));
    assert!(refusal("").starts_with("not an audit policy: found kind `` of ``"));
    assert!(refusal("[]").starts_with("not an audit policy"));
    assert!(
        refusal("apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]\n")
            .starts_with("not an audit policy: found kind `Policy` of `audit.k8s.io/v1beta1`")
    );
    assert_eq!(refusal(head), "the policy has no rules");
    assert_eq!(refusal(&format!("{head}rules: []")), "the policy has no rules");
    let long = format!("{head}#{}", " ".repeat(document::DOCUMENT_BYTES_MAX));
    assert_eq!(refusal(&long), "the policy is longer than 1048576 bytes");
}

#[test]
fn faults_name_their_field() {
    let cases = [
        ("- {}", "rules[0].level: Required value"),
        (
            "- {level: Everything}",
            "rules[0].level: Unsupported value: \"Everything\": supported values: \
             \"None\", \"Metadata\", \"Request\", \"RequestResponse\"",
        ),
        ("- {level: 3}", "rules[0].level: Invalid value: 3: must be a string"),
        ("- 3", "rules[0]: Invalid value: 3: must be an object"),
        ("- {level: None, users: ana}", "rules[0].users: Invalid value: \"ana\": must be a list"),
        ("- {level: None, users: [1]}", "rules[0].users[0]: Invalid value: 1: must be a string"),
        (
            "- {level: None, omitStages: [Done]}",
            "rules[0].omitStages[0]: Invalid value: \"Done\": allowed stages are \
             RequestReceived,ResponseStarted,ResponseComplete,Panic",
        ),
        (
            "- {level: None, nonResourceURLs: [healthz]}",
            "rules[0].nonResourceURLs[0]: Invalid value: \"healthz\": \
             non-resource URL rules must begin with a '/' character",
        ),
        (
            "- {level: None, nonResourceURLs: [\"/a*b\"]}",
            "rules[0].nonResourceURLs[0]: Invalid value: \"/a*b\": \
             non-resource URL wildcards '*' must be the final character of the rule",
        ),
        (
            "- {level: None, nonResourceURLs: [/a], resources: [{group: apps}]}",
            "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: \
             rules cannot apply to both regular resources and non-resource URLs",
        ),
        (
            "- {level: None, nonResourceURLs: [/a], namespaces: [b]}",
            "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: \
             rules cannot apply to both regular resources and non-resource URLs",
        ),
        (
            "- {level: None, resources: [{resourceNames: [a]}]}",
            "rules[0].resources[0].resourceNames: Invalid value: [\"a\"]: \
             using resourceNames requires at least one resource",
        ),
    ];
    for (rules, want) in cases {
        let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}\n");
        assert_eq!(refusal(&text), want, "{rules}");
    }
    let group = refusal(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n\
         - {level: None, resources: [{group: apps/v1}]}\n",
    );
    assert!(group.starts_with("rules[0].resources[0].group: Invalid value: \"apps/v1\": "));
}

#[test]
fn all_faults_are_named_at_once() {
    let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [x]\n\
                rules: [{level: x}, {level: None, nonResourceURLs: [x]}]\n";
    let Err(PolicyError::Fields(errors)) = Policy::parse(text.as_bytes()) else {
        panic!("no faults were found");
    };
    let paths: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(paths, ["omitStages[0]", "rules[0].level", "rules[1].nonResourceURLs[0]"]);
}

#[test]
fn what_kubernetes_passes_over_is_a_warning() {
    let text = "{\"apiVersion\": \"audit.k8s.io/v1\", \"kind\": \"Policy\", \"surprise\": 1, \
                \"rules\": [{\"level\": \"None\", \"userGroup\": [\"a\"]}]}";
    let (_, warnings) = Policy::parse(text.as_bytes()).unwrap();
    assert_eq!(
        warnings,
        [
            "surprise: unknown field",
            "rules[0].userGroup: unknown field, did you mean `userGroups`?"
        ]
    );
    let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n\
                - {level: None, verbs: [get], verbs: [list]}\n";
    let (_, warnings) = Policy::parse(text.as_bytes()).unwrap();
    assert_eq!(warnings, ["rules[0].verbs: key stands twice"]);
}
