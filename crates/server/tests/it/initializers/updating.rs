//! Changes of objects that are not initialized.

use serde_json::json;

use super::scene::{MAPS, Scene, entry, map, map_with, pending};
use crate::initializers::scene::{INITIALIZERS, configuration};

#[tokio::test(flavor = "multi_thread")]
async fn changes_need_permission_until_the_object_is_initialized() {
    let scene = Scene::start().await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let alice = scene.grant_alice(&[]).await;
    let path = format!("{MAPS}/m");
    scene.admin.post(&format!("{MAPS}?includeUninitialized=1"), &map("m")).await.expect(202);
    let same = map_with("m", json!({"pending": [{"name": "a.x.y"}]}));
    let refused = alice.put(&path, &same).await.expect(403);
    let message = refused["message"].as_str().unwrap();
    let want = "configmaps \"m\" is forbidden: update to uninitialized resource denied: ";
    assert!(message.starts_with(want), "{message}");
    let patch = json!({"data": {"c": "d"}});
    alice.patch(&path, "merge-patch", &patch).await.expect(403);
    let kept = scene.admin.put(&path, &same).await.expect(200);
    assert_eq!(pending(&kept), Some(vec!["a.x.y"]));
    let more = map_with("m", json!({"pending": [{"name": "a.x.y"}, {"name": "b.x.y"}]}));
    let extended = scene.admin.put(&path, &more).await.expect(200);
    assert_eq!(pending(&extended), Some(vec!["a.x.y", "b.x.y"]));
    let bad = map_with("m", json!({"pending": [{"name": "Test"}]}));
    scene.admin.put(&path, &bad).await.expect(422);
    assert_eq!(pending(&scene.act("m", "b.x.y").await), Some(vec!["a.x.y"]));
    assert_eq!(pending(&scene.act("m", "a.x.y").await), None);

    let want = "metadata.initializers: Invalid value: null: field is immutable once initialization \
                has completed";
    for client in [&scene.admin, &alice] {
        let refused = client.put(&path, &same).await.expect(422);
        assert!(refused["message"].as_str().unwrap().ends_with(want), "{refused}");
        let empty = map_with("m", json!({"pending": []}));
        assert_eq!(pending(&client.put(&path, &empty).await.expect(200)), None);
    }
    scene.admin.post(&format!("{MAPS}?includeUninitialized=1"), &map("n")).await.expect(202);
    let empty = map_with("n", json!({}));
    let done = scene.admin.put(&format!("{MAPS}/n"), &empty).await.expect(200);
    assert_eq!(pending(&done), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_can_be_written_by_whoever_may() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let scene = Scene::start().await;
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]);
    let pods = configuration("p", json!([entry("a.x.y", json!({"rules": rules}))]));
    scene.admin.post(INITIALIZERS, &pods).await.expect(201);
    let alice = scene.grant_alice(&[]).await;
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    scene.admin.post(&format!("{PODS}?includeUninitialized=1"), &pod).await.expect(202);
    let path = format!("{PODS}/p");
    let patch = json!({"metadata": {"initializers": null}, "status": {"phase": "Running"}});
    alice.patch(&path, "merge-patch", &patch).await.expect(403);
    let changed = alice.patch(&format!("{path}/status"), "merge-patch", &patch).await.expect(200);
    assert_eq!(changed["status"]["phase"], "Running");
    assert_eq!(pending(&changed), Some(vec!["a.x.y"]));
    let result = json!({"metadata": {"initializers": {"result": {"status": "Failure"}}}});
    let path = format!("{path}/status");
    alice.patch(&path, "merge-patch", &result).await.expect(200);
    let kept = scene.admin.get(&format!("{PODS}/p")).await.expect(200);
    assert_eq!(pending(&kept), Some(vec!["a.x.y"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_act_at_once_do_not_undo_each_other() {
    let scene = Scene::start().await;
    let graph = json!({"orderingMode": "Graph"});
    let both = json!([entry("a.x.y", graph.clone()), entry("b.x.y", graph)]);
    scene.admin.post(INITIALIZERS, &configuration("a", both)).await.expect(201);
    let creator = scene.create_at(&format!("{MAPS}?includeUninitialized=1"), map("m"));
    let made = creator.await.unwrap().expect(202);
    let version = &made["metadata"]["resourceVersion"];
    let without = |name: &str| {
        let left = if name == "a.x.y" { "b.x.y" } else { "a.x.y" };
        let mut next = map_with("m", json!({"pending": [{"name": left, "after": []}]}));
        next["metadata"]["resourceVersion"] = version.clone();
        next
    };
    let path = format!("{MAPS}/m");
    let first = scene.admin.put(&path, &without("a.x.y")).await.expect(200);
    assert_eq!(pending(&first), Some(vec!["b.x.y"]));
    scene.admin.put(&path, &without("b.x.y")).await.expect(409);
    let mut again = map_with("m", json!({}));
    again["metadata"]["resourceVersion"] = first["metadata"]["resourceVersion"].clone();
    assert_eq!(pending(&scene.admin.put(&path, &again).await.expect(200)), None);
}
