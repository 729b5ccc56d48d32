//! The first commands of a new user.

use serde_json::json;

use crate::cluster::Cluster;

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_created_read_listed_watched_and_deleted() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let maps = "/api/v1/namespaces/default/configmaps";
    let made = admin.post(maps, &json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;
    let made = made.expect(201);
    assert_eq!(made["kind"], "ConfigMap");
    assert!(made["metadata"]["uid"].is_string());
    let mut events = admin.watch(&format!("{maps}?watch=1&resourceVersion=0")).await;
    assert_eq!(events.next().await.unwrap()["type"], "ADDED");
    let read = admin.get(&format!("{maps}/a")).await.expect(200);
    assert_eq!(read, made);
    let list = admin.get(maps).await.expect(200);
    assert_eq!(list["items"][0]["data"], json!({"k": "v"}));
    let gone = admin.delete(&format!("{maps}/a")).await.expect(200);
    assert_eq!(gone["status"], "Success");
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "DELETED");
    assert_ne!(event["object"]["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    admin.get(&format!("{maps}/a")).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_holds_for_the_next_request() {
    let cluster = Cluster::start().await;
    let (admin, alice) = (cluster.certified_admin(), cluster.alice());
    let group = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let maps = "/api/v1/namespaces/default/configmaps";
    let refused = alice.get(maps).await.expect(403);
    assert_eq!(
        refused["message"],
        "configmaps is forbidden: User \"alice\" cannot list resource \"configmaps\" in API group \
         \"\" in the namespace \"default\""
    );
    let role = json!({"metadata": {"name": "reader"}, "rules": [
        {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}]});
    admin.post(&format!("{group}/roles"), &role).await.expect(201);
    for round in 0..20 {
        let name = format!("b{round}");
        let binding = json!({"metadata": {"name": name},
            "subjects": [{"kind": "User", "name": "alice"}],
            "roleRef": {"kind": "Role", "name": "reader"}});
        admin.post(&format!("{group}/rolebindings"), &binding).await.expect(201);
        alice.get(maps).await.expect(200);
        admin.delete(&format!("{group}/rolebindings/{name}")).await.expect(200);
        alice.get(maps).await.expect(403);
    }
}
