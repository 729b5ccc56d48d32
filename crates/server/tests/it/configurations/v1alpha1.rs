//! The admission configurations of v1alpha1. The order across objects shows in objects that are
//! created.

use admission::ConfigurationKind::{ExternalHook, Initializer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_http::Authority;
use serde_json::{Value, json};

use super::{Row, assert_faults, check, create, object, path_of, replace, warnings, with};
use crate::cluster::Cluster;

const FIRST_IS_IGNORE: &str =
    "Forbidden: must be \"Ignore\" when first registered; update it to \"Fail\" once it is serving";

fn rule(changes: Value) -> Value {
    with(json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}), changes)
}

/// A hook whose certificate is as good as any.
fn hook(authority: &Authority, changes: Value) -> Value {
    let hook = json!({
        "name": "a.b.c",
        "clientConfig": {
            "service": {"namespace": "n", "name": "s"},
            "caBundle": STANDARD.encode(authority.pem()),
        },
        "rules": [with(rule(json!({})), json!({"verbs": ["CREATE"]}))],
    });
    with(hook, changes)
}

fn authority() -> Authority {
    Authority::new("hooks").expect("an authority")
}

/// The validation of initializers.
#[tokio::test(flavor = "multi_thread")]
async fn initializers() {
    let cluster = Cluster::start().await;
    let of_names =
        |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
    let mut rows: Vec<Row> = vec![
        ("valid name", json!([{"name": "a.b.c"}]), vec![]),
        ("no initializers", json!([]), vec![]),
        (
            "invalid names",
            of_names(&["a.b.c", "k8s.io", "", "A.b.c"]),
            vec![
                "initializers[1].name: Invalid value: \"k8s.io\": should be a domain with at least \
                 three segments separated by dots"
                    .to_owned(),
                "initializers[2].name: Required value".to_owned(),
                "initializers[3].name: Invalid value: \"A.b.c\": a lowercase RFC 1123 subdomain …"
                    .to_owned(),
            ],
        ),
        (
            "duplicate name",
            of_names(&["a.b.c", "a.b.c"]),
            vec!["initializers[1].name: Duplicate value: \"a.b.c\"".to_owned()],
        ),
        (
            "unsupported failurePolicy",
            json!([{"name": "a.b.c", "failurePolicy": "other"}]),
            vec![
                "initializers[0].failurePolicy: Unsupported value: \"other\": supported values: \
                 \"Fail\", \"Ignore\""
                    .to_owned(),
            ],
        ),
        (
            "failurePolicy Fail at first",
            json!([{"name": "a.b.c", "failurePolicy": "Ignore"},
                {"name": "b.b.c", "failurePolicy": "Fail"}]),
            vec![format!("initializers[1].failurePolicy: {FIRST_IS_IGNORE}")],
        ),
    ];
    for (row, changes, want) in [
        ("no apiGroups", json!({"apiGroups": []}), "apiGroups: Required value"),
        ("null apiGroups", json!({"apiGroups": null}), "apiGroups: Required value"),
        ("no apiVersions", json!({"apiVersions": []}), "apiVersions: Required value"),
        ("null apiVersions", json!({"apiVersions": null}), "apiVersions: Required value"),
        ("no resources", json!({"resources": []}), "resources: Required value"),
        ("null resources", json!({"resources": null}), "resources: Required value"),
        ("the core group", json!({"apiGroups": ["a", ""]}), ""),
        ("empty apiVersion", json!({"apiVersions": ["v1", ""]}), "apiVersions[1]: Required value"),
        ("empty resource", json!({"resources": ["pods", ""]}), "resources[1]: Required value"),
        (
            "group before *",
            json!({"apiGroups": ["a", "*"]}),
            r#"apiGroups: Invalid value: ["a","*"]: if '*' is present, must not specify other API groups"#,
        ),
        (
            "group after *",
            json!({"apiGroups": ["*", "a"]}),
            r#"apiGroups: Invalid value: ["*","a"]: if '*' is present, must not specify other API groups"#,
        ),
        (
            "version before *",
            json!({"apiVersions": ["v1", "*"]}),
            r#"apiVersions: Invalid value: ["v1","*"]: if '*' is present, must not specify other API versions"#,
        ),
        (
            "resource before *",
            json!({"resources": ["pods", "*"]}),
            r#"resources: Invalid value: ["pods","*"]: if '*' is present, must not specify other resources"#,
        ),
        (
            "subresource",
            json!({"resources": ["pods/log"]}),
            "resources[0]: Invalid value: \"pods/log\": must not specify subresources",
        ),
        ("*/*", json!({"resources": ["*/*"]}), ""),
    ] {
        let want = match want {
            "" => vec![],
            want => vec![format!("initializers[0].rules[0].{want}")],
        };
        rows.push((row, json!([{"name": "a.b.c", "rules": [rule(changes)]}]), want));
    }
    check(&cluster.admin(), Initializer, rows).await;
}

/// The validation of hooks.
#[tokio::test(flavor = "multi_thread")]
async fn hooks() {
    let cluster = Cluster::start().await;
    let authority = authority();
    let mut rows: Vec<Row> = Vec::new();
    let mut of_rule = |row: &'static str, changes: Value, want: &[&str]| {
        let rule = with(rule(json!({"verbs": ["CREATE"]})), changes);
        let want = want.iter().map(|want| format!("externalAdmissionHooks[0].rules[0].{want}"));
        rows.push((row, json!([hook(&authority, json!({"rules": [rule]}))]), want.collect()));
    };
    of_rule(
        "* with a subresource",
        json!({"resources": ["*", "pods/exec"]}),
        &[r#"resources: Invalid value: ["*","pods/exec"]: if '*' is present, must not …"#],
    );
    of_rule(
        "*/* with a resource",
        json!({"resources": ["*/*", "pods"]}),
        &[r#"resources: Invalid value: ["*/*","pods"]: if '*/*' is present, must not …"#],
    );
    for resources in [["pods/*", "pods/log"], ["pods/log", "pods/*"]] {
        let want = "resources[…]: Invalid value: \"pods/log\": if 'pods/*' is present, must not \
                    specify pods/log";
        of_rule("pods/* with pods/log", json!({"resources": resources}), &[want]);
    }
    for resources in [["*/scale", "pods/scale"], ["pods/scale", "*/scale"]] {
        let want = "resources[…]: Invalid value: \"pods/scale\": if '*/scale' is present, must not \
                    specify pods/scale";
        of_rule("*/scale with pods/scale", json!({"resources": resources}), &[want]);
    }
    of_rule("pods with pods/*", json!({"resources": ["pods", "pods/*"]}), &[]);
    of_rule("no verbs", json!({"verbs": []}), &["verbs: Required value"]);
    of_rule(
        "* with another verb",
        json!({"verbs": ["CREATE", "*"]}),
        &[
            r#"verbs: Invalid value: ["CREATE","*"]: if '*' is present, must not specify other operations"#,
        ],
    );
    let supported = r#"supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE""#;
    let (empty, patch) = (
        format!("verbs[1]: Unsupported value: \"\": {supported}"),
        format!("verbs[0]: Unsupported value: \"PATCH\": {supported}"),
    );
    of_rule("empty verb", json!({"verbs": ["CREATE", ""]}), &[&empty]);
    of_rule("unsupported verb", json!({"verbs": ["PATCH"]}), &[&patch]);
    of_rule(
        "verbs differ from operations",
        json!({"verbs": ["CREATE"], "operations": ["CREATE", "UPDATE"]}),
        &[r#"operations: Invalid value: ["CREATE","UPDATE"]: must equal verbs when both are set"#],
    );

    let mut of_hook = |row: &'static str, changes: Value, want: &[&str]| {
        let want = want.iter().map(|want| format!("externalAdmissionHooks[0].{want}"));
        rows.push((row, json!([hook(&authority, changes)]), want.collect()));
    };
    of_hook(
        "unsupported failurePolicy",
        json!({"failurePolicy": "other"}),
        &["failurePolicy: Unsupported value: \"other\": supported values: \"Fail\", \"Ignore\""],
    );
    let refused = format!("failurePolicy: {FIRST_IS_IGNORE}");
    of_hook("failurePolicy Fail at first", json!({"failurePolicy": "Fail"}), &[&refused]);
    let mut of_client = |row: &'static str, changes: Value, want: &[&str]| {
        let client = with(hook(&authority, json!({}))["clientConfig"].clone(), changes);
        of_hook(row, json!({"clientConfig": client}), want);
    };
    of_client("no caBundle", json!({"caBundle": null}), &["clientConfig.caBundle: Required value"]);
    of_client(
        "malformed caBundle",
        json!({"caBundle": STANDARD.encode("no certificate")}),
        &["clientConfig.caBundle: Invalid value: …: unable to parse any certificate"],
    );
    of_client(
        "empty service name",
        json!({"service": {"namespace": "n", "name": ""}}),
        &["clientConfig.service.name: Required value"],
    );
    of_client(
        "no service namespace",
        json!({"service": {"name": "s"}}),
        &["clientConfig.service.namespace: Required value"],
    );
    for (path, want) in [
        ("foo/", "must start with a '/'"),
        ("//", "segment[0] may not be empty"),
        ("/a//b/", "segment[1] may not be empty"),
        ("/a/--x", "segment[1]: a lowercase RFC 1123 subdomain …"),
    ] {
        let want = format!("clientConfig.urlPath: Invalid value: \"{path}\": {want}");
        of_client("malformed urlPath", json!({"urlPath": path}), &[&want]);
    }
    for path in ["/", "/foo", ""] {
        of_client("valid urlPath", json!({"urlPath": path}), &[]);
    }
    check(&cluster.admin(), ExternalHook, rows).await;
}

/// Either name of a field is returned as it was written.
#[tokio::test(flavor = "multi_thread")]
async fn operations_have_two_names() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for (name, members) in [
        ("one", json!({"operations": ["CREATE"]})),
        ("other", json!({"verbs": ["CREATE"]})),
        ("both", json!({"verbs": ["CREATE", "UPDATE"], "operations": ["UPDATE", "CREATE"]})),
    ] {
        let given = rule(members);
        let entries = json!([hook(&authority(), json!({"rules": [given]}))]);
        create(&admin, ExternalHook, name, entries).await.expect(201);
        let stored = admin.get(&format!("{}/{name}", path_of(ExternalHook))).await.expect(200);
        assert_eq!(stored["externalAdmissionHooks"][0]["rules"], json!([given]), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_ignored_unless_somebody_says_otherwise() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for (kind, entry) in
        [(Initializer, json!({"name": "a.b.c"})), (ExternalHook, hook(&authority(), json!({})))]
    {
        let made = create(&admin, kind, "a", json!([entry])).await.expect(201);
        let stored = admin.get(&format!("{}/a", path_of(kind))).await.expect(200);
        assert_eq!(made, stored);
        let want = with(entry, json!({"failurePolicy": "Ignore"}));
        assert_eq!(stored[kind.entries_member_name()], json!([want]));
    }
}

/// A hook that did not exist before cannot have failure policy Fail.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_begin_open() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let authority = authority();
    let named =
        |name: &str, policy: &str| hook(&authority, json!({"name": name, "failurePolicy": policy}));
    let path = format!("{}/h", path_of(ExternalHook));
    create(&admin, ExternalHook, "h", json!([named("a.b.c", "Ignore")])).await.expect(201);
    for (generation, policy) in [(2, "Fail"), (3, "Ignore"), (4, "Fail")] {
        let answer = replace(&admin, ExternalHook, "h", json!([named("a.b.c", policy)])).await;
        assert_eq!(warnings(&answer), Vec::<String>::new());
        assert_eq!(answer.expect(200)["metadata"]["generation"], generation);
    }
    let refused = |idx: usize| {
        vec![format!("externalAdmissionHooks[{idx}].failurePolicy: {FIRST_IS_IGNORE}")]
    };
    let more = |policy| json!([named("a.b.c", "Fail"), named("b.b.c", policy)]);
    let answer = replace(&admin, ExternalHook, "h", more("Fail")).await;
    assert_faults("a second hook with policy Fail", &answer, &refused(1));
    replace(&admin, ExternalHook, "h", more("Ignore")).await.expect(200);
    let renamed = json!([named("c.b.c", "Fail"), named("b.b.c", "Ignore")]);
    let answer = replace(&admin, ExternalHook, "h", renamed).await;
    assert_faults("a new name", &answer, &refused(0));
    let patch = json!({"externalAdmissionHooks": [named("d.b.c", "Fail")]});
    let answer = admin.patch(&path, "strategic-merge-patch", &patch).await;
    assert_faults("a patch", &answer, &refused(0));

    admin.delete(&path).await.expect(200);
    let answer = create(&admin, ExternalHook, "h", json!([named("a.b.c", "Fail")])).await;
    assert_faults("a hook that is created again", &answer, &refused(0));
}

/// The object is accepted with a warning.
#[tokio::test(flavor = "multi_thread")]
async fn raising_a_policy_with_other_changes_is_told() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let authority = authority();
    let entries = |changes: Value| json!([hook(&authority, changes)]);
    create(&admin, ExternalHook, "h", entries(json!({}))).await.expect(201);
    let raised = entries(json!({"failurePolicy": "Fail", "rules": []}));
    let answer = replace(&admin, ExternalHook, "h", raised).await;
    let want = "externalAdmissionHooks[0]: failurePolicy raised to Fail together with clientConfig or \
                rules";
    assert_eq!(warnings(&answer), [want]);
    answer.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_replaces_what_it_has_seen_and_nothing_else() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let path = format!("{}/a", path_of(Initializer));
    let body = object(Initializer, "a", json!([{"name": "a.b.c"}]));
    admin.put(&path, &body).await.expect(404);
    admin.post(&path_of(Initializer), &body).await.expect(201);
    let want = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_faults("no resourceVersion", &admin.put(&path, &body).await, &[want.to_owned()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_change_entries_by_name() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let path = format!("{}/a", path_of(Initializer));
    let entries = json!([
        {"name": "a.b.c", "rules": [rule(json!({}))], "failurePolicy": "Ignore"},
        {"name": "b.b.c", "failurePolicy": "Ignore"},
    ]);
    let made = create(&admin, Initializer, "a", entries.clone()).await.expect(201);
    assert_eq!(made["metadata"]["generation"], 1);
    let patch = json!({"initializers": [{"name": "b.b.c", "failurePolicy": "Fail"}]});
    let patched = admin.patch(&path, "strategic-merge-patch", &patch).await.expect(200);
    let want = json!([entries[0], {"name": "b.b.c", "failurePolicy": "Fail"}]);
    assert_eq!((&patched["initializers"], &patched["metadata"]["generation"]), (&want, &json!(2)));

    let label = json!({"metadata": {"labels": {"x": "y"}}});
    let labelled = admin.patch(&path, "strategic-merge-patch", &label).await.expect(200);
    assert_eq!(labelled["metadata"]["generation"], 2);
    assert_eq!(labelled["initializers"], want);
    assert_ne!(labelled["metadata"]["resourceVersion"], patched["metadata"]["resourceVersion"]);
    let mut replaced = labelled.clone();
    replaced["metadata"]["annotations"] = json!({"n": "1"});
    let replaced = admin.put(&path, &replaced).await.expect(200);
    assert_eq!(replaced["metadata"]["generation"], 2);

    let patch = json!({"initializers": [{"name": "a.b.c", "$patch": "delete"}]});
    let patched = admin.patch(&path, "strategic-merge-patch", &patch).await.expect(200);
    assert_eq!(patched["initializers"], json!([{"name": "b.b.c", "failurePolicy": "Fail"}]));
    assert_eq!(patched["metadata"]["generation"], 3);
    // A client cannot set it.
    let patch = json!({"metadata": {"generation": 7}});
    let patched = admin.patch(&path, "merge-patch", &patch).await.expect(200);
    assert_eq!(patched["metadata"]["generation"], 3);
}
