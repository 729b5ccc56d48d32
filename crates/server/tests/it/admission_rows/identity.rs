//! A patch of a hook that makes another object of the one that was authorized refuses the request,
//! whatever the failure policy, and nothing is stored.

use serde_json::{Value, json};

use super::{MAPS, NAMESPACES, Scene, map, message, told, told_once};
use crate::admission_hooks::{MUTATING, VALIDATING, allow, patching, rule};

fn add(path: &str, value: Value) -> Value {
    json!([{"op": "add", "path": path, "value": value}])
}

fn remove(path: &str) -> Value {
    json!([{"op": "remove", "path": path}])
}

/// The changed member, the patch, and whether a new object has that member.
fn changes() -> Vec<(&'static str, Value, bool)> {
    vec![
        ("kind", add("/kind", json!("Secret")), true),
        ("apiVersion", add("/apiVersion", json!("v2")), true),
        ("metadata.name", add("/metadata/name", json!("other")), true),
        ("metadata.name", remove("/metadata/name"), true),
        ("metadata.namespace", add("/metadata/namespace", json!("kube-system")), true),
        ("metadata.namespace", remove("/metadata/namespace"), true),
        ("metadata.uid", add("/metadata/uid", json!("other")), true),
        ("metadata.uid", remove("/metadata/uid"), false),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_hook_makes_another_object() {
    let scene = Scene::start().await;
    let stored = scene.admin.post(MAPS, &map("stored")).await.expect(201);
    let path = format!("{MAPS}/stored");
    let hook = scene.hook(allow());
    for policy in ["Fail", "Ignore"] {
        let rules = json!([rule(&["CREATE", "UPDATE"], "", "configmaps")]);
        scene.ask(MUTATING, &hook, json!({"rules": rules, "failurePolicy": policy})).await;
        for (field, patch, is_for_new) in changes() {
            hook.replace(patching(&patch)).unwrap();
            let start = format!(
                "Internal error occurred: admission webhook \"h.x.y\" attempted to change {field} \
                 of the object from "
            );
            if is_for_new {
                let text = message(scene.create("").await, 500);
                assert!(text.starts_with(&start), "{policy} {patch}: {text}");
                for namespace in ["default", "kube-system"] {
                    for name in ["m", "other"] {
                        let path = format!("{NAMESPACES}/{namespace}/configmaps/{name}");
                        scene.admin.get(&path).await.expect(404);
                    }
                }
            }
            let label = json!({"metadata": {"labels": {"x": "y"}}});
            let text = message(scene.admin.patch(&path, "merge-patch", &label).await, 500);
            assert!(text.starts_with(&start), "{policy} {patch}: {text}");
            let text = message(scene.admin.put(&path, &map("stored")).await, 500);
            assert!(text.starts_with(&start), "{policy} {patch}: {text}");
            assert_eq!(scene.admin.get(&path).await.expect(200), stored, "{policy} {patch}");
        }
    }
}

/// An object of the whole cluster gets no namespace from a hook.
#[tokio::test(flavor = "multi_thread")]
async fn no_hook_moves_an_object_into_a_namespace() {
    let scene = Scene::start().await;
    let hook = scene.hook(patching(&add("/metadata/namespace", json!("default"))));
    let rules = json!([rule(&["CREATE"], "", "namespaces")]);
    scene.ask(MUTATING, &hook, json!({"rules": rules, "failurePolicy": "Ignore"})).await;
    let answer = scene.admin.post(NAMESPACES, &json!({"metadata": {"name": "o"}})).await;
    let text = message(answer, 500);
    assert!(text.contains("attempted to change metadata.namespace of the object"), "{text}");
    scene.admin.get(&format!("{NAMESPACES}/o")).await.expect(404);
}

/// A name that is still to be generated may come from a hook. The mutating hooks are told the name that
/// the request had, in each round; the validating ones that of the object.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_names_an_object_that_has_no_name() {
    let scene = Scene::start().await;
    let naming = scene.hook(patching(&add("/metadata/name", json!("given"))));
    let renaming = scene.hook(allow());
    let validating = scene.hook(allow());
    let rules = json!([rule(&["CREATE"], "", "configmaps")]);
    let again = json!({"rules": rules, "reinvocationPolicy": "IfNeeded"});
    let webhooks =
        [scene.webhook("a.x.y", &renaming, again.clone()), scene.webhook("b.x.y", &naming, again)];
    scene.configure(MUTATING, &webhooks).await;
    scene.ask(VALIDATING, &validating, json!({"rules": rules})).await;
    let body = json!({"metadata": {"generateName": "g-"}, "data": {}});
    let made = scene.admin.post(MAPS, &body).await.expect(201);
    assert_eq!(made["metadata"]["name"], "given");
    let seen: Vec<(Option<Value>, Value)> = told(&renaming)
        .iter()
        .map(|told| (told.get("name").cloned(), told["object"]["metadata"]["name"].clone()))
        .collect();
    assert_eq!(seen, [(None, Value::Null), (None, json!("given"))], "each round");
    assert_eq!(told_once(&validating)["name"], "given");

    // After one hook has set the name, another hook cannot change it.
    renaming.replace(patching(&add("/metadata/name", json!("first")))).unwrap();
    let text = message(scene.admin.post(MAPS, &body).await, 500);
    let want = "Internal error occurred: admission webhook \"b.x.y\" attempted to change \
                metadata.name of the object from \"first\" to \"given\", which is not supported";
    assert_eq!(text, want);
    assert_eq!(told(&validating), Vec::<Value>::new());
    scene.admin.get(&format!("{MAPS}/first")).await.expect(404);
}
