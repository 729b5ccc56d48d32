//! The visibility of uninitialized objects.

use serde_json::{Value, json};
use server::UninitializedGetMode;

use super::scene::{MAPS, Scene, entry, map, next, pending, seen};
use crate::initializers::scene::{INITIALIZERS, configuration};

async fn store(scene: &Scene, name: &str) -> Value {
    let path = format!("{MAPS}?includeUninitialized=1");
    let answer = scene.admin.post(&path, &map(name)).await;
    assert!(matches!(answer.code, 201 | 202), "{}", answer.text());
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_hide_what_is_not_initialized() {
    let scene = Scene::start().await;
    for name in ["a", "d"] {
        store(&scene, name).await;
    }
    scene.register(&[("a.x.y", "Ignore")]).await;
    for name in ["b", "c", "e"] {
        assert_eq!(pending(&store(&scene, name).await), Some(vec!["a.x.y"]));
    }
    let visible = |names: Vec<String>| -> Vec<String> {
        names.into_iter().filter(|name| name.len() == 1).collect()
    };
    for query in ["", "includeUninitialized=false", "includeUninitialized=0"] {
        assert_eq!(visible(scene.list(query).await), ["a", "d"], "{query}");
    }
    for query in ["includeUninitialized=true", "includeUninitialized=1"] {
        let names = visible(scene.list(query).await);
        assert_eq!(names, ["a", "b", "c", "d", "e"], "{query}");
    }
    assert_eq!(visible(scene.list("labelSelector=!x").await), ["a", "d"]);
    scene.admin.get(&format!("{MAPS}?includeUninitialized=x")).await.expect(400);
    scene.admin.get(&format!("{MAPS}?watch=1&includeUninitialized=x")).await.expect(400);

    let page = scene.admin.get(&format!("{MAPS}?limit=1")).await.expect(200);
    assert_eq!(page["metadata"].get("remainingItemCount"), None, "counts tell nothing: {page}");
    let mut names = Vec::new();
    let mut token = String::new();
    loop {
        let page = scene.admin.get(&format!("{MAPS}?limit=1&continue={token}")).await.expect(200);
        let items = page["items"].as_array().unwrap();
        names
            .extend(items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()));
        token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(visible(names), ["a", "d"]);

    let got = scene.get("b").await;
    assert_eq!(pending(&got), Some(vec!["a.x.y"]));
    scene.admin.delete(MAPS).await.expect(200);
    assert!(visible(scene.list("includeUninitialized=1").await).is_empty());
}

/// A list contains remainingItemCount if no object can be hidden, also directly after the start.
#[tokio::test(flavor = "multi_thread")]
async fn counts_are_exact_or_absent() {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    let scene = Scene::start().await;
    for name in ["a", "b", "c"] {
        let secret = json!({"metadata": {"name": name}});
        scene.admin.post(SECRETS, &secret).await.expect(201);
        let page = scene.admin.get(&format!("{SECRETS}?limit=1")).await.expect(200);
        let want = (name != "a").then(|| json!(name.as_bytes()[0] - b'a'));
        assert_eq!(page["metadata"].get("remainingItemCount"), want.as_ref());
    }
    scene.register(&[("a.x.y", "Ignore")]).await;
    for name in ["m", "n"] {
        store(&scene, name).await;
    }
    let scene = scene.crash(std::time::Duration::ZERO).await;
    for (path, want) in [(SECRETS, Some(json!(2))), (MAPS, None)] {
        let path = format!("{path}?limit=1&includeUninitialized=false");
        let page = scene.admin.get(&path).await.expect(200);
        assert_eq!(page["metadata"].get("remainingItemCount"), want.as_ref(), "{path}");
    }
    let path = format!("{MAPS}?limit=1&includeUninitialized=1");
    let page = scene.admin.get(&path).await.expect(200);
    assert!(page["metadata"]["remainingItemCount"].is_number(), "who sees all may count all");
}

/// With `UninitializedGetMode::Accepted`, GET returns 202 and a Status.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_may_only_say_that_there_will_be_an_object() {
    let scene = Scene::start_with(|options| {
        options.admission_options.uninitialized_get_mode = UninitializedGetMode::Accepted
    })
    .await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let made = store(&scene, "m").await;
    let path = format!("{MAPS}/m");
    let status = scene.admin.get(&path).await.expect(202);
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(status["details"]["uid"], made["metadata"]["uid"]);
    let version = &status["details"]["causes"][0];
    assert_eq!(version["message"], made["metadata"]["resourceVersion"]);
    let shown = scene.admin.get(&format!("{path}?includeUninitialized=1")).await.expect(200);
    assert_eq!(shown, made);
    scene.act("m", "a.x.y").await;
    scene.admin.get(&path).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_tell_of_what_was_always_hidden_to_those_who_ask() {
    let scene = Scene::start().await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let alice = scene.grant_alice(&[]).await;
    let (mut all, mut default) =
        (scene.watch("includeUninitialized=1").await, scene.watch("").await);
    let creator = scene.create("m");
    assert_eq!(next(&mut all).await, seen("ADDED", "m", &["a.x.y"]));
    alice.delete(&format!("{MAPS}/m")).await.expect(200);
    assert_eq!(next(&mut all).await, seen("DELETED", "m", &["a.x.y"]));
    let told = creator.await.unwrap().expect(500);
    let want = "Internal error occurred: object deleted while waiting for creation";
    assert_eq!(told["message"], want);

    let made = store(&scene, "n").await;
    assert_eq!(next(&mut all).await, seen("ADDED", "n", &["a.x.y"]));
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{MAPS}?watch=1&resourceVersion={version}");
    let mut late = scene.admin.watch(&path).await;
    scene.act("n", "a.x.y").await;
    assert_eq!(next(&mut default).await, seen("ADDED", "n", &[]), "nothing before");
    assert_eq!(next(&mut late).await, seen("ADDED", "n", &[]));
    assert_eq!(next(&mut all).await, seen("MODIFIED", "n", &[]));
    let mut initial = scene.admin.watch(&format!("{MAPS}?watch=1&labelSelector=!x")).await;
    store(&scene, "z").await;
    scene.act("z", "a.x.y").await;
    loop {
        let (kind, name, waiting) = next(&mut initial).await;
        assert_eq!((kind.as_str(), waiting.len()), ("ADDED", 0));
        if name == "z" {
            break;
        }
    }
}

/// Custom objects wait like others, and their creator gets the version they asked for.
#[tokio::test(flavor = "multi_thread")]
async fn custom_objects_wait_too() {
    const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
    let scene = Scene::start().await;
    let open = json!({"openAPIV3Schema": {"type": "object",
        "x-kubernetes-preserve-unknown-fields": true}});
    let version =
        |name: &str| json!({"name": name, "served": true, "storage": name == "v1", "schema": open});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
            "versions": [version("v1"), version("v2")]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    scene.admin.post(path, &definition).await.expect(201);
    while scene.admin.get(WIDGETS).await.code != 200 {}
    let rules =
        json!([{"apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["widgets"]}]);
    let entries = json!([entry("a.x.y", json!({"rules": rules}))]);
    scene.admin.post(INITIALIZERS, &configuration("w", entries)).await.expect(201);
    let mut all = scene.admin.watch(&format!("{WIDGETS}?watch=1&includeUninitialized=1")).await;
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    let creator = scene.create_at(WIDGETS, widget);
    assert_eq!(next(&mut all).await, seen("ADDED", "w", &["a.x.y"]));
    let list = scene.admin.get(WIDGETS).await.expect(200);
    assert_eq!(list["items"], json!([]));
    let patch = json!({"metadata": {"initializers": {"pending": []}}, "spec": {"size": 1}});
    let other = WIDGETS.replace("/v1/", "/v2/");
    let changed = scene.admin.patch(&format!("{other}/w"), "merge-patch", &patch).await.expect(200);
    assert_eq!(changed["apiVersion"], "example.com/v2");
    let made = creator.await.unwrap().expect(201);
    assert_eq!((&made["apiVersion"], pending(&made)), (&json!("example.com/v1"), None));
    assert_eq!(made["spec"], json!({"size": 1}));
    let bad = json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "initializers": {"pending": [1]}}});
    scene.admin.post(WIDGETS, &bad).await.expect(400);
}

/// Uninitialized roles and definitions do not affect decisions.
#[tokio::test(flavor = "multi_thread")]
async fn hidden_roles_grant_nothing() {
    let scene = Scene::start().await;
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "apiVersions": ["v1"],
        "resources": ["rolebindings"]}]);
    let entries = json!([entry("a.x.y", json!({"rules": rules}))]);
    scene.admin.post(INITIALIZERS, &configuration("a", entries)).await.expect(201);
    const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let mut all = scene.admin.watch(&format!("{BINDINGS}?watch=1&includeUninitialized=1")).await;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({"metadata": {"name": "view"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}]});
    let creator = scene.create_at(BINDINGS, binding);
    loop {
        if next(&mut all).await == seen("ADDED", "view", &["a.x.y"]) {
            break;
        }
    }
    scene.cluster.alice().get(MAPS).await.expect(403);
    // An initializer may change fields that are immutable later.
    let patch = json!({"metadata": {"initializers": null}, "roleRef": {"name": "edit"}});
    let path = format!("{BINDINGS}/view");
    scene.admin.patch(&path, "merge-patch", &patch).await.expect(200);
    assert_eq!(creator.await.unwrap().expect(201)["roleRef"]["name"], "edit");
    scene.cluster.alice().get(MAPS).await.expect(200);
    let patch = json!({"roleRef": {"name": "view"}});
    scene.admin.patch(&path, "merge-patch", &patch).await.expect(422);
}
