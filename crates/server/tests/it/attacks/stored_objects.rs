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

/// Administrative access shows a pod the devices of others, so the label of the namespace decides about it.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_has_admin_access_only_in_a_labelled_namespace() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let group = "/apis/resource.k8s.io/v1/namespaces";
    for (namespace, label) in [("plain", None), ("wrong", Some("yes")), ("trusted", Some("true"))] {
        let labels =
            label.map_or(json!({}), |own| json!({"resource.kubernetes.io/admin-access": own}));
        let body = json!({"metadata": {"name": namespace, "labels": labels}});
        admin.post("/api/v1/namespaces", &body).await.expect(201);
    }
    let spec = |admin_access: bool| {
        json!({"devices": {"requests": [
            {"name": "a", "exactly": {"deviceClassName": "x"}},
            {"name": "b", "exactly": {"deviceClassName": "x", "adminAccess": admin_access}}]}})
    };
    let want = "spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires the \
                `resource.kubernetes.io/admin-access: true` label on the containing namespace";
    for (namespace, admin_access, code) in
        [("plain", false, 201), ("plain", true, 422), ("wrong", true, 422), ("trusted", true, 201)]
    {
        let claim = json!({"metadata": {"name": "c"}, "spec": spec(admin_access)});
        let template = json!({"metadata": {"name": "c"}, "spec": {"spec": spec(admin_access)}});
        for (plural, object) in [("resourceclaims", claim), ("resourceclaimtemplates", template)] {
            let path = format!("{group}/{namespace}/{plural}");
            let answer = admin.post(&path, &object).await;
            assert_eq!(answer.code, code, "{path}: {}", answer.text());
            assert_eq!(code == 422, answer.text().contains(want), "{path}: {}", answer.text());
        }
    }
    // No update adds it.
    let claim = format!("{group}/plain/resourceclaims/c");
    for patch in [json!({"spec": spec(true)}), json!({"spec": {"devices": {"requests": []}}})] {
        let answer = admin.patch(&claim, "merge-patch", &patch).await;
        assert_eq!(answer.code, 422, "{}", answer.text());
    }
    let results = json!({"status": {"allocation": {"devices": {"results": [
        {"request": "a", "driver": "d", "pool": "p", "device": "x", "adminAccess": true}]}}}});
    for (namespace, code) in [("plain", 422), ("trusted", 200)] {
        let path = format!("{group}/{namespace}/resourceclaims/c/status");
        let answer = admin.patch(&path, "merge-patch", &results).await;
        assert_eq!(answer.code, code, "{path}: {}", answer.text());
    }
}
