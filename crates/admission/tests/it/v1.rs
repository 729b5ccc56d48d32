//! Validation of the `v1` kinds.

use admission::ConfigurationKind::{Mutating, Validating};
use admission::{MATCH_CONDITIONS_MAX, validate_configuration_create};
use serde_json::{Value, json};

use crate::documents::{created, object, updated, warnings_of, with};

fn webhook(changes: Value) -> Value {
    let webhook = json!({
        "name": "a.example.com",
        "clientConfig": {"url": "https://example.com"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    with(webhook, changes)
}

fn rule(changes: Value) -> Value {
    let rule = json!({
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
    });
    with(rule, changes)
}

/// The validation errors of one webhook, without the path of the webhook.
fn faults(changes: Value) -> Vec<String> {
    stripped(created(Mutating, json!([webhook(changes)])))
}

fn stripped(errors: Vec<String>) -> Vec<String> {
    let strip = |error: String| error.strip_prefix("webhooks[0].").unwrap_or(&error).to_owned();
    errors.into_iter().map(strip).collect()
}

#[test]
fn defaults_of_webhooks() {
    let stored = object(Validating, "a", json!([webhook(json!({}))]));
    let defaults = json!({
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
        "namespaceSelector": {}, "objectSelector": {},
    });
    assert_eq!(stored["webhooks"][0], webhook(defaults.clone()));
    let changes = json!({
        "clientConfig": {"service": {"namespace": "n", "name": "s"}},
        "rules": [rule(json!({}))],
    });
    let stored = object(Mutating, "a", json!([webhook(changes)]));
    let want = json!({
        "clientConfig": {"service": {"namespace": "n", "name": "s", "port": 443}},
        "rules": [rule(json!({"scope": "*"}))],
        "reinvocationPolicy": "Never",
    });
    assert_eq!(stored["webhooks"][0], with(webhook(defaults), want));
}

#[test]
fn side_effects_and_review_versions() {
    let none = r#"supported values: "None", "NoneOnDryRun""#;
    let unsupported = vec![format!("sideEffects: Unsupported value: \"Some\": {none}")];
    let want = "sideEffects: Required value: must specify one of None, NoneOnDryRun";
    assert_eq!(faults(json!({"sideEffects": null})), [want]);
    assert_eq!(faults(json!({"sideEffects": "Some"})), unsupported);
    let versions = |versions: Value| json!({"admissionReviewVersions": versions});
    let missing = "admissionReviewVersions: Required value: must specify one of v1, v1beta1";
    assert_eq!(faults(versions(Value::Null)), [missing]);
    assert_eq!(faults(versions(json!([]))), [missing]);
    let odd = faults(versions(json!(["0v"])));
    assert!(odd[0].starts_with(
        r#"admissionReviewVersions[0]: Invalid value: "0v": a DNS-1035 label must consist of"#
    ));
    let unknown = r#"admissionReviewVersions: Invalid value: ["x"]: must include at least one of v1, v1beta1"#;
    assert_eq!(faults(versions(json!(["x"]))), [unknown]);
    let twice = r#"admissionReviewVersions[1]: Invalid value: "v1": duplicate version"#;
    assert_eq!(faults(versions(json!(["v1", "v1"]))), [twice]);
    assert!(faults(versions(json!(["v1beta1", "invalid-version"]))).is_empty());

    let changed = |from: Value, to: Value| {
        stripped(updated(Mutating, json!([webhook(from)]), json!([webhook(to)])))
    };
    let effects = |effects: &str| json!({"sideEffects": effects});
    assert!(changed(effects("Unknown"), effects("Unknown")).is_empty());
    assert_eq!(changed(effects("None"), effects("Some")), unsupported);
    let (old, new) = (versions(json!(["old-v0"])), versions(json!(["old-v1"])));
    assert!(changed(old, new).is_empty());
    for old in [json!(["v1beta1", "x"]), json!([])] {
        assert_eq!(changed(versions(old), versions(json!(["x"]))), [unknown]);
    }
}

#[test]
fn timeout_range() {
    for seconds in [0, -1, 31] {
        let want = format!(
            "timeoutSeconds: Invalid value: {seconds}: the timeout value must be between 1 and 30 \
             seconds"
        );
        assert_eq!(faults(json!({"timeoutSeconds": seconds})), [want]);
    }
    for seconds in [1, 15, 30] {
        assert!(faults(json!({"timeoutSeconds": seconds})).is_empty());
    }
}

#[test]
fn duplicate_names_are_accepted_only_if_stored() {
    let twice = json!([webhook(json!({})), webhook(json!({}))]);
    let want = ["webhooks[1].name: Duplicate value: \"a.example.com\""];
    assert_eq!(created(Validating, twice.clone()), want);
    assert!(updated(Validating, twice.clone(), twice.clone()).is_empty());
    assert_eq!(updated(Validating, json!([webhook(json!({}))]), twice), want);
}

#[test]
fn client_config_validation() {
    let service = json!({"namespace": "n", "name": "s"});
    let url = |url: &str| json!({"url": url});
    let path = |path: &str| json!({"service": with(service.clone(), json!({"path": path}))});
    let port = |port: i64| json!({"service": with(service.clone(), json!({"port": port}))});
    let invalid = |member: &str, value: &str, detail: &str| {
        format!("{member}: Invalid value: \"{value}\": {detail}")
    };
    let form = "; desired format: https://host[/path]";
    let scheme =
        |got: &str| invalid("url", got, &format!("'https' is the only allowed URL scheme{form}"));
    let host = || invalid("url", "", &format!("host must be specified{form}"));
    let both = json!({"url": "https://example.com", "service": service});
    let one = ": Required value: exactly one of url or service is required".to_owned();
    let bad_port = |port: i64| {
        format!(
            "service.port: Invalid value: {port}: port is not valid: must be between 1 and 65535, \
             inclusive"
        )
    };
    for (config, want) in [
        (both, vec![one.clone()]),
        (json!({}), vec![one]),
        (url("http://example.com"), vec![scheme("http")]),
        (url(""), vec![scheme(""), host()]),
        (url("https:///x"), vec![host()]),
        (
            url("https://harry@example.com"),
            vec![invalid("url", "harry", "user information is not permitted in the URL")],
        ),
        (
            url("https://example.com/#f"),
            vec![invalid("url", "f", "fragments are not permitted in the URL")],
        ),
        (
            url("https://example.com?q=1"),
            vec![invalid("url", "q=1", "query parameters are not permitted in the URL")],
        ),
        (path("foo/"), vec![invalid("service.path", "foo/", "must start with a '/'")]),
        (path("//"), vec![invalid("service.path", "//", "segment[0] may not be empty")]),
        (
            path("/foo//bar/"),
            vec![invalid("service.path", "/foo//bar/", "segment[1] may not be empty")],
        ),
        (
            path("/foo/bar//"),
            vec![invalid("service.path", "/foo/bar//", "segment[2] may not be empty")],
        ),
        (path(""), vec![]),
        (path("/"), vec![]),
        (path("/foo"), vec![]),
        (port(0), vec![bad_port(0)]),
        (port(65536), vec![bad_port(65536)]),
        (port(65535), vec![]),
    ] {
        let join = |rest: &String| match rest.strip_prefix(':') {
            Some(_) => format!("clientConfig{rest}"),
            None => format!("clientConfig.{rest}"),
        };
        let want: Vec<String> = want.iter().map(join).collect();
        assert_eq!(faults(json!({"clientConfig": config})), want, "{config}");
    }
}

#[test]
fn rules_and_enumerated_fields() {
    let of = |resources: Value| faults(json!({"rules": [rule(json!({"resources": resources}))]}));
    assert!(of(json!(["*", "a/b", "a/*", "*/b"])).is_empty());
    assert_eq!(
        of(json!(["*", "a"])),
        [
            r#"rules[0].resources: Invalid value: ["*","a"]: if '*' is present, must not specify other resources without subresources"#
        ]
    );
    assert!(of(json!(["a", "*"])).is_empty());
    let rules = json!([webhook(json!({"rules": [rule(json!({"resources": ["a", "*"]}))]}))]);
    let want = ["webhooks[0].rules[0].resources[0]: 'a' has no effect beside '*'"];
    assert_eq!(warnings_of(Validating, None, rules), want);
    for (resources, at, value, wider) in
        [(json!(["a/*", "a/x"]), 1, "a/x", "a/*"), (json!(["*/a", "x/a"]), 1, "x/a", "*/a")]
    {
        let want = format!(
            "rules[0].resources[{at}]: Invalid value: \"{value}\": if '{wider}' is present, must not \
             specify {value}"
        );
        assert_eq!(of(resources), [want]);
    }
    assert_eq!(of(json!(["*/*", "a"])).len(), 1);
    let supported = |values: &[&str]| {
        let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        format!("supported values: {}", values.join(", "))
    };
    for (changes, at, value, values) in [
        (
            json!({"rules": [rule(json!({"scope": "Other"}))]}),
            "rules[0].scope",
            "Other",
            &["*", "Cluster", "Namespaced"][..],
        ),
        (json!({"matchPolicy": "Loose"}), "matchPolicy", "Loose", &["Equivalent", "Exact"]),
        (
            json!({"reinvocationPolicy": "Always"}),
            "reinvocationPolicy",
            "Always",
            &["IfNeeded", "Never"],
        ),
    ] {
        let want = format!("{at}: Unsupported value: {value:?}: {}", supported(values));
        assert_eq!(faults(changes), [want]);
    }
}

#[test]
fn selector_validation() {
    let of =
        |expression: Value| faults(json!({"objectSelector": {"matchExpressions": [expression]}}));
    let at = "objectSelector.matchExpressions[0]";
    assert_eq!(
        of(json!({"key": "a", "operator": "Foo"})),
        [format!("{at}.operator: Invalid value: \"Foo\": not a valid selector operator")]
    );
    assert_eq!(
        of(json!({"key": "a", "operator": "In"})),
        [format!(
            "{at}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
        )]
    );
    let odd = json!({"objectSelector":
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["bad value"]}]}});
    assert_eq!(faults(odd.clone()).len(), 1);
    let (old, new) = (json!([webhook(odd.clone())]), json!([webhook(odd)]));
    assert!(updated(Validating, old, new).is_empty(), "what was stored may stay");
}

fn condition(name: &str, expression: &str) -> Value {
    json!({"name": name, "expression": expression})
}

#[test]
fn match_condition_validation() {
    let of = |conditions: Value| faults(json!({"matchConditions": conditions}));
    let at = |rest: &str| format!("matchConditions[0].{rest}");
    let of_name = of(json!([{"expression": "true"}]));
    assert_eq!(of_name, [at("name: Required value")]);
    let of_name = of(json!([condition("-hello", "true")]));
    assert!(of_name[0].starts_with(&at("name: Invalid value: \"-hello\": name part must")));
    let twice = json!([condition("a", "true"), condition("a", "true")]);
    assert_eq!(of(twice), ["matchConditions[1].name: Duplicate value: \"a\""]);
    let same =
        |name: &str| webhook(json!({"name": name, "matchConditions": [condition("a", "true")]}));
    assert!(created(Validating, json!([same("a.b.c"), same("d.b.c")])).is_empty());
    for (expression, want) in [
        ("  ", "expression: Required value"),
        (
            "object.x in [1, 2, ",
            "expression: Invalid value: \"object.x in [1, 2,\": compilation failed: ",
        ),
        ("6", "expression: Invalid value: \"6\": must evaluate to bool but got int"),
        (
            "params.x",
            "expression: Invalid value: \"params.x\": compilation failed: ERROR: <input>:1:1: \
             undeclared reference to 'params'",
        ),
    ] {
        let errors = of(json!([condition("a", expression)]));
        assert!(errors.len() == 1 && errors[0].starts_with(&at(want)), "{errors:?}");
    }
    let many =
        |n: usize| (0..n).map(|idx| condition(&format!("c{idx}"), "true")).collect::<Vec<_>>();
    assert!(of(json!(many(MATCH_CONDITIONS_MAX))).is_empty());
    assert_eq!(
        of(json!(many(MATCH_CONDITIONS_MAX + 1))),
        ["matchConditions: Too many: 65: must have at most 64 items"]
    );
}

#[test]
fn unchanged_conditions_are_not_validated_again() {
    let broken = webhook(json!({"matchConditions": [condition("a", "6")]}));
    let other = with(broken.clone(), json!({"timeoutSeconds": 3}));
    assert!(updated(Validating, json!([broken]), json!([other])).is_empty());
    let worse = with(broken.clone(), json!({"matchConditions": [condition("a", "7")]}));
    assert_eq!(updated(Validating, json!([broken]), json!([worse])).len(), 1);
}

/// A function that is new in this version may be used in a condition only if the stored object uses it already. So
/// a rollback to the previous version is possible.
#[test]
fn new_functions_are_allowed_in_stored_conditions_only() {
    let at = |n: usize, expression: &str| condition(&format!("c{n}"), expression);
    let hook = |conditions: Value| json!([webhook(json!({"matchConditions": conditions}))]);
    let new = "[1].includes(1)";
    let refused = |n: usize| {
        format!(
            "webhooks[0].matchConditions[{n}].expression: Invalid value: \"{new}\": compilation \
             failed: ERROR: <input>:1:13: undeclared reference to 'includes' (in container '')\n | \
             {new}\n | ............^"
        )
    };
    assert_eq!(created(Validating, hook(json!([at(0, new)]))), [refused(0)]);
    assert!(created(Validating, hook(json!([at(0, "[1].exists(x, x == 1)")]))).is_empty());

    let stored = hook(json!([at(0, new)]));
    let beside = hook(json!([at(0, "true"), at(1, new)]));
    assert!(updated(Validating, stored.clone(), beside.clone()).is_empty(), "it is stored");
    let padded = hook(json!([at(0, "true"), at(1, &format!(" {new}\n"))]));
    assert!(updated(Validating, stored, padded).is_empty(), "blanks around it do not count");
    let other = hook(json!([at(0, "true")]));
    assert_eq!(updated(Validating, other, beside), [refused(1)], "it is not");
}

#[test]
fn new_webhooks_may_have_failure_policy_fail() {
    assert!(faults(json!({"failurePolicy": "Fail"})).is_empty());
}

#[test]
fn rules_for_reviews_are_warned_about() {
    let warnings_of = |groups: Value, resources: Value| {
        let rule = rule(json!({"apiGroups": groups, "resources": resources}));
        warnings_of(Validating, None, json!([webhook(json!({"rules": [rule]}))]))
    };
    let want =
        ["webhooks[0].rules[0]: tokenreviews.authentication.k8s.io is excluded from admission \
         webhooks; this rule will have no effect"];
    assert_eq!(warnings_of(json!(["authentication.k8s.io"]), json!(["tokenreviews"])), want);
    assert!(warnings_of(json!(["*"]), json!(["tokenreviews"])).is_empty());
    assert!(warnings_of(json!(["authentication.k8s.io"]), json!(["*"])).is_empty());
    assert!(warnings_of(json!(["authorization.k8s.io"]), json!(["tokenreviews"])).is_empty());
}

#[test]
fn reserved_names_are_refused() {
    let reserved = object(Validating, "x.static.k8s.io", json!([]));
    let want = "metadata.name: Invalid value: \"x.static.k8s.io\": names ending with \
        \".static.k8s.io\" are reserved for static manifest-based configurations and cannot be \
        managed via the API";
    assert_eq!(validate_configuration_create(Validating, &reserved).to_string(), want);
}

#[test]
fn an_unusable_ca_bundle_is_warned_about() {
    let config = json!({"url": "https://example.com", "caBundle": "Zm9v"});
    assert!(faults(json!({"clientConfig": config})).is_empty());
    let webhooks = json!([webhook(json!({"clientConfig": config}))]);
    let want = [
        "webhooks[0].clientConfig.caBundle: unable to parse bytes as PEM block; calls of this webhook \
         will fail",
    ];
    assert_eq!(warnings_of(Validating, None, webhooks), want);
}

/// A value of a wrong type makes a bad request.
#[test]
fn wrong_types_are_reported_with_their_path() {
    for (webhooks, want) in [
        (json!({}), "cannot unmarshal object into field webhooks of type array"),
        (json!(["x"]), "cannot unmarshal string into field webhooks[0] of type object"),
        (
            json!([{"timeoutSeconds": "1"}]),
            "string into field webhooks[0].timeoutSeconds of type int32",
        ),
        (
            json!([{"timeoutSeconds": 1.5}]),
            "number into field webhooks[0].timeoutSeconds of type int32",
        ),
        (
            json!([{"timeoutSeconds": 99_999_999_999_i64}]),
            "number into field webhooks[0].timeoutSeconds of type int32",
        ),
        (
            json!([{"rules": [{}, {"resources": "pods"}]}]),
            "string into field webhooks[0].rules[1].resources of type array",
        ),
        (
            json!([{"clientConfig": {"caBundle": "%"}}]),
            "string into field webhooks[0].clientConfig.caBundle of type base64 string",
        ),
        (
            json!([{"objectSelector": {"matchLabels": {"a": 1}}}]),
            "number into field webhooks[0].objectSelector.matchLabels.a of type string",
        ),
    ] {
        let mut tree = crate::documents::tree(json!({"webhooks": webhooks}));
        let error = admission::prepare_configuration(Mutating, &mut tree).unwrap_err().to_string();
        assert!(error.starts_with("json: ") && error.ends_with(want), "{error}");
    }
}

#[test]
fn unknown_and_null_members_are_removed() {
    let mut tree = crate::documents::tree(json!({
        "spec": {}, "webhooks": [null, {"name": null, "reinvocationPolicy": "Never", "x": 1}],
    }));
    assert_eq!(
        admission::unknown_configuration_fields(Validating, &tree),
        ["spec", "webhooks[1].reinvocationPolicy", "webhooks[1].x"]
    );
    admission::prepare_configuration(Validating, &mut tree).unwrap();
    let defaults = json!({
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {},
        "objectSelector": {}, "timeoutSeconds": 10,
    });
    assert_eq!(Value::Object(tree), json!({"webhooks": [defaults, defaults]}));
}
