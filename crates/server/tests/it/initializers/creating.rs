//! The responses to creates of objects with initializers.

use admission::InitializerOptions;
use serde_json::{Value, json};

use super::scene::{MAPS, Scene, entry, map, map_with, next, pending, seen};
use crate::client::Answer;
use crate::initializers::scene::{INITIALIZERS, configuration};

#[tokio::test(flavor = "multi_thread")]
async fn the_creator_waits_until_all_have_acted() {
    let scene = Scene::start().await;
    let plain = scene.admin.post(MAPS, &map("plain")).await.expect(201);
    assert_eq!(pending(&plain), None);
    scene.register(&[("b.x.y", "Ignore"), ("a.x.y", "Ignore")]).await;
    let (mut all, mut default) =
        (scene.watch("includeUninitialized=true").await, scene.watch("").await);
    let creator = scene.create("m");
    assert_eq!(next(&mut all).await, seen("ADDED", "m", &["b.x.y", "a.x.y"]));
    scene.act("m", "b.x.y").await;
    assert_eq!(next(&mut all).await, seen("MODIFIED", "m", &["a.x.y"]));
    assert!(!creator.is_finished());
    let last = scene.act("m", "a.x.y").await;
    assert_eq!(next(&mut all).await, seen("MODIFIED", "m", &[]));
    let made = creator.await.unwrap().expect(201);
    assert_eq!(made, last);
    assert_eq!(pending(&made), None);
    assert_eq!(made["data"], json!({"a": "b", "b.x.y": "was here", "a.x.y": "was here"}));
    assert_eq!(next(&mut default).await, seen("ADDED", "m", &[]));
    assert_eq!(scene.metric("portcullis_initializer_wait_seconds_count").await, Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_it_does_not_wait() {
    let scene = Scene::start().await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    for value in ["1", "true"] {
        let path = format!("{MAPS}?includeUninitialized={value}");
        let made = scene.admin.post(&path, &map(&format!("m{value}"))).await.expect(202);
        assert_eq!(pending(&made), Some(vec!["a.x.y"]));
        assert!(made["metadata"]["resourceVersion"].is_string());
    }
    scene.admin.post(MAPS, &map("m1")).await.expect(409);
    let path = format!("{MAPS}?dryRun=All");
    let dry = scene.admin.post(&path, &map("dry")).await.expect(202);
    assert_eq!(pending(&dry), Some(vec!["a.x.y"]));
    scene.admin.get(&format!("{MAPS}/dry")).await.expect(404);
    let path = format!("{MAPS}?includeUninitialized=perhaps");
    scene.admin.post(&path, &map("bad")).await.expect(400);
    scene.admin.get(&format!("{MAPS}/bad")).await.expect(404);

    const LIMITS: &str = "/api/v1/namespaces/default/limitranges";
    let ranges = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["limitranges"]}]);
    let ranges = entry("l.x.y", json!({"rules": ranges}));
    let ranges = configuration("l", json!([ranges]));
    scene.admin.post(INITIALIZERS, &ranges).await.expect(201);
    let (admin, body) = (scene.admin.clone(), json!({"metadata": {"name": "l"}, "spec": {}}));
    let path = format!("{LIMITS}?watch=1&includeUninitialized=1");
    let mut events = scene.admin.watch(&path).await;
    let creator = tokio::spawn(async move { admin.put(&format!("{LIMITS}/l"), &body).await });
    assert_eq!(next(&mut events).await, seen("ADDED", "l", &["l.x.y"]));
    assert!(!creator.is_finished());
    let patch = json!({"metadata": {"initializers": null}});
    scene.admin.patch(&format!("{LIMITS}/l"), "merge-patch", &patch).await.expect(200);
    assert_eq!(pending(&creator.await.unwrap().expect(201)), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_say_whom_an_object_waits_for() {
    let scene = Scene::start().await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let alice = scene.grant_alice(&[]).await;
    for (idx, empty) in [json!({"pending": []}), json!({})].into_iter().enumerate() {
        let body = map_with(&format!("e{idx}"), empty);
        let refused = alice.post(MAPS, &body).await.expect(403);
        let message = refused["message"].as_str().unwrap();
        let want = format!("configmaps \"e{idx}\" is forbidden: create with initializers denied: ");
        assert!(message.starts_with(&want), "{message}");
        let made = scene.admin.post(MAPS, &body).await.expect(201);
        assert_eq!(pending(&made), None);
    }
    let null = map_with("null", json!(null));
    let creator = scene.create_at(&format!("{MAPS}?includeUninitialized=1"), null);
    assert_eq!(pending(&creator.await.unwrap().expect(202)), Some(vec!["a.x.y"]));
    let path = format!("{MAPS}?includeUninitialized=1");
    let own = json!({"pending": [{"name": "x.y.z"}, {"name": "b.y.z", "after": ["gone.y.z"]}]});
    let made = scene.admin.post(&path, &map_with("own", own)).await.expect(202);
    let want = json!({"pending": [{"name": "x.y.z"}, {"name": "b.y.z", "after": []}]});
    assert_eq!(made["metadata"]["initializers"], want);

    let many: Vec<Value> = (0..65).map(|idx| json!({"name": format!("n{idx}.y.z")})).collect();
    for (own, want) in [
        (json!({"result": {"status": "Failure"}}), "result: Forbidden: may not be set on create"),
        (json!({"pending": [{"name": "Test"}]}), "pending[0].name: Invalid value: \"Test\""),
        (
            json!({"pending": [{"name": "a.b"}]}),
            "should be a domain with at least three segments separated by dots",
        ),
        (json!({"pending": many}), "pending: Too many: 65: must have at most 64 items"),
    ] {
        let refused = scene.admin.post(MAPS, &map_with("bad", own.clone())).await.expect(422);
        assert!(refused["message"].as_str().unwrap().contains(want), "{refused}");
        alice.post(MAPS, &map_with("bad", own)).await.expect(403);
    }
    let odd = json!({"pending": "a.b.c"});
    scene.admin.post(MAPS, &map_with("odd", odd)).await.expect(400);
}

/// Objects that initializers do not apply to.
#[tokio::test(flavor = "multi_thread")]
async fn some_objects_wait_for_nobody() {
    let scene = Scene::start().await;
    let everything = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    let all = configuration("a", json!([entry("a.x.y", json!({"rules": everything}))]));
    scene.admin.post(INITIALIZERS, &all).await.expect(201);
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let mut mirror = json!({"metadata": {"name": "mirror",
        "annotations": {"kubernetes.io/config.mirror": ""}}, "spec": spec});
    mirror["spec"]["nodeName"] = json!("n1");
    assert_eq!(pending(&scene.admin.post(PODS, &mirror).await.expect(201)), None);
    let plain = json!({"metadata": {"name": "plain"}, "spec": spec});
    let path = format!("{PODS}?includeUninitialized=1");
    let made = scene.admin.post(&path, &plain).await.expect(202);
    assert_eq!(pending(&made), Some(vec!["a.x.y"]));
    let own = json!({"metadata": {"name": "b", "initializers": {"pending": [{"name": "x.y.z"}]}}});
    let made = scene.admin.post(INITIALIZERS, &own).await.expect(201);
    assert_eq!(pending(&made), None, "exempt");

    let off = |options: &mut server::ServerOptions| {
        options.admission_options.initializer_options =
            InitializerOptions { are_initializers_enabled: false, ..InitializerOptions::default() };
    };
    let scene = Scene::start_with(off).await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let own = map_with("m", json!({"pending": [{"name": "x.y.z"}]}));
    assert_eq!(pending(&scene.admin.post(MAPS, &own).await.expect(201)), None);
    let changed = scene.admin.put(&format!("{MAPS}/m"), &own).await.expect(200);
    assert_eq!(pending(&changed), None);
}

/// A create that waits for initializers holds no seat. Each priority level has one.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_takes_no_room() {
    let scene = Scene::start_with(|options| options.request_limits.seats_max = 1).await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let alice = scene.grant_alice(&["initialize"]).await;
    let create = |name: &'static str| {
        let (alice, body) = (alice.clone(), map(name));
        tokio::spawn(async move { patiently(|| alice.post(MAPS, &body)).await })
    };
    let creators = ["m", "n"].map(create);
    scene.asleep(5.0, 2).await;
    let patch = json!({"metadata": {"initializers": null}});
    for name in ["m", "n"] {
        let path = format!("{MAPS}/{name}");
        patiently(|| alice.patch(&path, "merge-patch", &patch)).await.expect(200);
    }
    for creator in creators {
        creator.await.unwrap().expect(201);
    }
}

/// Retries while the server returns 429.
async fn patiently<F: Future<Output = Answer>>(request: impl Fn() -> F) -> Answer {
    for _ in 0..1_000 {
        let answer = request().await;
        if answer.code != 429 {
            return answer;
        }
    }
    panic!("there is never any room");
}
