//! Label selectors that decide whether a hook is called.

use serde_json::{Value, json};

use super::{MAPS, NAMESPACES, Scene, everything, map, told};
use crate::admission_hooks::{MUTATING, VALIDATING, allow, plant, rule};

fn selecting(label: &str, value: &str) -> Value {
    json!({"matchLabels": {label: value}})
}

fn namespace(name: &str, labels: Value) -> Value {
    json!({"metadata": {"name": name, "labels": labels}})
}

/// Each selector in both phases.
#[tokio::test(flavor = "multi_thread")]
async fn labels_of_namespaces() {
    for path in [MUTATING, VALIDATING] {
        let scene = Scene::start().await;
        let admin = &scene.admin;
        admin.post(NAMESPACES, &namespace("on", json!({"hooks": "on"}))).await.expect(201);
        admin.post(NAMESPACES, &namespace("off", json!({"hooks": "off"}))).await.expect(201);
        let hook = scene.hook(allow());
        let changes = json!({"rules": everything(), "namespaceSelector": selecting("hooks", "on")});
        scene.ask(path, &hook, changes).await;

        admin.post(&format!("{NAMESPACES}/off/configmaps"), &map("m")).await.expect(201);
        assert_eq!(told(&hook).len(), 0);
        admin.post(&format!("{NAMESPACES}/on/configmaps"), &map("m")).await.expect(201);
        assert_eq!(told(&hook).len(), 1);
        // The labels that count are those that the namespace has now.
        let relabel = |value: &str| json!({"metadata": {"labels": {"hooks": value}}});
        admin.patch(&format!("{NAMESPACES}/off"), "merge-patch", &relabel("on")).await.expect(200);
        assert_eq!(told(&hook).len(), 1, "labels of the new object");
        admin.delete(&format!("{NAMESPACES}/off/configmaps/m")).await.expect(200);
        assert_eq!(told(&hook).len(), 1);
        admin.patch(&format!("{NAMESPACES}/off"), "merge-patch", &relabel("off")).await.expect(200);
        assert_eq!(told(&hook).len(), 0, "labels of the new object");

        admin.post("/api/v1/nodes", &json!({"metadata": {"name": "n"}})).await.expect(201);
        assert_eq!(told(&hook).len(), 1);

        let dry = format!("{NAMESPACES}?dryRun=All");
        admin.post(&dry, &namespace("new", json!({"hooks": "on"}))).await.expect(201);
        assert_eq!(told(&hook).len(), 1);
        admin.post(&dry, &namespace("new", json!({}))).await.expect(201);
        assert_eq!(told(&hook).len(), 0);
        admin.delete(&format!("{NAMESPACES}/on?dryRun=All")).await.expect(200);
        assert_eq!(told(&hook).len(), 1, "labels of the stored object");
        admin.delete(&format!("{NAMESPACES}/off?dryRun=All")).await.expect(200);
        assert_eq!(told(&hook).len(), 0, "labels of the stored object");
        // Every namespace has its name as a label.
        let name = selecting("kubernetes.io/metadata.name", "default");
        scene.ask(path, &hook, json!({"namespaceSelector": name})).await;
        scene.create("dryRun=All").await.expect(201);
        assert_eq!(told(&hook).len(), 1);
    }
}

/// Objects whose namespace is gone can still be written and deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_does_not_exist() {
    let stray = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m",
        "namespace": "gone", "uid": "u", "creationTimestamp": "2026-11-15T18:02:38Z"}});
    let path = format!("{NAMESPACES}/gone/configmaps/m");
    for kind in [MUTATING, VALIDATING] {
        let scene = Scene::start().await;
        plant(&scene.cluster, "configmaps/gone/m", stray.to_string()).await;
        let hook = scene.hook(allow());
        let selector = selecting("hooks", "on");
        scene.ask(kind, &hook, json!({"namespaceSelector": selector})).await;
        let patch = json!({"data": {"x": "y"}});
        let refused = scene.admin.patch(&path, "merge-patch", &patch).await.expect(404);
        assert_eq!(refused["message"], "namespaces \"gone\" not found");
        assert_eq!(refused["reason"], "NotFound");
        scene.admin.delete(&path).await.expect(404);
        let others = json!([rule(&["*"], "", "secrets")]);
        scene.ask(kind, &hook, json!({"namespaceSelector": selector, "rules": others})).await;
        scene.admin.patch(&path, "merge-patch", &patch).await.expect(200);
        scene.admin.delete(&path).await.expect(200);
        assert_eq!(hook.n_requests(), 0);
    }
}

/// Object selectors, also of objects without labels.
#[tokio::test(flavor = "multi_thread")]
async fn labels_of_objects() {
    for kind in [MUTATING, VALIDATING] {
        let scene = Scene::start().await;
        let admin = &scene.admin;
        let mut labelled = map("m");
        labelled["metadata"]["labels"] = json!({"hooks": "on"});
        let hook = scene.hook(allow());
        scene.ask(kind, &hook, json!({"objectSelector": selecting("hooks", "on")})).await;
        let path = format!("{MAPS}/m");

        admin.post(MAPS, &map("other")).await.expect(201);
        assert_eq!(told(&hook).len(), 0);
        admin.post(MAPS, &labelled).await.expect(201);
        assert_eq!(told(&hook).len(), 1);
        let relabel = |value: Value| json!({"metadata": {"labels": {"hooks": value}}});
        let remove = relabel(Value::Null);
        admin.patch(&format!("{path}?dryRun=All"), "merge-patch", &remove).await.expect(200);
        assert_eq!(told(&hook).len(), 1, "only the old object has the label");
        admin.delete(&format!("{path}?dryRun=All")).await.expect(200);
        assert_eq!(told(&hook).len(), 1, "a deletion has an old object only");
        admin.delete(&format!("{MAPS}/other")).await.expect(200);
        assert_eq!(told(&hook).len(), 0);
        let add = relabel(json!("on"));
        admin.patch(&path, "merge-patch", &remove).await.expect(200);
        assert_eq!(told(&hook).len(), 1);
        admin.patch(&path, "merge-patch", &add).await.expect(200);
        assert_eq!(told(&hook).len(), 1, "only the new object has the label");

        let accounts = format!("{NAMESPACES}/default/serviceaccounts");
        admin.post(&accounts, &json!({"metadata": {"name": "robot"}})).await.expect(201);
        let token = json!({"spec": {"audiences": []}});
        for (selector, n_calls) in [(json!({}), 1), (selecting("hooks", "on"), 0)] {
            let rules = json!([rule(&["*"], "", "serviceaccounts/token")]);
            scene.ask(kind, &hook, json!({"rules": rules, "objectSelector": selector})).await;
            admin.post(&format!("{accounts}/robot/token"), &token).await.expect(201);
            assert_eq!(told(&hook).len(), n_calls);
        }
    }
}
