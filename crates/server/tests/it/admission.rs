//! Tests of dynamic admission through the API.

use serde_json::{Value, json};

use crate::admission_hooks::{
    HookAuthority, MUTATING, VALIDATING, allow, asked, deny, patching, register,
};
use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_change_and_judge_what_is_stored() {
    let authority = HookAuthority::new();
    let add = json!([{"op": "add", "path": "/data/added", "value": "by a hook"}]);
    let mutating = authority.hook(patching(&add));
    let validating = authority.hook(allow());
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let create = json!({"rules": [crate::admission_hooks::rule(&["CREATE"], "", "configmaps")]});
    let webhooks = [authority.webhook("m.x.y", &mutating, create)];
    register(&cluster, MUTATING, "m", &webhooks).await;
    let webhooks = [authority.webhook("v.x.y", &validating, json!({}))];
    register(&cluster, VALIDATING, "v", &webhooks).await;

    let answer = admin.post(MAPS, &map("a")).await;
    let revision: u64 =
        answer.headers["portcullis-admission-revision"].to_str().unwrap().parse().unwrap();
    let made = answer.expect(201);
    assert_eq!(made["data"], json!({"a": "b", "added": "by a hook"}));
    assert_eq!(admin.get(&format!("{MAPS}/a")).await.expect(200), made);
    assert!(revision > 0);
    let told = asked(&validating.take_requests()[0]);
    assert_eq!(told["operation"], "CREATE");
    assert_eq!(told["name"], "a");
    assert_eq!(told["object"]["data"]["added"], "by a hook");
    assert_eq!(told["oldObject"], Value::Null);
    assert_eq!(told["options"]["kind"], "CreateOptions");
    assert_eq!(told["userInfo"]["username"], "admin");

    let generated = json!({"metadata": {"generateName": "g-"}, "data": {}});
    let made = admin.post(MAPS, &generated).await.expect(201);
    assert_eq!(asked(&mutating.take_requests()[1])["name"], Value::Null);
    assert_eq!(asked(&validating.take_requests()[0])["name"], made["metadata"]["name"]);

    let merge = json!({"data": {"a": "c"}});
    let changed = admin.patch(&format!("{MAPS}/a"), "merge-patch", &merge).await.expect(200);
    assert_eq!(changed["data"]["a"], "c");
    let told = asked(&validating.take_requests()[0]);
    assert_eq!(told["operation"], "UPDATE");
    assert_eq!(told["options"]["kind"], "UpdateOptions");
    assert_eq!(told["oldObject"]["data"]["a"], "b");
    assert_eq!(
        told["oldObject"]["metadata"]["resourceVersion"].as_str().map(str::is_empty),
        Some(false)
    );

    admin.delete(&format!("{MAPS}/a")).await.expect(200);
    let told = asked(&validating.take_requests()[0]);
    assert_eq!((&told["operation"], &told["object"]), (&json!("DELETE"), &Value::Null));
    assert_eq!(told["oldObject"]["data"]["a"], "c");
    assert_eq!(told["options"]["kind"], "DeleteOptions");

    admin.post(MAPS, &map("b")).await.expect(201);
    validating.take_requests();
    admin.delete(MAPS).await.expect(200);
    let told: Vec<Value> = validating.take_requests().iter().map(asked).collect();
    // Also the certificates that every namespace gets, if there are some.
    assert!(told.len() >= 2);
    for told in told {
        assert_eq!(told["name"], Value::Null);
        assert_eq!(told["operation"], "DELETE");
        assert!(told["oldObject"]["metadata"]["name"].is_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_holds_until_the_hook_is_gone() {
    let authority = HookAuthority::new();
    let hook = authority.hook(deny("no"));
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let everything = json!({"rules": [crate::admission_hooks::rule(&["*"], "*", "*/*")]});
    register(&cluster, VALIDATING, "v", &[authority.webhook("v.x.y", &hook, everything)]).await;
    let refused = admin.post(MAPS, &map("a")).await.expect(403);
    assert_eq!(refused["message"], "admission webhook \"v.x.y\" denied the request: no");
    admin.get(&format!("{MAPS}/a")).await.expect(404);
    admin.delete(&format!("{VALIDATING}/v")).await.expect(200);
    admin.post(MAPS, &map("a")).await.expect(201);
}

/// The response has the trace of the hooks for users who may see it.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_ask_is_told_what_hooks_did() {
    let authority = HookAuthority::new();
    let hook = authority.hook(allow());
    let cluster = Cluster::start().await;
    let condition = json!([{"name": "never", "expression": "object.metadata.name == 'x'"}]);
    let webhooks = [
        authority.webhook("v.x.y", &hook, json!({})),
        authority.webhook("w.x.y", &hook, json!({"matchConditions": condition})),
    ];
    register(&cluster, VALIDATING, "v", &webhooks).await;
    let headers = [("portcullis-admission-trace", "true")];
    let answer =
        cluster.admin().send(http::Method::POST, MAPS, &headers, map("a").to_string()).await;
    let trace = answer.headers["portcullis-admission-trace"].to_str().unwrap().to_owned();
    let trace: Value = serde_json::from_str(&trace).unwrap();
    let short = |idx: usize| (trace[idx]["webhook"].clone(), trace[idx]["outcome"].clone());
    let told = [short(0), short(1)];
    assert!(told.contains(&(json!("v.x.y"), json!("allowed"))), "{trace}");
    assert!(told.contains(&(json!("w.x.y"), json!("skipped"))), "{trace}");
    let status = cluster.admin().get("/portcullis/admission/status").await.expect(200);
    assert_eq!(status["state"], "ready");
    assert_eq!(status["mode"], "barrier");
    assert_eq!(status["servers"].as_array().unwrap().len(), 1);
    cluster.alice().get("/portcullis/admission/status").await.expect(403);
}
