//! Graceful deletion of pods.

use http::Method;
use serde_json::json;

use crate::cluster::Cluster;

/// Graceful deletion is used only if it is enabled, and only for pods on a node.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_on_a_node_stays_until_it_is_deleted_without_grace() {
    let cluster =
        Cluster::start_with(|options, _| options.api_settings.has_pod_grace_periods = true).await;
    let admin = cluster.admin();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, node: &str| {
        json!({"metadata": {"name": name}, "spec": {"nodeName": node,
            "containers": [{"name": "c", "image": "i"}]}})
    };
    admin.post(pods, &pod("placed", "n1")).await.expect(201);
    let begun = admin.delete(&format!("{pods}/placed")).await.expect(200);
    assert_eq!(begun["metadata"]["deletionGracePeriodSeconds"], 30);
    let again = admin.delete(&format!("{pods}/placed")).await.expect(200);
    assert_eq!(again, begun);
    let sooner = json!({"gracePeriodSeconds": 5}).to_string();
    let path = format!("{pods}/placed");
    let sooner = admin.send(Method::DELETE, &path, &[], sooner).await.expect(200);
    assert_eq!(sooner["metadata"]["deletionGracePeriodSeconds"], 5);
    admin.get(&path).await.expect(200);
    let now = json!({"gracePeriodSeconds": 0}).to_string();
    admin.send(Method::DELETE, &path, &[], now).await.expect(200);
    admin.get(&path).await.expect(404);
    admin.post(pods, &pod("unplaced", "")).await.expect(201);
    admin.delete(&format!("{pods}/unplaced")).await.expect(200);
    admin.get(&format!("{pods}/unplaced")).await.expect(404);
}
