//! Two servers on one etcd are one API.

use http::Method;
use serde_json::{Value, json};

use crate::server::{Place, Server, directory};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A write through one server reaches the watches of the other at the same revision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_writes_the_other_tells() {
    let place = Place::etcd();
    let (first, second) = (directory(), directory());
    let (a, b) = (Server::start(first.path(), &place), Server::start(second.path(), &place));
    let (a, b) = (a.client(), b.client());
    let (code, list) = b.ask(Method::GET, CONFIG_MAPS, &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let start = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch =
        b.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={start}")).await.unwrap();

    let body = json!({"metadata": {"name": "shared"}, "data": {"by": "a"}});
    let (code, made) = a.ask(Method::POST, CONFIG_MAPS, &body).await;
    assert_eq!(code, 201, "{made}");
    let told = watch.next().await.unwrap();
    assert_eq!((&told["type"], &told["object"]), (&json!("ADDED"), &made));
    let (code, refused) = b.ask(Method::POST, CONFIG_MAPS, &body).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("AlreadyExists")));

    // Both have read the same revision; the one that comes second must read again.
    let path = format!("{CONFIG_MAPS}/shared");
    let by = |name: &str| {
        let mut changed = made.clone();
        changed["data"]["by"] = json!(name);
        changed
    };
    let (code, changed) = b.ask(Method::PUT, &path, &by("b")).await;
    assert_eq!(code, 200, "{changed}");
    let (code, refused) = a.ask(Method::PUT, &path, &by("a again")).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")));
    let (code, read) = a.ask(Method::GET, &path, &Value::Null).await;
    assert_eq!((code, &read), (200, &changed));
    let told = watch.next().await.unwrap();
    assert_eq!((&told["type"], &told["object"]), (&json!("MODIFIED"), &changed));

    let (code, _) = a.ask(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(code, 200);
    let told = watch.next().await.unwrap();
    assert_eq!(told["type"], "DELETED");
    let (code, _) = b.ask(Method::GET, &path, &Value::Null).await;
    assert_eq!(code, 404);
}

/// Rights that are given through one server soon hold on the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_given_through_one_hold_on_the_other() {
    let place = Place::etcd();
    let (first, second) = (directory(), directory());
    let (a, b) = (Server::start(first.path(), &place), Server::start(second.path(), &place));
    let (a, b) = (a.client(), b.client());
    let review = json!({"spec": {"user": "alice", "resourceAttributes":
        {"verb": "list", "resource": "configmaps", "namespace": "default"}}});
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let (code, before) = b.ask(Method::POST, reviews, &review).await;
    assert_eq!((code, &before["status"]["allowed"]), (201, &json!(false)));
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": "view"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}],
    });
    // The other server has it when its own watch has told it to its clients.
    let (code, list) = b.ask(Method::GET, bindings, &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let start = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch =
        b.watch(&format!("{bindings}?watch=true&resourceVersion={start}")).await.unwrap();
    let (code, made) = a.ask(Method::POST, bindings, &binding).await;
    assert_eq!(code, 201, "{made}");
    watch.next().await.unwrap();
    let mut allowed = false;
    for _ in 0..100 {
        let (code, after) = b.ask(Method::POST, reviews, &review).await;
        assert_eq!(code, 201, "{after}");
        allowed = after["status"]["allowed"] == json!(true);
        if allowed {
            break;
        }
        // This waits for a real process: the second server applies the binding.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(allowed, "the other server never hears of the binding");
}
