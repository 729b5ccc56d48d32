//! Objects that are reached through the path of another scope or another resource.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use super::{DEFINITIONS, RBAC, define, grant_alice};
use crate::client::Client;
use crate::cluster::Cluster;

/// L8: a namespace administrator asks for objects of the cluster below the path of the namespace, where
/// roles of the namespace would grant it.
#[tokio::test(flavor = "multi_thread")]
async fn objects_of_the_cluster_are_in_no_namespace() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post("/api/v1/namespaces", &json!({"metadata": {"name": "t1"}})).await.expect(201);
    define(&admin, "globals", "Global", "Cluster").await;
    let global =
        json!({"apiVersion": "example.com/v1", "kind": "Global", "metadata": {"name": "g"}});
    admin.post("/apis/example.com/v1/globals", &global).await.expect(201);
    admin.post("/api/v1/nodes", &json!({"metadata": {"name": "n"}})).await.expect(201);
    let rules = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    let alice = grant_alice(&cluster, "t1", rules).await;
    for (root, resource, name) in [
        ("/apis/example.com/v1", "globals", "g"),
        ("/api/v1", "nodes", "n"),
        ("/api/v1", "namespaces", "default"),
        (RBAC, "clusterroles", "cluster-admin"),
        (RBAC, "clusterrolebindings", "cluster-admin"),
        (
            DEFINITIONS.trim_end_matches("/customresourcedefinitions"),
            "customresourcedefinitions",
            "globals.example.com",
        ),
        ("/apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", "x"),
        ("/apis/authorization.k8s.io/v1", "subjectaccessreviews", "x"),
        ("/apis/authentication.k8s.io/v1", "tokenreviews", "x"),
    ] {
        let real = format!("{root}/{resource}/{name}");
        let before = admin.get(&real).await.bytes;
        for path in [
            format!("{root}/namespaces/t1/{resource}"),
            format!("{root}/namespaces/t1/{resource}/{name}"),
            format!("{root}/namespaces/t1/{resource}/{name}/status"),
            format!("{root}/watch/namespaces/t1/{resource}"),
            format!("{root}/watch/namespaces/t1/{resource}/{name}"),
        ] {
            for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                let body =
                    json!({"metadata": {"name": name, "labels": {"evil": "yes"}}}).to_string();
                let headers = [("content-type", "application/merge-patch+json")];
                let headers = if method == Method::PATCH { &headers[..] } else { &[] };
                let answer = alice.send(method.clone(), &path, headers, body).await;
                assert_eq!(answer.code, 404, "{method} {path}: {}", answer.text());
            }
        }
        assert_eq!(alice.get(&real).await.code, 403, "{real}");
        assert_eq!(admin.get(&real).await.bytes, before, "{real}");
    }
}

/// The names of the objects in a list.
fn names(list: &Value) -> BTreeSet<&str> {
    let items = list["items"].as_array().expect("items");
    items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

async fn make(admin: &Client, namespace: &str, plural: &str, kind: &str, name: &str) {
    let object = json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name}});
    let path = format!("/apis/example.com/v1/namespaces/{namespace}/{plural}");
    admin.post(&path, &object).await.expect(201);
}

/// L9: somebody who may read one custom resource reads only that one, though the names of another
/// resource of the group, and of another namespace, begin alike.
#[tokio::test(flavor = "multi_thread")]
async fn a_resource_whose_name_begins_alike_stays_apart() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for name in ["t1", "t1x"] {
        admin.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await.expect(201);
    }
    define(&admin, "widgets", "Widget", "Namespaced").await;
    define(&admin, "widgetsx", "WidgetX", "Namespaced").await;
    make(&admin, "t1", "widgets", "Widget", "own").await;
    make(&admin, "t1x", "widgets", "Widget", "neighbour").await;
    for name in ["secret-a", "secret-b"] {
        make(&admin, "t1", "widgetsx", "WidgetX", name).await;
    }
    let rules = json!([{"verbs": ["*"], "apiGroups": ["example.com"], "resources": ["widgets"]}]);
    let alice = grant_alice(&cluster, "t1", rules).await;
    let group = "/apis/example.com/v1";
    let own = format!("{group}/namespaces/t1/widgets");
    let all = admin.get(&format!("{group}/widgets")).await.expect(200);
    assert_eq!(names(&all), BTreeSet::from(["neighbour", "own"]));
    for query in ["", "?limit=1", "?resourceVersion=0", "?fieldSelector=metadata.name!%3Dx"] {
        let list = alice.get(&format!("{own}{query}")).await.expect(200);
        assert_eq!(names(&list), BTreeSet::from(["own"]), "{query}");
    }
    // The rest of somebody else's list is not a list of one's own.
    let path = format!("{group}/namespaces/t1/widgetsx?limit=1");
    let rest = admin.get(&path).await.expect(200)["metadata"]["continue"].clone();
    let rest = rest.as_str().expect("a second page");
    let answer = alice.get(&format!("{own}?limit=9&continue={rest}")).await;
    assert!(!answer.text().contains("secret"), "{}", answer.text());
    for name in [
        "x/secret-a",
        "..%2Fwidgetsx%2Fsecret-a",
        "..%2f..%2fwidgetsx%2ft1%2fsecret-a",
        "%2e%2e/widgetsx/secret-a",
        "../widgetsx/secret-a",
        "secret-a",
    ] {
        let answer = alice.get(&format!("{own}/{name}")).await;
        assert!(matches!(answer.code, 400 | 403 | 404), "{name}: {}", answer.code);
        assert!(!answer.text().contains("\"WidgetX\""), "{name}: {}", answer.text());
    }
    let events = alice.send(Method::DELETE, &own, &[], "").await;
    assert_eq!(events.code, 200);
    let left = admin.get(&format!("{group}/namespaces/t1/widgetsx")).await.expect(200);
    assert_eq!(names(&left), BTreeSet::from(["secret-a", "secret-b"]));
    let left = admin.get(&format!("{group}/widgets")).await.expect(200);
    assert_eq!(names(&left), BTreeSet::from(["neighbour"]));
}
