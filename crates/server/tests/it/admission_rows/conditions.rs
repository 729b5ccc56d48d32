//! Match conditions that decide whether a hook is called.

use serde_json::{Value, json};

use super::{MAPS, NAMESPACES, Scene, map, message, told};
use crate::admission_hooks::{MUTATING, VALIDATING, allow};

fn conditions(expressions: &[&str]) -> Value {
    let entry = |(idx, own): (usize, &&str)| json!({"name": format!("c{idx}"), "expression": own});
    expressions.iter().enumerate().map(entry).collect()
}

/// An expression that fails when it is evaluated.
const ERROR: &str = "object.data.missing == 'x'";

#[tokio::test(flavor = "multi_thread")]
async fn truth_falsehood_and_errors() {
    let scene = Scene::start().await;
    let rows: [(&str, &[&str], &str, u16, usize); 9] = [
        ("no conditions", &[], "Fail", 201, 1),
        ("all are true", &["true", "true"], "Fail", 201, 1),
        ("a false one after an error", &[ERROR, "true", "false"], "Fail", 201, 0),
        ("a false one before an error", &["false", ERROR], "Fail", 201, 0),
        ("an error with policy Fail", &["true", ERROR], "Fail", 403, 0),
        ("an error with policy Ignore", &["true", ERROR], "Ignore", 201, 0),
        ("no old object on create", &["oldObject == null"], "Fail", 201, 1),
        (
            "variables",
            &["request.operation == 'CREATE' && request.userInfo.username == 'admin'"],
            "Fail",
            201,
            1,
        ),
        ("variables", &["request.dryRun && namespaceObject == null"], "Fail", 201, 1),
    ];
    for kind in [MUTATING, VALIDATING] {
        for (row, expressions, policy, code, n_calls) in rows {
            let hook = scene.hook(allow());
            let list = conditions(expressions);
            scene.ask(kind, &hook, json!({"matchConditions": list, "failurePolicy": policy})).await;
            let answer = scene.create("dryRun=All").await;
            assert_eq!(answer.code, code, "{row} {expressions:?}: {}", answer.text());
            assert_eq!(hook.n_requests(), n_calls, "{row} {expressions:?}");
            if code == 403 {
                let status = answer.json();
                let text = status["message"].as_str().unwrap();
                assert!(text.starts_with("configmaps \"m\" is forbidden: "), "{text}");
                assert_eq!(status["reason"], "Forbidden");
            }
        }
        scene.admin.delete(&format!("{kind}/c")).await.expect(200);
    }
    // The message names no object if the object has no name yet.
    let hook = scene.hook(allow());
    scene.ask(MUTATING, &hook, json!({"matchConditions": conditions(&[ERROR])})).await;
    let body = json!({"metadata": {"generateName": "g-"}, "data": {}});
    let text = message(scene.admin.post(MAPS, &body).await, 403);
    assert!(text.starts_with("configmaps is forbidden: "), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_on_objects() {
    let scene = Scene::start().await;
    let hook = scene.hook(allow());
    let list = conditions(&["object.metadata.namespace != 'kube-system'"]);
    scene.ask(VALIDATING, &hook, json!({"matchConditions": list})).await;
    for (namespace, n_calls) in [("kube-system", 0), ("default", 1)] {
        let maps = format!("{NAMESPACES}/{namespace}/configmaps");
        scene.admin.post(&maps, &map("m")).await.expect(201);
        assert_eq!(told(&hook).len(), n_calls, "condition on the namespace, {namespace}");
    }
    scene.admin.delete(&format!("{VALIDATING}/c")).await.expect(200);
    let path = format!("{MAPS}/m");
    for kind in [MUTATING, VALIDATING] {
        let hook = scene.hook(allow());
        let list = conditions(&["oldObject == null"]);
        scene.ask(kind, &hook, json!({"matchConditions": list})).await;
        let patch = json!({"data": {"x": "y"}});
        scene.admin.patch(&path, "merge-patch", &patch).await.expect(200);
        assert_eq!(told(&hook).len(), 0);
        let list = conditions(&["object == null && oldObject.data.x == 'y'"]);
        scene.ask(kind, &hook, json!({"matchConditions": list})).await;
        scene.admin.delete(&format!("{path}?dryRun=All")).await.expect(200);
        assert_eq!(told(&hook).len(), 1, "a deletion has an old object only");
        scene.admin.delete(&format!("{kind}/c")).await.expect(200);
    }
}

/// A match condition exempts users that may bypass the hook.
/// L27: a condition asks about the user of the request; it has no rights of its own.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_ask_the_authorizers() {
    let scene = Scene::start().await;
    let alice = scene.grant_alice(&["create"], "", &["configmaps"]).await;
    let hook = scene.hook(allow());
    for kind in [MUTATING, VALIDATING] {
        for expression in [
            "!authorizer.group('admissionregistration.k8s.io')\
             .resource('validatingwebhookconfigurations').name('c').check('breakglass').allowed()",
            "!authorizer.requestResource.check('breakglass').allowed()",
        ] {
            let list = conditions(&[expression]);
            scene.ask(kind, &hook, json!({"matchConditions": list})).await;
            scene.create("dryRun=All").await.expect(201);
            assert_eq!(told(&hook).len(), 0, "{expression}");
            alice.post(&format!("{MAPS}?dryRun=All"), &map("m")).await.expect(201);
            assert_eq!(told(&hook).len(), 1, "{expression}");
        }
        scene.admin.delete(&format!("{kind}/c")).await.expect(200);
    }
}
