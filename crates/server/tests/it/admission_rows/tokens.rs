//! A request for a token is complete before validating hooks are asked, and no token is issued that
//! they have not seen.

use serde_json::{Value, json};

use super::{Scene, message, told, told_once};
use crate::admission_hooks::{MUTATING, VALIDATING, allow, deny, patching, rule};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const TOKEN: &str = "/api/v1/namespaces/default/serviceaccounts/o/token";
const ISSUER: &str = "https://kubernetes.default.svc";

fn rules() -> Value {
    json!([rule(&["CREATE"], "", "serviceaccounts/token")])
}

/// The match condition of a validating hook, the body of the request, and how often the hook is
/// called.
#[tokio::test(flavor = "multi_thread")]
async fn policies_about_tokens_hold_for_what_is_left_open() {
    let scene = Scene::start().await;
    scene.admin.post(ACCOUNTS, &json!({"metadata": {"name": "o"}})).await.expect(201);
    let open = json!({"spec": {}});
    let vault = json!({"spec": {"audiences": ["vault"], "expirationSeconds": 600}});
    let for_api = format!("object.spec.audiences.exists(a, a == '{ISSUER}')");
    for (expression, posted, n_calls) in [
        (for_api.as_str(), &open, 1),
        (for_api.as_str(), &json!({}), 1),
        (for_api.as_str(), &vault, 0),
        ("object.spec.expirationSeconds > 600", &open, 1),
        ("object.spec.expirationSeconds > 600", &vault, 0),
        ("object.metadata.name == 'o' && object.metadata.namespace == 'default'", &open, 1),
        ("has(object.metadata.uid) && has(object.metadata.creationTimestamp)", &open, 1),
    ] {
        let hook = scene.hook(deny("not for you"));
        let conditions = json!([{"name": "c", "expression": expression}]);
        scene
            .ask(VALIDATING, &hook, json!({"rules": rules(), "matchConditions": conditions}))
            .await;
        let answer = scene.admin.post(TOKEN, posted).await;
        let want = if n_calls == 1 { 403 } else { 201 };
        assert_eq!(answer.code, want, "{expression} {posted}: {}", answer.text());
        assert_eq!(told(&hook).len(), n_calls, "{expression} {posted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_see_the_token_that_will_be_issued() {
    let scene = Scene::start().await;
    let account = scene.admin.post(ACCOUNTS, &json!({"metadata": {"name": "o"}})).await.expect(201);
    let audience = json!([{"op": "add", "path": "/spec/audiences", "value": ["vault"]}]);
    let (mutating, validating) = (scene.hook(patching(&audience)), scene.hook(allow()));
    scene.ask(MUTATING, &mutating, json!({"rules": rules()})).await;
    scene.ask(VALIDATING, &validating, json!({"rules": rules()})).await;
    let posted = json!({"spec": {}, "status": {"token": "forged"}});
    let mut issued = scene.admin.post(TOKEN, &posted).await.expect(201);
    let first = told_once(&mutating);
    assert_eq!(first["object"]["spec"]["expirationSeconds"], 3600);
    assert_eq!((&first["name"], &first["subResource"]), (&json!("o"), &json!("token")));
    assert_eq!(first["object"]["metadata"], json!({"namespace": "default"}));
    let mut second = told_once(&validating);
    let no_token = json!({"token": "", "expirationTimestamp": null});
    let status = second["object"].as_object_mut().expect("an object").shift_remove("status");
    assert_eq!(status, Some(no_token));
    assert_eq!(second["object"]["spec"]["audiences"], json!(["vault"]));
    assert_eq!(second["object"]["metadata"]["uid"], account["metadata"]["uid"]);
    // The response differs from the reviewed object only in the token.
    issued.as_object_mut().expect("an object").shift_remove("status");
    assert_eq!(second["object"], issued);

    // A hook that reads the status of a request without one finds an empty one.
    scene.admin.post(TOKEN, &json!({})).await.expect(201);
    assert_eq!(told_once(&mutating)["object"]["status"]["token"], "");
    assert_eq!(told_once(&validating)["object"]["metadata"]["namespace"], "default");

    // An invalid object is refused before hooks are called.
    let short = json!({"spec": {"expirationSeconds": 10}});
    scene.admin.post(TOKEN, &short).await.expect(422);
    scene.admin.post(&TOKEN.replace("/o/", "/missing/"), &posted).await.expect(404);
    assert_eq!(told(&validating).len(), 0);
    // A hook cannot make it a request for another account.
    for (path, value, code) in
        [("/metadata/name", "other", 422), ("/metadata/uid", "other", 500), ("/kind", "Pod", 500)]
    {
        let patch = json!([{"op": "add", "path": path, "value": value}]);
        mutating.replace(patching(&patch)).unwrap();
        message(scene.admin.post(TOKEN, &posted).await, code);
        assert_eq!(told(&validating).len(), 0, "{path}");
    }
}
