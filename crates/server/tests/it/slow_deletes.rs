//! Slow admission hooks of one namespace delay neither the deletion of other namespaces nor the
//! garbage collector.

use std::time::{Duration, Instant};

use fake_http::Script;
use serde_json::{Value, json};

use crate::admission_hooks::{
    HookAuthority, VALIDATING, answer, register_with, webhook_configuration,
};
use crate::client::Client;
use crate::cluster::Cluster;

const NAMESPACES: &str = "/api/v1/namespaces";
const N_SLOW: usize = 4;
const HOOK_DELAY: Duration = Duration::from_secs(4);

fn maps(namespace: &str) -> String {
    format!("{NAMESPACES}/{namespace}/configmaps")
}

async fn make_namespace(client: &Client, name: &str) {
    client.post(NAMESPACES, &json!({"metadata": {"name": name}})).await.expect(201);
}

/// Registers a hook that takes its time with each deletion in the namespace `slow`.
async fn register_slow_hook(client: &Client, authority: &HookAuthority, hook: &fake_http::Peer) {
    let rules = json!([{"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["*"],
        "resources": ["configmaps"]}]);
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": "slow"}});
    let fields = json!({"rules": rules, "namespaceSelector": selector, "timeoutSeconds": 15});
    let webhook = authority.webhook("slow.x.y", hook, fields);
    register_with(client, VALIDATING, &webhook_configuration(VALIDATING, "slow", &[webhook])).await;
}

async fn wait_until_gone(client: &Client, path: &str) -> Duration {
    let begun = Instant::now();
    while client.get(path).await.code != 404 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{path} stays");
        crate::polling::pause().await;
    }
    begun.elapsed()
}

fn orphan(name: &str) -> Value {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "none"});
    json!({"metadata": {"name": name, "ownerReferences": [owner]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_hooks_of_one_namespace_hold_up_no_other() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let authority = HookAuthority::new();
    let hook = authority
        .hook(Script::rule(|request| answer(request, &json!({"allowed": true})).delay(HOOK_DELAY)));
    register_slow_hook(&admin, &authority, &hook).await;
    for name in ["slow", "quick", "other"] {
        make_namespace(&admin, name).await;
    }
    // The collector deletes objects whose owners are gone.
    for n in 0..N_SLOW {
        admin.post(&maps("slow"), &orphan(&format!("o{n}"))).await.expect(201);
    }
    admin.post(&maps("other"), &orphan("o")).await.expect(201);
    let took = wait_until_gone(&admin, &format!("{}/o", maps("other"))).await;
    assert!(took < HOOK_DELAY, "the collector took {took:?}");
    // Namespaces end, each at its own pace.
    for n in 0..N_SLOW {
        let map = json!({"metadata": {"name": format!("m{n}")}});
        admin.post(&maps("slow"), &map).await.expect(201);
    }
    admin.delete(&format!("{NAMESPACES}/slow")).await.expect(200);
    admin.delete(&format!("{NAMESPACES}/quick")).await.expect(200);
    let took = wait_until_gone(&admin, &format!("{NAMESPACES}/quick")).await;
    assert!(took < HOOK_DELAY, "the namespace took {took:?}");
    admin.get(&format!("{NAMESPACES}/slow")).await.expect(200);
}
