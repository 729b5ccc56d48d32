//! Roles and bindings that cannot be decoded grant nothing, and the server reports them.

use serde_json::json;

use super::damage;
use crate::client::Client;
use crate::cluster::Cluster;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const STATUS: &str = "/portcullis/authorization/status";

async fn until(client: &Client, code: u16) {
    for _ in 0..1_000 {
        if client.get(SECRETS).await.code == code {
            return;
        }
        crate::polling::pause().await;
    }
    panic!("the answer stays {}", client.get(SECRETS).await.code);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_grant_is_not_in_force() {
    let cluster = Cluster::start().await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    let rules = json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"]}]);
    let subjects =
        json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]);
    for (at, key, role, binding) in [
        ("/namespaces/default", "default/", ("roles", "Role"), "rolebindings"),
        ("", "", ("clusterroles", "ClusterRole"), "clusterrolebindings"),
    ] {
        let (roles, kind) = role;
        let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "g"});
        for (damaged, bytes) in [
            (roles, "{garbage".to_owned()),
            (binding, "{garbage".to_owned()),
            (binding, "{\"a\":".repeat(600) + "1" + &"}".repeat(600)),
            // A sound binding under the key of another one.
            (
                binding,
                json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind":
                format!("{kind}Binding"), "metadata": {"name": "h", "namespace": "default"},
                "roleRef": role_ref, "subjects": subjects})
                .to_string(),
            ),
        ] {
            let own = json!({"metadata": {"name": "g"}, "rules": rules});
            admin.post(&format!("{RBAC}{at}/{roles}"), &own).await.expect(201);
            let own = json!({"metadata": {"name": "g"}, "roleRef": role_ref, "subjects": subjects});
            admin.post(&format!("{RBAC}{at}/{binding}"), &own).await.expect(201);
            assert_eq!(alice.get(SECRETS).await.code, 200, "{damaged}");

            let path = format!("{damaged}/{key}g");
            damage(&cluster, &path, bytes).await;
            until(&alice, 403).await;
            let status = admin.get(STATUS).await.expect(200);
            assert_eq!(status["undecodableObjects"][0]["path"], path.as_str(), "{status}");
            assert!(status["undecodableObjects"][0]["error"].is_string(), "{status}");
            let metrics = admin.get("/metrics").await.text();
            let sample = format!("portcullis_undecodable_objects{{resource=\"{damaged}\"}} 1");
            assert!(metrics.contains(&sample), "{damaged}");

            for resource in [roles, binding] {
                admin.delete(&format!("{RBAC}{at}/{resource}/g")).await.expect(200);
            }
            let status = admin.get(STATUS).await.expect(200);
            assert_eq!(status["undecodableObjects"], json!([]));
        }
    }
}

/// The same after a restart, which knows nothing of what was granted before.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_grant_does_not_come_back_with_a_restart() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let binding = json!({"metadata": {"name": "g"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    admin.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.expect(201);
    assert_eq!(cluster.alice().get(SECRETS).await.code, 200);
    damage(&cluster, "clusterrolebindings/g", "{garbage").await;
    let cluster = cluster.restart().await;
    assert_eq!(cluster.alice().get(SECRETS).await.code, 403);
    let status = cluster.admin().get(STATUS).await.expect(200);
    assert_eq!(status["undecodableObjects"][0]["path"], "clusterrolebindings/g");
    cluster.admin().delete(&format!("{RBAC}/clusterrolebindings/g")).await.expect(200);
}
