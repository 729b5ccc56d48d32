//! Accepted objects can be decoded and have no fields that their author may not set.

use serde_json::{Value, json};

use crate::cluster::Cluster;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// The status of an object says nothing about its owners, which decide when it goes.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_an_object_names_no_owner() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let pod = json!({"metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    admin.post(PODS, &pod).await.expect(201);
    let gone =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "no-such-uid"});
    let patch = json!({"metadata": {"ownerReferences": [gone]}, "status": {"phase": "Running"}});
    let path = format!("{PODS}/p/status");
    let patched = admin.patch(&path, "merge-patch", &patch).await.expect(200);
    assert_eq!(patched["status"]["phase"], "Running");
    assert_eq!(patched["metadata"].get("ownerReferences").unwrap_or(&Value::Null), &Value::Null);
}
