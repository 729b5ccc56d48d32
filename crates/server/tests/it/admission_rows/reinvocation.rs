//! Mutating hooks that are called a second time.

use fake_http::{Peer, Script};
use serde_json::{Value, json};

use super::{Scene, told};
use crate::admission_hooks::{MUTATING, VALIDATING, allow, patching, rule};

fn set(value: &str) -> Script {
    patching(&json!([{"op": "add", "path": "/data/x", "value": value}]))
}

impl Scene {
    /// Mutating hooks `a` and `b`.
    async fn two(&self, a: &Peer, b: &Peer, policy: &str, of_a: Value) {
        let mut changes = json!({"rules": [rule(&["CREATE"], "", "configmaps")],
            "reinvocationPolicy": policy});
        let second = self.webhook("b.x.y", b, changes.clone());
        changes.as_object_mut().unwrap().extend(of_a.as_object().unwrap().clone());
        self.configure(MUTATING, &[self.webhook("a.x.y", a, changes), second]).await;
    }
}

/// The values that `a` and `b` set, their policies, and how often each is called.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_are_asked_again_when_a_later_one_changes_something() {
    let scene = Scene::start().await;
    for (row, a, b, policy, want) in [
        ("its own change", Some("1"), None, "IfNeeded", (1, 1)),
        ("a change of another", None, Some("1"), "IfNeeded", (2, 1)),
        ("both change the field", Some("true"), Some("false"), "IfNeeded", (2, 2)),
        ("both change the field, never again", Some("true"), Some("false"), "Never", (1, 1)),
        ("the same change", Some("1"), Some("1"), "IfNeeded", (1, 1)),
    ] {
        let hooks = [a, b].map(|value| scene.hook(value.map_or_else(allow, set)));
        let [first, second] = &hooks;
        scene.two(first, second, policy, json!({})).await;
        let made = scene.create("dryRun=All").await.expect(201);
        assert_eq!((first.n_requests(), second.n_requests()), want, "{row}");
        let last = b.or(a).map_or(Value::Null, |value| value.into());
        assert_eq!(made["data"]["x"], last, "{row}");
        let calls = told(first);
        if let [once, again] = calls.as_slice() {
            assert_ne!(once["uid"], again["uid"], "{row}");
            assert_eq!(again["object"]["data"]["x"].as_str(), b, "{row}");
        }
    }
}

/// A hook that was not called in the first round is not called in the second.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_was_skipped_is_not_asked_later() {
    let scene = Scene::start().await;
    let label = json!([{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}]);
    let (a, b) = (scene.hook(allow()), scene.hook(patching(&label)));
    let selector = json!({"objectSelector": {"matchLabels": {"x": "y"}}});
    scene.two(&a, &b, "IfNeeded", selector).await;
    scene.create("dryRun=All").await.expect(201);
    assert_eq!((a.n_requests(), b.n_requests()), (0, 1));
}

/// Validating hooks are called once, with the last state.
#[tokio::test(flavor = "multi_thread")]
async fn validating_hooks_see_the_last_state() {
    let scene = Scene::start().await;
    let (a, b) = (scene.hook(set("true")), scene.hook(set("false")));
    let validating = scene.hook(allow());
    scene.two(&a, &b, "IfNeeded", json!({})).await;
    scene.ask(VALIDATING, &validating, json!({})).await;
    scene.create("").await.expect(201);
    let told = told(&validating);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["object"]["data"]["x"], "false");
}

/// The checks of the server run again before the second round, here for a namespace
/// that has begun to go meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_may_refuse_in_the_second_round() {
    let scene = Scene::start().await;
    let admin = &scene.admin;
    let held = json!({"metadata": {"name": "going"}, "spec": {"finalizers": ["x.y/z"]}});
    admin.post(super::NAMESPACES, &held).await.expect(201);
    let (a, b) = (
        scene.hook(allow()),
        scene.hook(Script::rule(|request| {
            let patch = json!([{"op": "add", "path": "/data/x", "value": "y"}]);
            let response = crate::admission_hooks::patch_of(&patch);
            let answer = crate::admission_hooks::answer(request, &response);
            answer.delay(std::time::Duration::from_secs(1))
        })),
    );
    scene.two(&a, &b, "IfNeeded", json!({})).await;
    let creating = {
        let admin = admin.clone();
        let path = format!("{}/going/configmaps", super::NAMESPACES);
        tokio::spawn(async move { admin.post(&path, &super::map("m")).await })
    };
    while b.n_requests() == 0 {
        crate::polling::pause().await;
    }
    admin.delete(&format!("{}/going", super::NAMESPACES)).await.expect(200);
    let status = creating.await.unwrap().expect(403);
    let text = status["message"].as_str().unwrap();
    assert!(text.ends_with("because it is being terminated"), "{text}");
    assert_eq!(a.n_requests(), 1, "nobody is asked about what is refused");
}
