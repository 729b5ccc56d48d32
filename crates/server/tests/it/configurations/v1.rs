//! The admission configurations of v1.

use admission::ConfigurationKind::{Mutating, Validating};
use admission::MATCH_CONDITIONS_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{
    Row, assert_faults, check, create, object, path_of, plant_object, replace, warnings, with,
};
use crate::cluster::Cluster;

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

/// The defaults of a webhook that has only the required fields.
fn defaults() -> Value {
    json!({
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
        "namespaceSelector": {}, "objectSelector": {},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_said_has_a_default() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let made = create(&admin, Validating, "v", json!([webhook(json!({}))])).await.expect(201);
    let stored = admin.get(&format!("{}/v", path_of(Validating))).await.expect(200);
    assert_eq!(made, stored);
    assert_eq!(stored["webhooks"], json!([webhook(defaults())]));

    let service = json!({"namespace": "n", "name": "s"});
    let given = webhook(json!({
        "clientConfig": {"service": service}, "rules": [rule(json!({}))],
    }));
    let made = create(&admin, Mutating, "m", json!([given])).await.expect(201);
    let more = json!({
        "clientConfig": {"service": with(service, json!({"port": 443}))},
        "rules": [rule(json!({"scope": "*"}))],
        "reinvocationPolicy": "Never",
    });
    assert_eq!(made["webhooks"], json!([with(with(given, defaults()), more)]));

    let fail = json!([webhook(json!({"failurePolicy": "Fail"}))]);
    create(&admin, Validating, "fail", fail).await.expect(201);
}

/// The rows that are about one webhook of a new object.
#[tokio::test(flavor = "multi_thread")]
async fn new_webhooks() {
    let cluster = Cluster::start().await;
    let mut rows: Vec<Row> = Vec::new();
    let mut row = |row: &'static str, changes: Value, want: &[&str]| {
        let want = want.iter().map(|want| format!("webhooks[0].{want}")).collect();
        rows.push((row, json!([webhook(changes)]), want));
    };
    let none = "supported values: \"None\", \"NoneOnDryRun\"";
    row(
        "no sideEffects",
        json!({"sideEffects": null}),
        &["sideEffects: Required value: must specify one of None, NoneOnDryRun"],
    );
    row(
        "unsupported sideEffects",
        json!({"sideEffects": "Some"}),
        &[&format!("sideEffects: Unsupported value: \"Some\": {none}")],
    );
    let versions = |versions: Value| json!({"admissionReviewVersions": versions});
    let some = "admissionReviewVersions: Required value: must specify one of v1, v1beta1";
    row("no review versions", versions(Value::Null), &[some]);
    row("empty review versions", versions(json!([])), &[some]);
    row(
        "malformed review version",
        versions(json!(["0v"])),
        &[
            "admissionReviewVersions[0]: Invalid value: \"0v\": a DNS-1035 label must consist of …",
            "admissionReviewVersions: Invalid value: [\"0v\"]: must include at least one of v1, v1beta1",
        ],
    );
    row(
        "unknown review version",
        versions(json!(["x"])),
        &[
            "admissionReviewVersions: Invalid value: [\"x\"]: must include at least one of v1, v1beta1",
        ],
    );
    row(
        "duplicate review version",
        versions(json!(["v1", "v1"])),
        &["admissionReviewVersions[1]: Invalid value: \"v1\": duplicate version"],
    );
    row("one known review version", versions(json!(["v1beta1", "invalid-version"])), &[]);
    for seconds in [0, -1, 31] {
        let want = format!(
            "timeoutSeconds: Invalid value: {seconds}: the timeout value must be between 1 and 30 \
             seconds"
        );
        row("timeout out of range", json!({"timeoutSeconds": seconds}), &[&want]);
    }
    for seconds in [1, 15, 30] {
        row("timeout in range", json!({"timeoutSeconds": seconds}), &[]);
    }
    let client = |config: Value| json!({"clientConfig": config});
    let service = json!({"namespace": "n", "name": "s"});
    let one = "clientConfig: Required value: exactly one of url or service is required";
    row(
        "url and service",
        client(json!({"url": "https://example.com", "service": service})),
        &[one],
    );
    row("neither url nor service", client(json!({})), &[one]);
    let form = "desired format: https://host[/path]";
    let scheme = |found: &str| {
        format!(
            "clientConfig.url: Invalid value: \"{found}\": 'https' is the only allowed URL scheme; \
             {form}"
        )
    };
    let no_host = format!("clientConfig.url: Invalid value: \"\": host must be specified; {form}");
    for (url, want) in [
        ("http://example.com", vec![scheme("http")]),
        ("", vec![scheme(""), no_host.clone()]),
        ("https:///x", vec![no_host]),
        (
            "https://user@example.com",
            vec![
                "clientConfig.url: Invalid value: \"user\": user information is not permitted in \
                 the URL"
                    .to_owned(),
            ],
        ),
        (
            "https://example.com#f",
            vec![
                "clientConfig.url: Invalid value: \"f\": fragments are not permitted in the URL"
                    .to_owned(),
            ],
        ),
        (
            "https://example.com?q=1",
            vec![
                "clientConfig.url: Invalid value: \"q=1\": query parameters are not permitted in \
                 the URL"
                    .to_owned(),
            ],
        ),
    ] {
        let want: Vec<&str> = want.iter().map(String::as_str).collect();
        row("malformed url", client(json!({"url": url})), &want);
    }
    let of_service = |changes: Value| client(json!({"service": with(service.clone(), changes)}));
    for (path, want) in [
        ("foo/", "must start with a '/'"),
        ("//", "segment[0] may not be empty"),
        ("/foo//bar/", "segment[1] may not be empty"),
        ("/foo/bar//", "segment[2] may not be empty"),
    ] {
        let want = format!("clientConfig.service.path: Invalid value: \"{path}\": {want}");
        row("malformed service path", of_service(json!({"path": path})), &[&want]);
    }
    for path in ["", "/", "/foo"] {
        row("valid service path", of_service(json!({"path": path})), &[]);
    }
    for port in [0, 65536] {
        let want = format!(
            "clientConfig.service.port: Invalid value: {port}: port is not valid: must be between 1 \
             and 65535, inclusive"
        );
        row("service port out of range", of_service(json!({"port": port})), &[&want]);
    }
    let resources = |resources: &[&str]| json!({"rules": [rule(json!({"resources": resources}))]});
    row("valid wildcard resources", resources(&["*", "a/b", "a/*", "*/b"]), &[]);
    row(
        "* with another resource",
        resources(&["*", "a"]),
        &[
            "rules[0].resources: Invalid value: [\"*\",\"a\"]: if '*' is present, must not specify other \
           resources without subresources",
        ],
    );
    row(
        "a/* with a/x",
        resources(&["a/*", "a/x"]),
        &[
            "rules[0].resources[1]: Invalid value: \"a/x\": if 'a/*' is present, must not specify a/x",
        ],
    );
    row(
        "*/a with x/a",
        resources(&["*/a", "x/a"]),
        &[
            "rules[0].resources[1]: Invalid value: \"x/a\": if '*/a' is present, must not specify x/a",
        ],
    );
    row(
        "*/* with another resource",
        resources(&["*/*", "a"]),
        &[
            "rules[0].resources: Invalid value: [\"*/*\",\"a\"]: if '*/*' is present, must not specify \
           other resources",
        ],
    );
    row(
        "unsupported scope",
        json!({"rules": [rule(json!({"scope": "Other"}))]}),
        &["rules[0].scope: Unsupported value: \"Other\": supported values: \"*\", \"Cluster\", \
           \"Namespaced\""],
    );
    row(
        "unsupported matchPolicy",
        json!({"matchPolicy": "Loose"}),
        &["matchPolicy: Unsupported value: \"Loose\": supported values: \"Equivalent\", \"Exact\""],
    );
    row(
        "unsupported reinvocationPolicy",
        json!({"reinvocationPolicy": "Always"}),
        &["reinvocationPolicy: Unsupported value: \"Always\": supported values: \"IfNeeded\", \
           \"Never\""],
    );
    let selector =
        |expression: Value| json!({"objectSelector": {"matchExpressions": [expression]}});
    row(
        "unknown selector operator",
        selector(json!({"key": "k", "operator": "Foo"})),
        &[
            "objectSelector.matchExpressions[0].operator: Invalid value: \"Foo\": not a valid selector \
           operator",
        ],
    );
    row(
        "selector without values",
        selector(json!({"key": "k", "operator": "In"})),
        &["objectSelector.matchExpressions[0].values: Required value: must be specified when \
           `operator` is 'In' or 'NotIn'"],
    );
    let conditions = |conditions: Value| json!({"matchConditions": conditions});
    row(
        "condition without a name",
        conditions(json!([{"expression": "true"}])),
        &["matchConditions[0].name: Required value"],
    );
    row(
        "malformed condition name",
        conditions(json!([{"name": "-hello", "expression": "true"}])),
        &["matchConditions[0].name: Invalid value: \"-hello\": name part must consist of …"],
    );
    let named = |name: &str| json!({"name": name, "expression": "true"});
    row(
        "duplicate condition name",
        conditions(json!([named("x"), named("x")])),
        &["matchConditions[1].name: Duplicate value: \"x\""],
    );
    for (expression, want) in [
        (" ", "Required value"),
        ("object.x in [1, 2, ", "Invalid value: \"object.x in [1, 2,\": compilation failed: …"),
        ("6", "Invalid value: \"6\": must evaluate to bool but got int"),
        (
            "params.x == 'y'",
            "Invalid value: \"params.x == 'y'\": compilation failed: …undeclared reference to 'params'…",
        ),
    ] {
        let want = format!("matchConditions[0].expression: {want}");
        row(
            "invalid expression",
            conditions(json!([{"name": "x", "expression": expression}])),
            &[&want],
        );
    }
    let many = |n: usize| conditions((0..n).map(|idx| named(&format!("c{idx}"))).collect());
    row("the most conditions", many(MATCH_CONDITIONS_MAX), &[]);
    row(
        "too many conditions",
        many(MATCH_CONDITIONS_MAX + 1),
        &["matchConditions: Too many: 65: must have at most 64 items"],
    );
    check(&cluster.admin(), Mutating, rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_unique_where_they_must_be() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let twice = json!([webhook(json!({})), webhook(json!({}))]);
    let answer = create(&admin, Validating, "twice", twice).await;
    let want = "webhooks[1].name: Duplicate value: \"a.example.com\"";
    assert_faults("duplicate webhook name", &answer, &[want.to_owned()]);

    let condition = json!([{"name": "x", "expression": "true"}]);
    let two = json!([
        webhook(json!({"matchConditions": condition})),
        webhook(json!({"name": "b.example.com", "matchConditions": condition})),
    ]);
    create(&admin, Validating, "same-conditions", two).await.expect(201);

    let answer = create(&admin, Validating, "x.static.k8s.io", json!([])).await;
    let want = "metadata.name: Invalid value: \"x.static.k8s.io\": names ending with \
                \".static.k8s.io\" are reserved …";
    assert_faults("reserved name", &answer, &[want.to_owned()]);
}

/// An update may keep faults that the stored object has.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_stored_before_a_rule_can_still_change() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let stored = |changes: Value| with(webhook(defaults()), changes);
    let versions = |versions: Value| json!({"admissionReviewVersions": versions});
    let duplicate = [webhook(defaults()), webhook(defaults())];
    for (row, before, after) in [
        (
            "t-035",
            json!([stored(json!({"sideEffects": "Unknown"}))]),
            json!([stored(json!({"sideEffects": "Unknown", "timeoutSeconds": 5}))]),
        ),
        (
            "t-038",
            json!([stored(versions(json!(["old-v0"])))]),
            json!([stored(versions(json!(["old-v1"])))]),
        ),
        (
            "t-040",
            json!(duplicate),
            json!([duplicate[0], with(duplicate[1].clone(), json!({"timeoutSeconds": 5}))]),
        ),
    ] {
        // A fault that a stored object may keep is refused in a new one.
        assert_eq!(create(&admin, Validating, "new", after.clone()).await.code, 422, "{row}");
        plant_object(&cluster, Validating, row, before).await;
        let answer = replace(&admin, Validating, row, after.clone()).await.expect(200);
        assert_eq!(answer["webhooks"], after, "{row}");
        assert_eq!(answer["metadata"]["generation"], 2, "{row}");
    }
    create(&admin, Validating, "strict", json!([webhook(json!({}))])).await.expect(201);
    let worse = json!([webhook(json!({"sideEffects": "Some"}))]);
    let answer = replace(&admin, Validating, "strict", worse).await;
    let want = "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \
                \"NoneOnDryRun\"";
    assert_faults("an update that adds a fault", &answer, &[want.to_owned()]);
    let known = json!([webhook(versions(json!(["v1beta1", "x"])))]);
    create(&admin, Validating, "known", known).await.expect(201);
    let unknown = json!([webhook(versions(json!(["x"])))]);
    let answer = replace(&admin, Validating, "known", unknown).await;
    let want = "webhooks[0].admissionReviewVersions: Invalid value: [\"x\"]: must include at least one \
                of v1, v1beta1";
    assert_faults("an update that removes the known version", &answer, &[want.to_owned()]);
}

/// The object is accepted with a warning.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_effect_is_told() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let rules = |changes: Value| json!({"rules": [rule(changes)]});
    let reviews = |groups: &str| json!({"apiGroups": [groups], "resources": ["tokenreviews"]});
    let bundle =
        |text: &str| json!({"clientConfig": {"url": "https://example.com", "caBundle": text}});
    let unusable = "webhooks[0].clientConfig.caBundle: …; calls of this webhook will fail";
    for (row, changes, want) in [
        (
            "t-046",
            rules(json!({"resources": ["a", "*"]})),
            Some("webhooks[0].rules[0].resources[0]: 'a' has no effect beside '*'"),
        ),
        (
            "t-055",
            rules(reviews("authentication.k8s.io")),
            Some(
                "webhooks[0].rules[0]: tokenreviews.authentication.k8s.io is excluded from admission \
                 webhooks; this rule will have no effect",
            ),
        ),
        ("t-055-star", rules(reviews("*")), None),
        ("t-057", bundle(&STANDARD.encode("no certificate")), Some(unusable)),
        // Go does not mind bits that the padding cuts off.
        ("t-057-bits", bundle("YR=="), Some(unusable)),
    ] {
        let answer = create(&admin, Mutating, row, json!([webhook(changes)])).await;
        let mut differences = Vec::new();
        let found = Value::from(warnings(&answer));
        let want: Value = want.into_iter().collect();
        crate::pattern::check(&want, Some(&found), row, &mut differences);
        assert!(differences.is_empty(), "{differences:?}");
        answer.expect(201);
    }
}

/// A body of the greatest size gets an answer of a reasonable size, however much there is to tell.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_warnings_are_cut() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let resources: Vec<String> =
        (0..50_000).map(|idx| format!("r{idx}/x")).chain(["*/x".to_owned()]).collect();
    let entries = json!([webhook(json!({"rules": [rule(json!({"resources": resources}))]}))]);
    let answer = create(&admin, Mutating, "many", entries).await;
    let n_chars: usize = warnings(&answer).iter().map(String::len).sum();
    assert_eq!(answer.code, 201);
    assert!((3_000..5_000).contains(&n_chars), "{n_chars}");
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_change_conditions_by_name() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let condition = |name: &str, expression: &str| json!({"name": name, "expression": expression});
    let conditions = json!([condition("p", "true"), condition("q", "true")]);
    let entries = json!([
        webhook(json!({"matchConditions": conditions})),
        webhook(json!({"name": "b.example.com"})),
    ]);
    let made = create(&admin, Mutating, "m", entries).await.expect(201);
    let path = format!("{}/m", path_of(Mutating));
    let patch = json!({"webhooks": [
        {"name": "a.example.com", "matchConditions": [condition("q", "false")]},
    ]});
    let patched = admin.patch(&path, "strategic-merge-patch", &patch).await.expect(200);
    let want = json!([condition("p", "true"), condition("q", "false")]);
    assert_eq!(patched["webhooks"][0]["matchConditions"], want);
    assert_eq!(patched["webhooks"][1], made["webhooks"][1]);
    assert_eq!(patched["metadata"]["generation"], 2);
    let patch = json!({"webhooks": [
        {"name": "a.example.com", "matchConditions": [condition("q", "6")]},
    ]});
    let answer = admin.patch(&path, "strategic-merge-patch", &patch).await;
    let want = "webhooks[0].matchConditions[1].expression: Invalid value: \"6\": must evaluate to bool but got int";
    assert_faults("a patch", &answer, &[want.to_owned()]);
}

/// An object without webhooks is one whose list is empty.
#[tokio::test(flavor = "multi_thread")]
async fn no_webhooks_are_no_change() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let path = format!("{}/none", path_of(Validating));
    let body = json!({"metadata": {"name": "none"}});
    let made = admin.post(&path_of(Validating), &body).await.expect(201);
    let mut empty = object(Validating, "none", json!([]));
    empty["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    let put = admin.put(&path, &empty).await.expect(200);
    assert_eq!(put["metadata"]["generation"], 1);
}
