//! Validation of the `v1alpha1` kinds.

use admission::ConfigurationKind::{ExternalHook, Initializer};
use admission::{validate_configuration_create, validate_configuration_update};
use serde_json::{Value, json};

use crate::documents::{created, object, updated, warnings_of, with};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const FORBIDDEN: &str =
    "Forbidden: must be \"Ignore\" when first registered; update it to \"Fail\" once it is serving";
/// A certificate of an authority in PEM, in base64.
const CA_BUNDLE: &str = include_str!("ca_bundle.b64");

fn rule(changes: Value) -> Value {
    with(json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}), changes)
}

fn hook_rule(changes: Value) -> Value {
    with(with(rule(json!({})), json!({"verbs": ["CREATE"]})), changes)
}

fn initializer(name: &str, rules: Value) -> Value {
    json!({"name": name, "rules": rules})
}

fn hook(changes: Value) -> Value {
    let hook = json!({
        "name": "a.b.c",
        "clientConfig": {
            "service": {"namespace": "n", "name": "s"}, "caBundle": CA_BUNDLE.trim(),
        },
        "rules": [hook_rule(json!({}))],
    });
    with(hook, changes)
}

fn of_hook_rule(changes: Value) -> Vec<String> {
    created(ExternalHook, json!([hook(json!({"rules": [hook_rule(changes)]}))]))
}

fn of_initializer_rule(changes: Value) -> Vec<String> {
    created(Initializer, json!([initializer("a.b.c", json!([rule(changes)]))]))
}

#[test]
fn an_initializer_needs_no_rules_and_a_configuration_no_initializers() {
    assert!(created(Initializer, json!([{"name": "a.b.c"}])).is_empty());
    assert!(created(Initializer, json!([])).is_empty());
    assert!(created(Initializer, Value::Null).is_empty());
}

#[test]
fn names_are_fully_qualified() {
    let names = ["a.b.c", "k8s.io", "", "A.b.c"].map(|name| json!({"name": name}));
    assert_eq!(
        created(Initializer, json!(names)),
        [
            "initializers[1].name: Invalid value: \"k8s.io\": should be a domain with at least three \
             segments separated by dots"
                .to_owned(),
            "initializers[2].name: Required value".to_owned(),
            format!("initializers[3].name: Invalid value: \"A.b.c\": {SUBDOMAIN}"),
        ]
    );
}

#[test]
fn names_are_unique() {
    let twice = json!([{"name": "a.b.c"}, {"name": "a.b.c"}]);
    let want = ["initializers[1].name: Duplicate value: \"a.b.c\""];
    assert_eq!(created(Initializer, twice), want);
    let twice = json!([hook(json!({})), hook(json!({}))]);
    let want = ["externalAdmissionHooks[1].name: Duplicate value: \"a.b.c\""];
    assert_eq!(created(ExternalHook, twice), want);
}

#[test]
fn rules_of_initializers() {
    let at = |rest: &str| format!("initializers[0].rules[0].{rest}");
    for (changes, want) in [
        (json!({"apiGroups": []}), vec!["apiGroups: Required value"]),
        (json!({"apiGroups": null}), vec!["apiGroups: Required value"]),
        (json!({"apiVersions": []}), vec!["apiVersions: Required value"]),
        (json!({"resources": null}), vec!["resources: Required value"]),
        (json!({"apiGroups": ["a", ""]}), vec![]),
        (json!({"apiVersions": ["v1", ""]}), vec!["apiVersions[1]: Required value"]),
        (json!({"resources": ["pods", ""]}), vec!["resources[1]: Required value"]),
        (
            json!({"apiGroups": ["a", "*"]}),
            vec![
                r#"apiGroups: Invalid value: ["a","*"]: if '*' is present, must not specify other API groups"#,
            ],
        ),
        (
            json!({"apiGroups": ["*", "a"]}),
            vec![
                r#"apiGroups: Invalid value: ["*","a"]: if '*' is present, must not specify other API groups"#,
            ],
        ),
        (
            json!({"apiVersions": ["v1", "*"]}),
            vec![
                r#"apiVersions: Invalid value: ["v1","*"]: if '*' is present, must not specify other API versions"#,
            ],
        ),
        (
            json!({"resources": ["pods", "*"]}),
            vec![
                r#"resources: Invalid value: ["pods","*"]: if '*' is present, must not specify other resources"#,
            ],
        ),
        (
            json!({"resources": ["pods/log"]}),
            vec![r#"resources[0]: Invalid value: "pods/log": must not specify subresources"#],
        ),
        (json!({"resources": ["*/*"]}), vec![]),
        (
            json!({"resources": ["*/*", "pods"]}),
            vec![
                r#"resources: Invalid value: ["*/*","pods"]: if '*/*' is present, must not specify other resources"#,
            ],
        ),
    ] {
        let want: Vec<String> = want.into_iter().map(at).collect();
        assert_eq!(of_initializer_rule(changes), want);
    }
}

#[test]
fn rules_of_hooks() {
    let at = |rest: &str| format!("externalAdmissionHooks[0].rules[0].{rest}");
    const SUPPORTED: &str = r#"supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE""#;
    let unsupported =
        |at: &str, value: &str| format!("{at}: Unsupported value: \"{value}\": {SUPPORTED}");
    let covered = |at: &str, value: &str, wider: &str| {
        format!(
            "{at}: Invalid value: \"{value}\": if '{wider}' is present, must not specify {value}"
        )
    };
    for (changes, want) in [
        (json!({"resources": ["*", "pods/exec"]}),
            vec![
                r#"resources: Invalid value: ["*","pods/exec"]: if '*' is present, must not specify other resources"#
                    .to_owned(),
            ],
        ),
        (json!({"resources": ["*/*", "pods"]}),
            vec![
                r#"resources: Invalid value: ["*/*","pods"]: if '*/*' is present, must not specify other resources"#
                    .to_owned(),
            ],
        ),
        (json!({"resources": ["*/*", "pods/*", "*/log"]}),
            vec![
                r#"resources: Invalid value: ["*/*","pods/*","*/log"]: if '*/*' is present, must not specify other resources"#
                    .to_owned(),
            ],
        ),
        (json!({"resources": ["pods/*", "pods/log"]}),
            vec![covered("resources[1]", "pods/log", "pods/*")],
        ),
        (json!({"resources": ["pods/log", "pods/*"]}),
            vec![covered("resources[0]", "pods/log", "pods/*")],
        ),
        (json!({"resources": ["*/scale", "pods/scale"]}),
            vec![covered("resources[1]", "pods/scale", "*/scale")],
        ),
        (json!({"resources": ["pods/scale", "*/scale"]}),
            vec![covered("resources[0]", "pods/scale", "*/scale")],
        ),
        (json!({"resources": ["pods", "pods/*"]}), vec![]),
        (json!({"verbs": []}), vec!["verbs: Required value".to_owned()]),
        (json!({"verbs": null}), vec!["verbs: Required value".to_owned()]),
        (json!({"verbs": ["CREATE", "*"]}),
            vec![
                r#"verbs: Invalid value: ["CREATE","*"]: if '*' is present, must not specify other operations"#
                    .to_owned(),
            ],
        ),
        (json!({"verbs": ["CREATE", ""]}), vec![unsupported("verbs[1]", "")]),
        (json!({"verbs": ["PATCH"]}), vec![unsupported("verbs[0]", "PATCH")]),
        (json!({"verbs": null, "operations": ["CREATE"]}), vec![]),
        (json!({"verbs": ["CREATE"], "operations": ["UPDATE"]}),
            vec![
                r#"operations: Invalid value: ["UPDATE"]: must equal verbs when both are set"#
                    .to_owned(),
            ],
        ),
        (json!({"verbs": ["CREATE", "UPDATE"], "operations": ["UPDATE", "CREATE"]}),
            vec![],
        ),
    ] {
        let want: Vec<String> = want.iter().map(|rest| at(rest)).collect();
        assert_eq!(of_hook_rule(changes), want);
    }
}

#[test]
fn operations_may_be_called_verbs() {
    let rule = hook_rule(json!({"verbs": null, "operations": ["CREATE"]}));
    let stored = object(ExternalHook, "a", json!([hook(json!({"rules": [rule]}))]));
    let rule = &stored["externalAdmissionHooks"][0]["rules"][0];
    assert_eq!((&rule["operations"], rule.get("verbs")), (&json!(["CREATE"]), None));
}

#[test]
fn failure_policies_are_ignore_and_fail() {
    let other = hook(json!({"failurePolicy": "other"}));
    let want = [
        r#"externalAdmissionHooks[0].failurePolicy: Unsupported value: "other": supported values: "Fail", "Ignore""#,
    ];
    assert_eq!(created(ExternalHook, json!([other])), want);
}

#[test]
fn failure_policy_defaults_to_ignore() {
    let stored = object(ExternalHook, "a", json!([hook(json!({}))]));
    assert_eq!(stored["externalAdmissionHooks"][0]["failurePolicy"], "Ignore");
    let stored = object(Initializer, "a", json!([{"name": "a.b.c"}]));
    assert_eq!(stored["initializers"][0], json!({"name": "a.b.c", "failurePolicy": "Ignore"}));
}

#[test]
fn new_hooks_must_have_failure_policy_ignore() {
    let (ignore, fail) = (json!("Ignore"), json!("Fail"));
    let of = |name: &str, policy: &Value| hook(json!({"name": name, "failurePolicy": policy}));
    let at = |idx: usize| format!("externalAdmissionHooks[{idx}].failurePolicy: {FORBIDDEN}");
    assert_eq!(created(ExternalHook, json!([of("a.b.c", &fail)])), [at(0)]);
    let one_of_two = json!([{"name": "a.b.c"}, {"name": "d.b.c", "failurePolicy": "Fail"}]);
    let want = [format!("initializers[1].failurePolicy: {FORBIDDEN}")];
    assert_eq!(created(Initializer, one_of_two), want);
    for (from, to, want) in [
        (&ignore, json!([of("a.b.c", &fail)]), vec![]),
        (&fail, json!([of("a.b.c", &ignore)]), vec![]),
        (&fail, json!([of("a.b.c", &fail)]), vec![]),
        (&ignore, json!([of("a.b.c", &ignore), of("d.b.c", &fail)]), vec![at(1)]),
        (&ignore, json!([of("a.b.c", &ignore), of("d.b.c", &ignore)]), vec![]),
        (&fail, json!([of("d.b.c", &fail)]), vec![at(0)]),
    ] {
        let from = json!([of("a.b.c", from)]);
        assert_eq!(updated(ExternalHook, from, to), want);
    }
}

#[test]
fn raising_the_failure_policy_with_other_changes_is_warned_about() {
    let ignore = hook(json!({}));
    let fail = hook(json!({"failurePolicy": "Fail"}));
    let changed = with(fail.clone(), json!({"rules": []}));
    let warnings_of = |new: &Value| warnings_of(ExternalHook, Some(json!([ignore])), json!([new]));
    assert!(warnings_of(&fail).is_empty());
    let want = [
        "externalAdmissionHooks[0]: failurePolicy raised to Fail together with clientConfig or rules",
    ];
    assert_eq!(warnings_of(&changed), want);
}

#[test]
fn client_config_validation() {
    let service = json!({"namespace": "n", "name": "s"});
    let config =
        |changes: Value| with(json!({"service": service, "caBundle": CA_BUNDLE.trim()}), changes);
    let path = |path: &str| config(json!({"urlPath": path}));
    let invalid =
        |path: &str, detail: &str| vec![format!("urlPath: Invalid value: \"{path}\": {detail}")];
    let required = |member: &str| vec![format!("{member}: Required value")];
    for (config, want) in [
        (config(json!({"caBundle": null})), required("caBundle")),
        (config(json!({"caBundle": ""})), required("caBundle")),
        (
            config(json!({"caBundle": "Zm9v"})),
            vec![r#"caBundle: Invalid value: "Zm9v": unable to parse any certificate"#.to_owned()],
        ),
        (config(json!({"service": {"namespace": "n", "name": ""}})), required("service.name")),
        (config(json!({"service": {"name": "s"}})), required("service.namespace")),
        (
            config(json!({"service": null})),
            [required("service.name"), required("service.namespace")].concat(),
        ),
        (path("foo/"), invalid("foo/", "must start with a '/'")),
        (path("//"), invalid("//", "segment[0] may not be empty")),
        (path("/a//b/"), invalid("/a//b/", "segment[1] may not be empty")),
        (path("/a/--x"), invalid("/a/--x", &format!("segment[1]: {SUBDOMAIN}"))),
        (path("/"), vec![]),
        (path("/foo"), vec![]),
        (path(""), vec![]),
    ] {
        let want: Vec<String> = want
            .iter()
            .map(|rest| format!("externalAdmissionHooks[0].clientConfig.{rest}"))
            .collect();
        let hook = hook(json!({"clientConfig": config}));
        assert_eq!(created(ExternalHook, json!([hook])), want);
    }
}

#[test]
fn reserved_names_are_refused_on_create_and_warned_about_on_update() {
    let stored = object(Initializer, "x.static.k8s.io", json!([]));
    let errors = validate_configuration_create(Initializer, &stored).to_string();
    assert!(errors.starts_with("metadata.name: Invalid value: \"x.static.k8s.io\": names ending"));
    assert!(validate_configuration_update(Initializer, &stored, &stored).is_empty());
    let warnings = admission::configuration_warnings(Initializer, &stored, Some(&stored));
    assert_eq!(warnings.len(), 1);
    assert!(
        admission::configuration_warnings(Initializer, &stored, None).is_empty(),
        "then it is an error"
    );
}

/// The errors of a path of several megabytes must not take the square of its length.
#[test]
fn faults_of_a_path_are_limited() {
    let path = "/-".repeat(100_000);
    let config = json!({"service": {"namespace": "n", "name": "s"}, "caBundle": CA_BUNDLE.trim(),
        "urlPath": path});
    let n_errors = created(ExternalHook, json!([hook(json!({"clientConfig": config}))])).len();
    assert_eq!(n_errors, 32);
}
