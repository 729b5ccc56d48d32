//! The patches of hooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_http::Answer;
use serde_json::{Value, json};

use super::{MAPS, PODS, RBAC, Scene, map, message, pod, told_once};
use crate::admission_hooks::{
    MUTATING, VALIDATING, allow, answering, patch_of, patching, rule, warnings,
};

const ADD: &str = r#"[{"op": "add", "path": "/data/x", "value": "y"}]"#;
const FAILED: &str = "Internal error occurred: failed calling webhook \"h.x.y\": ";

fn add() -> Value {
    serde_json::from_str(ADD).unwrap()
}

/// A patch applies to creates and updates, and later hooks see it.
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_is_stored() {
    let scene = Scene::start().await;
    let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}}]);
    let mutating = scene.hook(patching(&patch));
    let validating = scene.hook(allow());
    let rules = json!([rule(&["CREATE", "UPDATE"], "", "configmaps")]);
    scene.ask(MUTATING, &mutating, json!({"rules": rules})).await;
    scene.ask(VALIDATING, &validating, json!({"rules": rules})).await;
    let made = scene.create("").await.expect(201);
    assert_eq!(made["metadata"]["labels"], json!({"by": "hook"}));
    assert_eq!(scene.admin.get(&format!("{MAPS}/m")).await.expect(200), made);
    assert_eq!(told_once(&validating)["object"]["metadata"]["labels"], json!({"by": "hook"}));
    let mut next = made.clone();
    next["metadata"].as_object_mut().unwrap().shift_remove("labels");
    next["data"] = json!({"c": "d"});
    let changed = scene.admin.put(&format!("{MAPS}/m"), &next).await.expect(200);
    assert_eq!(changed["metadata"]["labels"], json!({"by": "hook"}));
    assert_eq!(changed["data"], json!({"c": "d"}));
    assert_eq!(told_once(&validating)["object"]["metadata"]["labels"], json!({"by": "hook"}));
}

/// The result of a patch.
enum Want {
    /// The object is created with this data.
    Made(Value),
    /// The code of the refusal, and how its message begins.
    Refused(u16, String),
}

/// A response with a patch of a type.
fn typed(patch: &str, patch_type: &str) -> Value {
    json!({"allowed": true, "patch": STANDARD.encode(patch), "patchType": patch_type})
}

/// The row, the response of the hook, the changes of its entry, and what
/// becomes of the object.
fn odd_patches() -> Vec<(&'static str, Value, Value, Want)> {
    use Want::{Made, Refused};
    let json_patch = |patch: &str| typed(patch, "JSONPatch");
    let untyped = json!({"allowed": true, "patch": STANDARD.encode(ADD)});
    let missing = json!({"allowed": true, "patchType": "JSONPatch"});
    let mut denied = json_patch(ADD);
    denied["allowed"] = false.into();

    let closed = || json!({});
    let open = || json!({"failurePolicy": "Ignore"});
    let older = || json!({"admissionReviewVersions": ["v1beta1"]});

    let plain = || Made(json!({"a": "b"}));
    let patched = || Made(json!({"a": "b", "x": "y"}));
    let failed = |cause: &str| Refused(500, format!("{FAILED}{cause}"));
    let invalid = || failed("received invalid webhook response: ");
    let internal = || Refused(500, "Internal error occurred: ".to_owned());
    let without_explanation =
        "admission webhook \"h.x.y\" denied the request without explanation".to_owned();
    vec![
        ("no patch type", untyped.clone(), closed(), invalid()),
        ("no patch", missing.clone(), closed(), invalid()),
        ("an empty patch type", typed(ADD, ""), closed(), invalid()),
        (
            "an unknown patch type",
            typed(ADD, "Foo"),
            closed(),
            failed("unsupported patch type \"Foo\""),
        ),
        ("an unknown patch type with policy Ignore", typed(ADD, "Foo"), open(), plain()),
        ("v1beta1: an unknown patch type", typed(ADD, "Foo"), older(), patched()),
        ("v1beta1: no patch type", untyped, older(), patched()),
        ("v1beta1: no patch", missing, older(), plain()),
        ("malformed patch with policy Ignore", json_patch("[{"), open(), plain()),
        (
            "malformed patch",
            json_patch("[{"),
            closed(),
            failed("received undecodable patch in webhook response: "),
        ),
        (
            "a path that does not exist",
            json_patch(r#"[{"op": "remove", "path": "/data/none"}]"#),
            open(),
            internal(),
        ),
        (
            "a test that fails",
            json_patch(r#"[{"op": "test", "path": "/data/a", "value": "c"}]"#),
            open(),
            internal(),
        ),
        ("an empty patch", json_patch("[]"), closed(), plain()),
        ("a patch in a denial", denied, open(), Refused(400, without_explanation)),
        (
            "no object",
            json_patch(r#"[{"op": "replace", "path": "", "value": 7}]"#),
            open(),
            internal(),
        ),
        (
            "no configmap",
            json_patch(r#"[{"op": "replace", "path": "/data", "value": 7}]"#),
            open(),
            internal(),
        ),
        (
            "another kind",
            json_patch(r#"[{"op": "add", "path": "/kind", "value": "Secret"}]"#),
            open(),
            internal(),
        ),
        (
            "another version",
            json_patch(r#"[{"op": "add", "path": "/apiVersion", "value": "v2"}]"#),
            open(),
            internal(),
        ),
        ("no kind", json_patch(r#"[{"op": "remove", "path": "/kind"}]"#), open(), internal()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_that_are_odd() {
    let scene = Scene::start().await;
    for (row, response, changes, want) in odd_patches() {
        let script = match changes.get("admissionReviewVersions") {
            None => answering(response.clone()),
            // A response to a review of v1beta1 needs no apiVersion and kind.
            Some(_) => Answer::json(json!({"response": response}).to_string()).into(),
        };
        let hook = scene.hook(script);
        scene.ask(MUTATING, &hook, changes).await;
        let answer = scene.create("").await;
        match want {
            Want::Made(data) => {
                assert_eq!(answer.expect(201)["data"], data, "{row} {response}");
                scene.admin.delete(&format!("{MUTATING}/c")).await.expect(200);
                scene.admin.delete(&format!("{MAPS}/m")).await.expect(200);
            }
            Want::Refused(code, start) => {
                assert_eq!(answer.code, code, "{row} {response}: {}", answer.text());
                let text = message(answer, code);
                assert!(text.starts_with(&start), "{row} {response}: {text}");
                scene.admin.get(&format!("{MAPS}/m")).await.expect(404);
            }
        }
    }
}

/// A deleted object cannot be changed, but a hook may inspect it.
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_on_a_deletion() {
    let scene = Scene::start().await;
    scene.create("").await.expect(201);
    let hook = scene.hook(patching(&add()));
    scene.ask(MUTATING, &hook, json!({"failurePolicy": "Ignore"})).await;
    let text = message(scene.admin.delete(&format!("{MAPS}/m")).await, 500);
    let want = "Internal error occurred: admission webhook \"h.x.y\" attempted to modify the object, \
                which is not supported for this operation";
    assert_eq!(text, want);
    hook.replace(patching(&json!([]))).unwrap();
    scene.admin.delete(&format!("{MAPS}/m")).await.expect(200);
}

/// Defaults are set before the next hook is called; validation runs after the last.
#[tokio::test(flavor = "multi_thread")]
async fn defaults_and_validation_of_what_hooks_made() {
    let scene = Scene::start().await;
    let container = json!({"name": "d", "image": "i:1"});
    let append = json!([{"op": "add", "path": "/spec/containers/-", "value": container}]);
    let first = scene.hook(patching(&append));
    let second = scene.hook(allow());
    let pods = json!({"rules": [rule(&["CREATE"], "", "pods")]});
    let webhooks = [
        scene.webhook("a.x.y", &first, pods.clone()),
        scene.webhook("b.x.y", &second, pods.clone()),
    ];
    scene.configure(MUTATING, &webhooks).await;
    let made = scene.admin.post(PODS, &pod("p")).await.expect(201);
    let told = told_once(&second);
    let added = &told["object"]["spec"]["containers"][1];
    assert_eq!(added["imagePullPolicy"], "IfNotPresent", "{told}");
    assert_eq!(&made["spec"]["containers"][1], added);

    let validating = scene.hook(allow());
    scene.ask(VALIDATING, &validating, pods.clone()).await;
    let break_it = json!([{"op": "replace", "path": "/spec/containers", "value": []}]);
    let hook = scene.hook(patching(&break_it));
    scene.ask(MUTATING, &hook, pods).await;
    let status = scene.admin.post(PODS, &pod("q")).await.expect(422);
    assert_eq!(status["details"]["causes"][0]["field"], "spec.containers");
    assert_eq!(validating.n_requests(), 0, "what is invalid goes no further");
    scene.admin.get(&format!("{PODS}/q")).await.expect(404);
}

/// Hooks may patch metadata; fields that they must not change are reset or
/// refused.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_that_hooks_change() {
    let scene = Scene::start().await;
    let hook = scene.hook(allow());
    let rules = json!({"rules": [rule(&["CREATE", "UPDATE"], "", "configmaps")]});
    let change =
        |path: &str, value: Value| patching(&json!([{"op": "add", "path": path, "value": value}]));
    scene.ask(MUTATING, &hook, rules.clone()).await;
    let made = scene.create("").await.expect(201);
    let path = format!("{MAPS}/m");
    let patch = json!({"data": {"n": "1"}});
    for (at, value, code) in [
        ("/metadata/name", json!("other"), 500),
        ("/metadata/namespace", json!("other"), 500),
        ("/metadata/uid", json!("other"), 500),
        ("/metadata/creationTimestamp", json!("2001-01-01T00:00:00Z"), 200),
        ("/metadata/labels", json!({"Not A Label!": "x"}), 422),
    ] {
        hook.replace(change(at, value)).unwrap();
        let answer = scene.admin.patch(&path, "merge-patch", &patch).await;
        assert_eq!(answer.code, code, "{at}: {}", answer.text());
        let stored = scene.admin.get(&path).await.expect(200);
        for member in ["name", "namespace", "uid", "creationTimestamp"] {
            assert_eq!(stored["metadata"][member], made["metadata"][member], "{at}");
        }
    }
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "m",
        "uid": made["metadata"]["uid"]});
    hook.replace(change("/metadata/ownerReferences", json!([owner, owner]))).unwrap();
    let answer = scene.admin.post(MAPS, &map("owned")).await;
    assert_eq!(warnings(&answer).len(), 1, "{:?}", answer.headers);
    let made = answer.expect(201);
    assert_eq!(made["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
}

/// A change by a hook counts as a change by the caller, so that it cannot give the caller more than
/// they may give.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_can_not_lend_permissions() {
    let scene = Scene::start().await;
    let alice =
        scene.grant_alice(&["create", "get"], "rbac.authorization.k8s.io", &["clusterroles"]).await;
    let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    let hook = scene.hook(patching(&json!([{"op": "add", "path": "/rules/-", "value": all}])));
    let rules = json!([rule(&["CREATE"], "rbac.authorization.k8s.io", "clusterroles")]);
    scene.ask(MUTATING, &hook, json!({"rules": rules})).await;
    let own = json!({"verbs": ["get"], "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["clusterroles"]});
    let role = json!({"metadata": {"name": "more"}, "rules": [own]});
    let path = format!("{RBAC}/clusterroles");
    let text = message(alice.post(&path, &role).await, 403);
    assert!(text.contains("attempting to grant RBAC permissions not currently held"), "{text}");
    assert_eq!(hook.n_requests(), 1);
    scene.admin.delete(&format!("{MUTATING}/c")).await.expect(200);
    alice.post(&path, &role).await.expect(201);
}

/// A patch of a subresource changes only the fields of that subresource.
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_by_way_of_a_subresource() {
    let scene = Scene::start().await;
    scene.admin.post(PODS, &pod("p")).await.expect(201);
    let patch = json!([
        {"op": "add", "path": "/status/reason", "value": "hook"},
        {"op": "add", "path": "/spec/nodeName", "value": "stolen"},
    ]);
    let hook = scene.hook(answering(patch_of(&patch)));
    scene.ask(MUTATING, &hook, json!({"rules": [rule(&["UPDATE"], "", "pods/status")]})).await;
    let body = json!({"status": {"phase": "Running"}});
    let path = format!("{PODS}/p/status");
    let changed = scene.admin.patch(&path, "merge-patch", &body).await.expect(200);
    assert_eq!(changed["status"], json!({"phase": "Running", "reason": "hook"}));
    assert_eq!(changed["spec"].get("nodeName"), None);
}
