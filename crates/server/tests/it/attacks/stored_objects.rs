//! What is accepted stays readable, and says nothing that its author may not decide.

use serde_json::{Value, json};

use crate::cluster::Cluster;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A14: objects of any depth that is accepted can be read, changed, listed and deleted, also with their
/// namespace and by selectors.
#[tokio::test(flavor = "multi_thread")]
async fn a14_deep_objects_can_be_read_and_deleted() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for depth in [100, 130, 400] {
        let mut deep = json!("x");
        for _ in 0..depth {
            deep = json!({ "a": deep });
        }
        let name = format!("deep-{depth}");
        let pod = json!({"metadata": {"name": name, "labels": {"deep": "yes"}},
            "spec": {"containers": [{"name": "c", "image": "i"}], "x": deep}});
        let created = admin.post(&format!("{PODS}?fieldValidation=Ignore"), &pod).await;
        assert_eq!(created.code, 201, "{depth}");
        let path = format!("{PODS}/{name}");
        assert_eq!(admin.get(&path).await.code, 200, "{depth}");
        let patch = json!({"metadata": {"annotations": {"patched": "yes"}}});
        assert_eq!(admin.patch(&path, "merge-patch", &patch).await.code, 200, "{depth}");
        let listed = admin.get(&format!("{PODS}?labelSelector=deep%3Dyes")).await;
        assert!(listed.code == 200 && listed.text().contains(&name), "{depth}");
        assert_eq!(admin.delete(&path).await.code, 200, "{depth}");
        admin.get(&path).await.expect(404);
    }
}

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
