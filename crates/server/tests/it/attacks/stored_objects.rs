//! What is accepted stays readable, and says nothing that its author may not decide.

use http::Method;
use serde_json::{Value, json};

use crate::cluster::Cluster;

const PODS: &str = "/api/v1/namespaces/default/pods";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

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

/// The user who asks for a certificate is written by the server, whatever the request says of itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_request_names_who_asks() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let forged = json!({"username": "system:node:n9", "uid": "z",
        "groups": ["system:masters"], "extra": {"a": ["b"]}});
    let mut request = json!({"metadata": {"name": "mine"}, "spec": {"request": "eA==",
        "signerName": "example.com/signer", "usages": ["client auth"]}});
    for (key, value) in forged.as_object().expect("members") {
        request["spec"][key] = value.clone();
    }
    let headers = [("impersonate-user", "alice"), ("impersonate-group", "system:masters")];
    let sent = admin.send(Method::POST, REQUESTS, &headers, request.to_string()).await;
    let spec = sent.expect(201)["spec"].clone();
    let groups = json!(["system:masters", "system:authenticated"]);
    assert_eq!((&spec["username"], &spec["groups"]), (&json!("alice"), &groups));
    assert_eq!((spec.get("uid"), spec.get("extra")), (None, None));
    let (path, patch) = (format!("{REQUESTS}/mine"), json!({"spec": forged}));
    let patched = admin.patch(&path, "merge-patch", &patch).await;
    assert_eq!(patched.expect(200)["spec"], spec);
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
