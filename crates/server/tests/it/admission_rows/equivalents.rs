//! Rules that name another version of the requested resource.

use serde_json::{Value, json};

use super::{Scene, message, told_once};
use crate::admission_hooks::{MUTATING, VALIDATING, allow, patching};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// Widgets in three versions. The last has no status.
async fn define(scene: &Scene) {
    let schema = json!({"openAPIV3Schema": {"type": "object",
        "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str, is_stored: bool, parts: Value| {
        json!({"name": name, "served": true, "storage": is_stored, "schema": schema,
            "subresources": parts})
    };
    let body = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
    "group": "example.com", "scope": "Namespaced",
    "names": {"plural": "widgets", "kind": "Widget"},
    "versions": [
        version("v1", true, json!({"status": {}})),
        version("v1beta1", false, json!({"status": {}})),
        version("v1alpha1", false, json!({})),
    ]}});
    scene.admin.post(DEFINITIONS, &body).await.expect(201);
    while scene.admin.get(WIDGETS).await.code != 200 {
        crate::polling::pause().await;
    }
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name},
        "spec": {"size": 1}})
}

fn rules(versions: &[&str], resource: &str) -> Value {
    let rule = |version: &&str| {
        json!({"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": [version],
            "resources": [resource]})
    };
    versions.iter().map(rule).collect()
}

fn kind(version: &str) -> Value {
    json!({"group": "example.com", "version": version, "kind": "Widget"})
}

fn resource(version: &str) -> Value {
    json!({"group": "example.com", "version": version, "resource": "widgets"})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_object_is_shown_in_the_version_that_a_rule_names() {
    let scene = Scene::start().await;
    define(&scene).await;
    let path = format!("{WIDGETS}?dryRun=All");
    for phase in [MUTATING, VALIDATING] {
        let rows: [(&str, &str, &[&str], Option<&str>); 6] = [
            ("Exact, another version", "Exact", &["v1beta1"], None),
            ("Exact, the same version", "Exact", &["v1"], Some("v1")),
            (
                "Equivalent, the first rule wins",
                "Equivalent",
                &["v1alpha1", "v1beta1"],
                Some("v1alpha1"),
            ),
            (
                "Equivalent, the first rule wins",
                "Equivalent",
                &["v1beta1", "v1alpha1"],
                Some("v1beta1"),
            ),
            (
                "Equivalent, the version of the request wins",
                "Equivalent",
                &["v1beta1", "v1"],
                Some("v1"),
            ),
            ("no such version", "Equivalent", &["v9"], None),
        ];
        for (row, policy, versions, want) in rows {
            let hook = scene.hook(allow());
            let changes = json!({"matchPolicy": policy, "rules": rules(versions, "widgets")});
            scene.ask(phase, &hook, changes).await;
            scene.admin.post(&path, &widget("w")).await.expect(201);
            let Some(version) = want else {
                assert_eq!(hook.n_requests(), 0, "{row}");
                continue;
            };
            let told = told_once(&hook);
            assert_eq!(
                (&told["kind"], &told["resource"]),
                (&kind(version), &resource(version)),
                "{row}"
            );
            assert_eq!(told["object"]["apiVersion"], format!("example.com/{version}"), "{row}");
            assert_eq!(told["object"]["spec"], json!({"size": 1}), "{row}");
            assert_eq!(told["requestKind"], kind("v1"), "{row}");
            assert_eq!(told["requestResource"], resource("v1"), "{row}");
        }
        scene.admin.delete(&format!("{phase}/c")).await.expect(200);
    }
}

/// A patch applies to the version that the hook receives; the version that is stored is the one that
/// was requested.
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_comes_back_in_the_version_of_the_request() {
    let scene = Scene::start().await;
    define(&scene).await;
    let patch = json!([
        {"op": "test", "path": "/apiVersion", "value": "example.com/v1beta1"},
        {"op": "replace", "path": "/spec/size", "value": 2},
    ]);
    let hook = scene.hook(patching(&patch));
    let changes = json!({"rules": rules(&["v1beta1"], "widgets")});
    scene.ask(MUTATING, &hook, changes).await;
    let made = scene.admin.post(WIDGETS, &widget("w")).await.expect(201);
    assert_eq!((&made["apiVersion"], &made["spec"]["size"]), (&json!("example.com/v1"), &json!(2)));
    // Both objects of an update, and that of a deletion, are shown in that version.
    let hook = scene.hook(allow());
    let changes = json!({"rules": rules(&["v1beta1"], "widgets")});
    scene.ask(MUTATING, &hook, changes.clone()).await;
    let path = format!("{WIDGETS}/w");
    scene.admin.patch(&path, "merge-patch", &json!({"spec": {"size": 3}})).await.expect(200);
    let told = told_once(&hook);
    for member in ["object", "oldObject"] {
        assert_eq!(told[member]["apiVersion"], "example.com/v1beta1", "{member}");
    }
    scene.admin.delete(&path).await.expect(200);
    assert_eq!(told_once(&hook)["oldObject"]["apiVersion"], "example.com/v1beta1");
}

#[tokio::test(flavor = "multi_thread")]
async fn subresources_of_other_versions() {
    let scene = Scene::start().await;
    define(&scene).await;
    scene.admin.post(WIDGETS, &widget("w")).await.expect(201);
    let path = format!("{WIDGETS}/w/status");
    let patch = json!({"status": {"ready": true}});
    for phase in [MUTATING, VALIDATING] {
        let hook = scene.hook(allow());
        scene.ask(phase, &hook, json!({"rules": rules(&["v1beta1"], "widgets/status")})).await;
        scene.admin.patch(&path, "merge-patch", &patch).await.expect(200);
        let told = told_once(&hook);
        assert_eq!(
            (&told["kind"], &told["subResource"]),
            (&kind("v1beta1"), &json!("status")),
            "a subresource in an equivalent version"
        );
        assert_eq!(told["requestSubResource"], "status");
        assert_eq!(told["requestKind"], kind("v1"));

        scene.ask(phase, &hook, json!({"rules": rules(&["v1alpha1"], "widgets/status")})).await;
        let answer = scene.admin.patch(&path, "merge-patch", &patch).await;
        assert_eq!(answer.json()["reason"], "InternalError");
        let text = message(answer, 500);
        assert!(text.starts_with("Internal error occurred: unable to convert to "), "{text}");
        assert!(text.ends_with(": unknown kind"), "{text}");
        assert_eq!(hook.take_requests().len(), 0);
        scene.admin.delete(&format!("{phase}/c")).await.expect(200);
    }
}
