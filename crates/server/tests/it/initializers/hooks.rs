//! Hooks and audit events of objects that wait for initializers.

use serde_json::{Value, json};

use super::scene::{MAPS, Scene, entry, map, next, pending, seen};
use crate::admission_hooks::{
    HookAuthority, MUTATING, VALIDATING, allow, asked, patching, register,
};
use crate::initializers::scene::{INITIALIZERS, configuration};

#[tokio::test(flavor = "multi_thread")]
async fn hooks_see_every_step() {
    let authority = HookAuthority::new();
    let add = json!([{"op": "add", "path": "/data/added", "value": "x"}]);
    let first = authority.hook(allow());
    let second = authority.hook(patching(&add));
    let validating = authority.hook(allow());
    let scene = Scene::start().await;
    let create = crate::admission_hooks::rule(&["CREATE"], "", "configmaps");
    let again = json!({"rules": [create], "reinvocationPolicy": "IfNeeded"});
    let webhooks = [
        authority.webhook("a.m.y", &first, again),
        authority.webhook("b.m.y", &second, json!({"rules": [create]})),
    ];
    register(&scene.cluster, MUTATING, "m", &webhooks).await;
    let webhooks = [authority.webhook("v.x.y", &validating, json!({}))];
    register(&scene.cluster, VALIDATING, "v", &webhooks).await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let alice = scene.grant_alice(&[]).await;
    let path = format!("{MAPS}?includeUninitialized=1");
    let made = alice.post(&path, &map("m")).await.expect(202);
    assert_eq!(pending(&made), Some(vec!["a.x.y"]));
    let rounds: Vec<Value> = first.take_requests().iter().map(asked).collect();
    assert_eq!(rounds.len(), 2, "the second hook changed what the first has seen");
    for told in rounds.iter().chain(&[asked(&validating.take_requests()[0])]) {
        assert_eq!(pending(&told["object"]), Some(vec!["a.x.y"]));
    }
    scene.act("m", "a.x.y").await;
    let told = asked(&validating.take_requests()[0]);
    assert_eq!(told["operation"], "UPDATE");
    assert_eq!(pending(&told["oldObject"]), Some(vec!["a.x.y"]));
    assert_eq!(pending(&told["object"]), None);
}

/// `docs/serve.md` tells this: whatever initializers write, a hook for CREATE does not see it, and a hook for UPDATE sees
/// every step and can refuse it.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_for_create_see_the_object_before_its_initializers() {
    let authority = HookAuthority::new();
    let (creating, updating) = (authority.hook(allow()), authority.hook(allow()));
    let scene = Scene::start().await;
    let rule = |operation: &str| json!({"rules": [crate::admission_hooks::rule(&[operation], "", "configmaps")]});
    let webhooks = [
        authority.webhook("create.x.y", &creating, rule("CREATE")),
        authority.webhook("update.x.y", &updating, rule("UPDATE")),
    ];
    register(&scene.cluster, VALIDATING, "v", &webhooks).await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let waiting = scene.create("m");
    let told = loop {
        if let Some(told) = creating.take_requests().first() {
            break asked(told);
        }
        crate::polling::pause().await;
    };
    assert_eq!(told["object"]["data"], json!({"a": "b"}));
    assert_eq!(pending(&told["object"]), Some(vec!["a.x.y"]));
    while scene.list("includeUninitialized=1").await.is_empty() {
        crate::polling::pause().await;
    }
    updating.replace(crate::admission_hooks::deny("no")).unwrap();
    let step = json!({"metadata": {"initializers": null}, "data": {"a.x.y": "was here"}});
    let path = format!("{MAPS}/m");
    scene.admin.patch(&path, "merge-patch", &step).await.expect(403);
    assert_eq!(asked(&updating.take_requests()[0])["object"]["data"]["a.x.y"], "was here");
    updating.replace(allow()).unwrap();
    scene.act("m", "a.x.y").await;
    let made = waiting.await.expect("an answer").expect(201);
    assert_eq!(made["data"], json!({"a": "b", "a.x.y": "was here"}));
    assert!(creating.take_requests().is_empty(), "the client's create was reviewed once");
    assert_eq!(updating.take_requests().len(), 1);
}

/// A hook may add initializers to an object, as the configuration does.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_may_choose_initializers() {
    let authority = HookAuthority::new();
    let own = |name: &str| {
        json!([{"op": "add", "path": "/metadata/initializers",
            "value": {"pending": [{"name": name}]}}])
    };
    let hook = authority.hook(patching(&own("x.y.z")));
    let scene = Scene::start().await;
    let create = json!({"rules": [crate::admission_hooks::rule(&["CREATE"], "", "configmaps")]});
    let webhooks = [authority.webhook("m.x.y", &hook, create)];
    register(&scene.cluster, MUTATING, "m", &webhooks).await;
    let alice = scene.grant_alice(&[]).await;
    let path = format!("{MAPS}?includeUninitialized=1");
    let made = alice.post(&path, &map("m")).await.expect(202);
    assert_eq!(pending(&made), Some(vec!["x.y.z"]));
    hook.replace(patching(&own("Test"))).unwrap();
    alice.post(&path, &map("n")).await.expect(422);
}

/// Not even a hook changes the list by way of a subresource.
#[tokio::test(flavor = "multi_thread")]
async fn subresources_keep_the_list_whatever_hooks_say() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let authority = HookAuthority::new();
    let remove = json!([{"op": "remove", "path": "/metadata/initializers"}]);
    let hook = authority.hook(patching(&remove));
    let scene = Scene::start().await;
    let update = crate::admission_hooks::rule(&["UPDATE"], "", "pods/status");
    let webhooks = [authority.webhook("m.x.y", &hook, json!({"rules": [update]}))];
    register(&scene.cluster, MUTATING, "m", &webhooks).await;
    let pod = json!({"metadata": {"name": "p", "initializers": {"pending": [{"name": "x.y.z"}]}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    scene.admin.post(&format!("{PODS}?includeUninitialized=1"), &pod).await.expect(202);
    let patch = json!({"status": {"phase": "Running"}});
    let path = format!("{PODS}/p/status");
    let changed = scene.admin.patch(&path, "merge-patch", &patch).await.expect(200);
    assert_eq!(hook.n_requests(), 1);
    assert_eq!(changed["status"]["phase"], "Running");
    assert_eq!(pending(&changed), Some(vec!["x.y.z"]));
}

/// The audit log records initializers that the server removes by itself.
#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_tells_who_was_skipped() {
    const POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
        "rules": [{"level": "Metadata", "resources": [{"resources": ["configmaps"]}]}]}"#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let log = audit::AuditLog::open_log_file(&file, audit::LogRotationOptions::default()).unwrap();
    let (policy, _) = audit::Policy::parse(POLICY.as_bytes()).unwrap();
    let auditor = audit::Auditor::with_log_backend(policy, log).expect("a thread");
    let scene = Scene::start_in(folder, jiff::Timestamp::now(), |options| {
        options.auditor = Some(auditor);
    })
    .await;
    let entries = json!([entry("a.x.y", json!({})), entry("b.x.y", json!({}))]);
    scene.admin.post(INITIALIZERS, &configuration("a", entries)).await.expect(201);
    let mut all = scene.watch("includeUninitialized=1").await;
    let path = format!("{MAPS}?includeUninitialized=1");
    scene.admin.post(&path, &map("m")).await.expect(202);
    assert_eq!(next(&mut all).await.0, "ADDED");
    scene.asleep(5.0, 1).await;
    scene.pass(1.0);
    scene.act("m", "a.x.y").await;
    assert_eq!(next(&mut all).await, seen("MODIFIED", "m", &["b.x.y"]));
    scene.asleep(6.0, 1).await;
    scene.pass(5.0);
    assert_eq!(next(&mut all).await, seen("MODIFIED", "m", &[]));
    let key = "failed-open.initializer.portcullis.io/1";
    // The event is written when the object is, but not at the same moment.
    let told = loop {
        let text = std::fs::read_to_string(&file).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let told: Vec<Value> =
            events.filter(|event| event["annotations"].get(key).is_some()).collect();
        if !told.is_empty() {
            break told;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["annotations"][key], "b.x.y");
    assert_eq!(told[0]["user"]["username"], server::SERVER_USER);
    assert_eq!(told[0]["requestURI"], format!("{MAPS}/m"));
}
