//! Objects that an initializer marks as failed.

use serde_json::{Value, json};

use super::scene::{MAPS, Scene, map, next, seen};

/// Begins a create, marks the object as failed with a result, and returns the response of the
/// create.
async fn given_up(scene: &Scene, name: &str, result: &Value) -> crate::client::Answer {
    let mut all = scene.watch("includeUninitialized=1").await;
    let mut body = map(name);
    body["metadata"]["finalizers"] = json!(["x.y/z"]);
    let creator = scene.create_at(MAPS, body);
    assert_eq!(next(&mut all).await, seen("ADDED", name, &["a.x.y"]));
    let patch = json!({"metadata": {"initializers": {"result": result}}});
    let path = format!("{MAPS}/{name}");
    let updated = scene.admin.patch(&path, "merge-patch", &patch).await.expect(200);
    assert_eq!(updated["metadata"]["initializers"]["result"], *result);
    assert_eq!(next(&mut all).await, seen("MODIFIED", name, &["a.x.y"]));
    assert_eq!(next(&mut all).await, seen("DELETED", name, &["a.x.y"]));
    scene.admin.get(&path).await.expect(404);
    creator.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_creator_is_told_why_and_the_object_goes() {
    let scene = Scene::start().await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let mut default = scene.watch("").await;
    let result = json!({"status": "Failure", "code": 403, "reason": "Odd", "message": "not here",
        "details": {"causes": [{"reason": "r", "message": "m", "field": "f"}]}});
    let told = given_up(&scene, "m", &result).await.expect(403);
    for member in ["reason", "message", "details", "code", "status"] {
        assert_eq!(told[member], result[member]);
    }
    let told = given_up(&scene, "n", &json!({"status": "Failure"})).await.expect(500);
    assert_eq!(told["code"], 500);

    let path = format!("{MAPS}/k");
    scene.admin.post(&format!("{MAPS}?includeUninitialized=1"), &map("k")).await.expect(202);
    let patch = json!({"metadata": {"initializers": {"result": {"status": "Success"}}}});
    let refused = scene.admin.patch(&path, "merge-patch", &patch).await.expect(422);
    let want = "metadata.initializers.result.status: Invalid value: \"Success\": must be 'Failure'";
    assert!(refused["message"].as_str().unwrap().ends_with(want), "{refused}");
    scene.act("k", "a.x.y").await;
    assert_eq!(next(&mut default).await, seen("ADDED", "k", &[]), "nobody saw the others");
}
