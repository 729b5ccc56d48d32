//! The requests that the rules of a hook match.

use serde_json::{Value, json};

use super::{DEPLOYMENTS, MAPS, NAMESPACES, PODS, Scene, map, pod, told};
use crate::admission_hooks::{VALIDATING, allow};
use crate::client::Answer;

/// Requests that change nothing, so that each can be made as often as there are rows.
const REQUESTS: [&str; 9] = [
    "create map",
    "update map",
    "delete map",
    "create pod",
    "update pod status",
    "create namespace",
    "finalize namespace",
    "create node",
    "create deployment",
];

async fn send(scene: &Scene, request: &str) -> Answer {
    let admin = &scene.admin;
    let dry = |path: &str| format!("{path}?dryRun=All");
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    match request {
        "create map" => admin.post(&dry(MAPS), &map("n")).await,
        "update map" => admin.patch(&dry(&format!("{MAPS}/m")), "merge-patch", &label).await,
        "delete map" => admin.delete(&dry(&format!("{MAPS}/m"))).await,
        "create pod" => admin.post(&dry(PODS), &pod("n")).await,
        "update pod status" => {
            admin.patch(&dry(&format!("{PODS}/p/status")), "merge-patch", &label).await
        }
        "create namespace" => {
            admin.post(&dry(NAMESPACES), &json!({"metadata": {"name": "n"}})).await
        }
        "finalize namespace" => {
            let path = format!("{NAMESPACES}/default");
            let own = admin.get(&path).await.expect(200);
            admin.put(&dry(&format!("{path}/finalize")), &own).await
        }
        "create node" => {
            admin.post(&dry("/api/v1/nodes"), &json!({"metadata": {"name": "n"}})).await
        }
        "create deployment" => {
            admin.post(&dry(DEPLOYMENTS), &json!({"metadata": {"name": "n"}})).await
        }
        other => panic!("no request {other}"),
    }
}

fn rule(changes: Value) -> Value {
    let mut rule = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["*/*"]});
    rule.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    rule
}

#[tokio::test(flavor = "multi_thread")]
async fn rules() {
    let scene = Scene::start().await;
    scene.admin.post(MAPS, &map("m")).await.expect(201);
    scene.admin.post(PODS, &pod("p")).await.expect(201);
    let all = REQUESTS.as_slice();
    let rows: [(&str, Vec<Value>, &[&str]); 16] = [
        ("no rules", vec![], &[]),
        ("all operations", vec![rule(json!({}))], all),
        (
            "some operations",
            vec![rule(json!({"operations": ["UPDATE", "DELETE"]}))],
            &["update map", "delete map", "update pod status", "finalize namespace"],
        ),
        ("only CONNECT", vec![rule(json!({"operations": ["CONNECT"]}))], &[]),
        (
            "all resources without subresources",
            vec![rule(json!({"resources": ["*"]}))],
            &[
                "create map",
                "update map",
                "delete map",
                "create pod",
                "create namespace",
                "create node",
                "create deployment",
            ],
        ),
        (
            "a resource with its subresources",
            vec![rule(json!({"resources": ["pods/*"]}))],
            &["create pod", "update pod status"],
        ),
        (
            "subresources of all resources",
            vec![rule(json!({"resources": ["*/finalize", "*/status"]}))],
            &["finalize namespace", "update pod status"],
        ),
        (
            "several resources",
            vec![rule(json!({"resources": ["nodes/*", "pods"]}))],
            &["create node", "create pod"],
        ),
        (
            "resources in one group",
            vec![rule(json!({"apiGroups": [""], "resources": ["deployments", "configmaps"]}))],
            &["create map", "update map", "delete map"],
        ),
        ("one group", vec![rule(json!({"apiGroups": ["apps"]}))], &["create deployment"]),
        ("version", vec![rule(json!({"apiVersions": ["v1beta1"]}))], &[]),
        (
            "version",
            vec![rule(json!({"apiVersions": ["v1"], "resources": ["pods"]}))],
            &["create pod"],
        ),
        (
            "cluster scope",
            vec![rule(json!({"scope": "Cluster"}))],
            &["create namespace", "finalize namespace", "create node"],
        ),
        (
            "namespaced scope",
            vec![rule(json!({"scope": "Namespaced"}))],
            &[
                "create map",
                "update map",
                "delete map",
                "create pod",
                "update pod status",
                "create deployment",
            ],
        ),
        ("any scope", vec![rule(json!({"scope": "*"}))], all),
        (
            "any rule",
            vec![rule(json!({"resources": ["nodes"]})), rule(json!({"resources": ["pods"]}))],
            &["create node", "create pod"],
        ),
    ];
    for (row, rules, want) in rows {
        let hook = scene.hook(allow());
        scene.ask(VALIDATING, &hook, json!({"rules": rules})).await;
        for request in REQUESTS {
            let answer = send(&scene, request).await;
            assert!(matches!(answer.code, 200 | 201), "{row} {request}: {}", answer.text());
            let is_asked = !told(&hook).is_empty();
            assert_eq!(is_asked, want.contains(&request), "{row} {rules:?}: {request}");
        }
    }
}
