//! The order in which hooks are called, and which result counts.

use std::time::{Duration, Instant};

use fake_http::Script;
use serde_json::{Value, json};

use super::{MAPS, Scene, map, message};
use crate::admission_hooks::{MUTATING, VALIDATING, allow, answer, deny, patching, register, rule};

const SECOND: Duration = Duration::from_secs(1);

fn denying(text: &'static str, delay: Duration) -> Script {
    let response = json!({"allowed": false, "status": {"code": 403, "message": text}});
    Script::rule(move |request| answer(request, &response).delay(delay))
}

/// Hooks match the object as the hooks before them have left it.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_does_not_see_what_was_removed_before_it() {
    let scene = Scene::start().await;
    let first = scene.hook(patching(&json!([{"op": "remove", "path": "/metadata/labels/x"}])));
    let second = scene.hook(allow());
    let create = json!([rule(&["CREATE"], "", "configmaps")]);
    let selector = json!({"matchLabels": {"x": "y"}});
    let webhooks = [
        scene.webhook("a.x.y", &first, json!({"rules": create})),
        scene.webhook("b.x.y", &second, json!({"rules": create, "objectSelector": selector})),
    ];
    scene.configure(MUTATING, &webhooks).await;
    let mut body = map("m");
    body["metadata"]["labels"] = json!({"x": "y", "z": "z"});
    scene.admin.post(MAPS, &body).await.expect(201);
    assert_eq!((first.n_requests(), second.n_requests()), (1, 0));
}

/// The first denial in the order of the list is reported, not the first in time.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_in_the_list_is_reported() {
    let scene = Scene::start().await;
    let (a, b) = (scene.hook(denying("slow", SECOND)), scene.hook(denying("fast", Duration::ZERO)));
    let webhooks = [scene.webhook("a.x.y", &a, json!({})), scene.webhook("b.x.y", &b, json!({}))];
    scene.configure(VALIDATING, &webhooks).await;
    let text = message(scene.create("").await, 403);
    assert_eq!(text, "admission webhook \"a.x.y\" denied the request: slow");
    assert_eq!((a.n_requests(), b.n_requests()), (1, 1));
}

/// Validating hooks are called concurrently.
#[tokio::test(flavor = "multi_thread")]
async fn validating_hooks_are_asked_at_once() {
    let scene = Scene::start().await;
    let slow = || {
        let response = json!({"allowed": true});
        Script::rule(move |request| answer(request, &response).delay(2 * SECOND))
    };
    let hooks = [scene.hook(slow()), scene.hook(slow()), scene.hook(slow())];
    let webhooks: Vec<Value> = (hooks.iter().enumerate())
        .map(|(idx, hook)| scene.webhook(&format!("h{idx}.x.y"), hook, json!({})))
        .collect();
    scene.configure(VALIDATING, &webhooks).await;
    let begun = Instant::now();
    scene.create("").await.expect(201);
    let took = begun.elapsed();
    assert!(took >= 2 * SECOND && took < 5 * SECOND, "{took:?}");
    assert!(hooks.iter().all(|hook| hook.n_requests() == 1));
}

/// Mutating hooks are called in the order of their objects' names, and a denial ends the phase.
/// Validating hooks do not receive an object that a mutating hook has denied.
#[tokio::test(flavor = "multi_thread")]
async fn mutating_hooks_are_asked_in_order() {
    let scene = Scene::start().await;
    let stamp = |text: &'static str| {
        Script::rule(move |request| {
            let object = &crate::admission_hooks::asked(request)["object"];
            let seen = object["data"]["seen"].as_str().unwrap_or_default().to_owned();
            let patch = json!([{"op": "add", "path": "/data/seen", "value": seen + text}]);
            answer(request, &crate::admission_hooks::patch_of(&patch))
        })
    };
    let (b, a1, a0) = (scene.hook(stamp("b")), scene.hook(stamp("1")), scene.hook(stamp("0")));
    let create = json!({"rules": [rule(&["CREATE"], "", "configmaps")]});
    register(&scene.cluster, MUTATING, "b", &[scene.webhook("b.x.y", &b, create.clone())]).await;
    let webhooks =
        [scene.webhook("z.x.y", &a0, create.clone()), scene.webhook("a.x.y", &a1, create.clone())];
    register(&scene.cluster, MUTATING, "a", &webhooks).await;
    let made = scene.create("").await.expect(201);
    assert_eq!(made["data"]["seen"], "01b");

    let validating = scene.hook(allow());
    scene.ask(VALIDATING, &validating, create).await;
    a0.replace(deny("no")).unwrap();
    let text = message(scene.admin.post(MAPS, &map("n")).await, 403);
    assert_eq!(text, "admission webhook \"z.x.y\" denied the request: no");
    assert_eq!((a0.n_requests(), a1.n_requests(), b.n_requests()), (2, 1, 1));
    assert_eq!(validating.n_requests(), 0);
}

/// An error in the selection of a hook ends the request before any hook is called.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_called_if_somebody_can_not_be_chosen() {
    let scene = Scene::start().await;
    let (first, second) = (scene.hook(allow()), scene.hook(allow()));
    let broken = json!([{"name": "c", "expression": "object.data.missing == 'x'"}]);
    let webhooks = [
        scene.webhook("a.x.y", &first, json!({})),
        scene.webhook("b.x.y", &second, json!({"matchConditions": broken})),
    ];
    scene.configure(VALIDATING, &webhooks).await;
    scene.create("").await.expect(403);
    assert_eq!((first.n_requests(), second.n_requests()), (0, 0));
}

/// An object that the server itself rejects is not sent to later hooks.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_refuses_before_it_asks() {
    let scene = Scene::start().await;
    let (mutating, validating) = (scene.hook(allow()), scene.hook(allow()));
    scene.ask(MUTATING, &mutating, json!({})).await;
    scene.ask(VALIDATING, &validating, json!({})).await;
    let elsewhere = "/api/v1/namespaces/missing/configmaps";
    scene.admin.post(elsewhere, &map("m")).await.expect(404);
    assert_eq!((mutating.n_requests(), validating.n_requests()), (0, 0));
    let invalid = json!({"metadata": {"name": "m"}, "data": {"a b": "c"}});
    scene.admin.post(MAPS, &invalid).await.expect(422);
    assert_eq!((mutating.n_requests(), validating.n_requests()), (1, 0));
    scene.cluster.alice().post(MAPS, &map("m")).await.expect(403);
    assert_eq!((mutating.n_requests(), validating.n_requests()), (1, 0));
}
