//! Requests of the server to itself call hooks.

use fake_http::{Peer, Script};
use serde_json::{Value, json};

use super::{MAPS, NAMESPACES, Scene, map};
use crate::admission_hooks::{VALIDATING, allow, answer, asked, deny, rule};

/// Waits until a hook receives a request of the server itself about an object, and returns it.
async fn told_by_server(hook: &Peer, name: &str) -> Value {
    for _ in 0..2000 {
        let requests = hook.take_requests();
        let is_own = |it: &Value| it["userInfo"]["username"] == server::SERVER_USER;
        if let Some(told) = requests.iter().map(asked).find(|it| is_own(it) && it["name"] == name) {
            return told;
        }
        crate::polling::pause().await;
    }
    panic!("nobody was asked about {name}");
}

async fn gone(scene: &Scene, path: &str) {
    for _ in 0..2000 {
        if scene.admin.get(path).await.code == 404 {
            return;
        }
        crate::polling::pause().await;
    }
    panic!("{path} stays");
}

/// The server deletes the contents of a terminating namespace through hooks.
#[tokio::test(flavor = "multi_thread")]
async fn emptying_a_namespace() {
    let scene = Scene::start().await;
    let (namespace, maps) = (format!("{NAMESPACES}/n"), format!("{NAMESPACES}/n/configmaps"));
    scene.admin.post(NAMESPACES, &json!({"metadata": {"name": "n"}})).await.expect(201);
    scene.admin.post(&maps, &map("m")).await.expect(201);
    let hook = scene.hook(deny("not yet"));
    scene.ask(VALIDATING, &hook, json!({})).await;
    scene.admin.delete(&namespace).await.expect(200);
    let told = told_by_server(&hook, "m").await;
    assert_eq!((&told["operation"], &told["namespace"]), (&json!("DELETE"), &json!("n")));
    assert_eq!(told["oldObject"]["data"], json!({"a": "b"}));
    // After two denials the object and its namespace still exist.
    told_by_server(&hook, "m").await;
    scene.admin.get(&format!("{maps}/m")).await.expect(200);
    let held = scene.admin.get(&namespace).await.expect(200);
    assert_eq!(held["status"]["phase"], "Terminating");
    hook.replace(allow()).unwrap();
    gone(&scene, &format!("{maps}/m")).await;
    gone(&scene, &namespace).await;
}

/// Deletion of dependents by the garbage collector.
#[tokio::test(flavor = "multi_thread")]
async fn collecting_garbage() {
    let scene = Scene::start().await;
    let owner = scene.admin.post(MAPS, &map("owner")).await.expect(201);
    let mut dependent = map("dependent");
    dependent["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap",
        "name": "owner", "uid": owner["metadata"]["uid"]}]);
    scene.admin.post(MAPS, &dependent).await.expect(201);
    // An object without owners can be deleted.
    let hook = scene.hook(Script::rule(|request| {
        let is_allowed = asked(request)["name"] != "dependent";
        answer(request, &json!({"allowed": is_allowed}))
    }));
    scene.ask(VALIDATING, &hook, json!({"rules": [rule(&["DELETE"], "", "configmaps")]})).await;
    scene.admin.delete(&format!("{MAPS}/owner")).await.expect(200);
    let told = told_by_server(&hook, "dependent").await;
    assert_eq!((&told["operation"], &told["namespace"]), (&json!("DELETE"), &json!("default")));
    scene.admin.get(&format!("{MAPS}/dependent")).await.expect(200);
    // A denied deletion is tried again.
    hook.replace(allow()).unwrap();
    gone(&scene, &format!("{MAPS}/dependent")).await;
}

/// The default objects of a server are written without hooks.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_whatever_hooks_say() {
    let scene = Scene::start().await;
    let hook = scene.hook(deny("no"));
    scene.ask(VALIDATING, &hook, json!({"rules": super::everything()})).await;
    let Scene { cluster, authority, .. } = scene;
    let cluster = cluster.restart().await;
    let admin = cluster.admin();
    let scene = Scene { cluster, admin, authority };
    assert_eq!(scene.admin.get("/readyz").await.code, 200);
    scene.create("").await.expect(403);
    scene.admin.delete(&format!("{VALIDATING}/c")).await.expect(200);
    scene.create("").await.expect(201);
}
