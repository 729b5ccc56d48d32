//! Permissions to set owner references, and the fields that writes to the status keep.

use std::slice::from_ref;

use serde_json::{Value, json};

use crate::client::Client;
use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

/// Grants a user these verbs on these resources in the default namespace.
async fn grant(admin: &Client, user: &str, name: &str, rules: &[(&str, &[&str])]) {
    let rule = |(resource, verbs): &(&str, &[&str])| {
        let (group, resource) = resource.split_once(':').unwrap_or(("", resource));
        json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
    };
    let rules: Vec<Value> = rules.iter().map(rule).collect();
    let role = json!({"metadata": {"name": name}, "rules": rules});
    admin.post(&format!("{RBAC}/roles"), &role).await.expect(201);
    let group = "rbac.authorization.k8s.io";
    let binding = json!({"metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}]});
    admin.post(&format!("{RBAC}/rolebindings"), &binding).await.expect(201);
}

fn map(name: &str, owners: &[Value]) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": owners}})
}

/// A reference to a configmap.
fn owner(owner: &Value, is_blocking: bool) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": is_blocking})
}

async fn refused(answer: crate::client::Answer, code: u16, want: &str) {
    let status = answer.expect(code);
    let message = status["message"].as_str().unwrap();
    assert!(message.contains(want), "{message}");
}

const CANNOT_DELETE: &str =
    "configmaps \"m\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>";
const CANNOT_BLOCK: &str = "is forbidden: cannot set blockOwnerDeletion if an ownerReference refers \
    to a resource you can't set finalizers on: , <nil>";

#[tokio::test(flavor = "multi_thread")]
async fn changing_owners_needs_delete_and_blocking_them_needs_their_finalizers() {
    let cluster = Cluster::start().await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    let verbs: &[&str] = &["get", "create", "update", "patch"];
    grant(&admin, "alice", "write", &[("configmaps", verbs)]).await;
    let own = admin.post(MAPS, &map("own", &[])).await.expect(201);
    admin.post(MAPS, &map("m", &[])).await.expect(201);
    let path = format!("{MAPS}/m");
    let set = |owners: &[Value]| json!({"metadata": {"ownerReferences": owners}});
    let free = owner(&own, false);
    let blocking = owner(&own, true);

    let answer = alice.patch(&path, "merge-patch", &set(from_ref(&free))).await;
    refused(answer, 403, CANNOT_DELETE).await;
    let answer = alice.put(&path, &map("m", from_ref(&free))).await;
    refused(answer, 403, CANNOT_DELETE).await;
    alice.patch(&path, "merge-patch", &json!({"data": {"a": "b"}})).await.expect(200);
    alice.post(MAPS, &map("new", from_ref(&free))).await.expect(201);
    refused(alice.post(MAPS, &map("n", from_ref(&blocking))).await, 403, CANNOT_BLOCK).await;
    let odd = json!({"apiVersion": "x.y/v1", "kind": "Odd", "name": "o", "uid": "1",
        "blockOwnerDeletion": true});
    let unknown = "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for \
                   APIVersion x.y/v1 Kind Odd: no matches for kind \"Odd\" in version \"x.y/v1\"";
    refused(alice.post(MAPS, &map("n", &[odd])).await, 403, unknown).await;

    grant(&admin, "alice", "delete", &[("configmaps", &["delete"])]).await;
    alice.patch(&path, "merge-patch", &set(from_ref(&free))).await.expect(200);
    let answer = alice.patch(&path, "merge-patch", &set(from_ref(&blocking))).await;
    refused(answer, 403, CANNOT_BLOCK).await;
    admin.patch(&path, "merge-patch", &set(from_ref(&blocking))).await.expect(200);
    // The reference blocks already, and then no longer blocks.
    let second = json!({"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "2"});
    let both = [blocking.clone(), second];
    alice.patch(&path, "merge-patch", &set(&both)).await.expect(200);
    alice.patch(&path, "merge-patch", &set(&[free])).await.expect(200);
    grant(&admin, "alice", "block", &[("configmaps/finalizers", &["update"])]).await;
    alice.patch(&path, "merge-patch", &set(&[blocking])).await.expect(200);
}

/// The number of authorization checks of one request is limited.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_blocks_so_many_owners() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let owners = |n_owners: usize| -> Vec<Value> {
        let owner = |idx: usize| {
            json!({"apiVersion": "v1", "kind": "Secret", "name": format!("s{idx}"),
                "uid": format!("u{idx}"), "blockOwnerDeletion": true})
        };
        (0..n_owners).map(owner).collect()
    };
    admin.post(&format!("{MAPS}?dryRun=All"), &map("m", &owners(64))).await.expect(201);
    let answer = admin.post(MAPS, &map("m", &owners(65))).await;
    refused(answer, 422, "metadata.ownerReferences: Too many: 65: must have at most 64 items")
        .await;
}

/// A user who may only write the status of objects cannot make the garbage collector delete them.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_write_gives_no_object_to_owners_that_are_gone() {
    let cluster = Cluster::start().await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    let verbs: &[&str] = &["get", "update", "patch", "delete"];
    let parts = ["pods/status", "replicationcontrollers/status", "apps:deployments/status"];
    let rules: Vec<(&str, &[&str])> = parts.iter().map(|part| (*part, verbs)).collect();
    grant(&admin, "alice", "status", &rules).await;
    let containers = json!([{"name": "c", "image": "i"}]);
    let pod = json!({"metadata": {"name": "o"}, "spec": {"containers": containers}});
    admin.post(PODS, &pod).await.expect(201);
    let controllers = "/api/v1/namespaces/default/replicationcontrollers";
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}});
    let spec = json!({"replicas": 1, "selector": {"a": "b"}, "template": template});
    let controller = json!({"metadata": {"name": "o"}, "spec": spec});
    admin.post(controllers, &controller).await.expect(201);
    let spec =
        json!({"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    let deployment = json!({"metadata": {"name": "o", "labels": {"x": "1"}}, "spec": spec});
    admin.post(deployments, &deployment).await.expect(201);

    let gone =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "no-such-uid"});
    let patch = json!({"metadata": {"ownerReferences": [gone], "labels": {"x": "2"}}});
    let path = format!("{PODS}/o/status");
    let patched = alice.patch(&path, "merge-patch", &patch).await.expect(200);
    assert_eq!(patched["metadata"].get("ownerReferences"), None);
    assert_eq!(patched["metadata"]["labels"]["x"], "2");
    for path in [controllers, deployments] {
        // The permission to delete the status is none to delete the object.
        let answer = alice.patch(&format!("{path}/o/status"), "merge-patch", &patch).await;
        refused(answer, 403, "cannot set an ownerRef on a resource you can't delete").await;
        admin.get(&format!("{path}/o")).await.expect(200);
    }
    let patch = json!({"metadata": {"labels": {"x": "2"}, "annotations": {"x": "2"}}});
    let path = format!("{deployments}/o/status");
    let patched = alice.patch(&path, "merge-patch", &patch).await.expect(200);
    assert_eq!(patched["metadata"]["labels"]["x"], "1", "labels are not part of its status");
    assert_eq!(patched["metadata"]["annotations"]["x"], "2");
}
