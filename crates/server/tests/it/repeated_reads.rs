//! A version of an object that was read before is sent as it is stored, without decoding it again.

use http::Method;
use serde_json::json;

use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The first read of a version decodes it and later ones do not. All of them answer the same, and an update is seen.
#[tokio::test(flavor = "multi_thread")]
async fn every_read_of_a_version_is_the_same() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let created = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "annotations": {"text": "a \" and a \\ and }"}},
        "data": {"key": "value"}});
    let created = admin.post(MAPS, &created).await.expect(201);
    let path = format!("{MAPS}/a");
    for _ in 0..3 {
        assert_eq!(admin.get(&path).await.expect(200), created);
    }
    let mut changed = created.clone();
    changed["data"]["key"] = "other".into();
    let changed = admin.put(&path, &changed).await.expect(200);
    assert_ne!(changed["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    for _ in 0..2 {
        assert_eq!(admin.get(&path).await.expect(200), changed);
    }
    admin.delete(&path).await.expect(200);
    admin.get(&path).await.expect(404);
}

/// Other forms of an object are made of the decoded object, also after it was read before.
#[tokio::test(flavor = "multi_thread")]
async fn other_forms_are_not_sent_as_they_are_stored() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let object = json!({"metadata": {"name": "a"}, "data": {"key": "value"}});
    admin.post(MAPS, &object).await.expect(201);
    let path = format!("{MAPS}/a");
    for (accept, kind) in [
        ("application/json", "ConfigMap"),
        ("application/json;as=Table;g=meta.k8s.io;v=v1,application/json", "Table"),
        ("application/json;g=meta.k8s.io;v=v1;as=PartialObjectMetadata", "PartialObjectMetadata"),
        ("*/*", "ConfigMap"),
    ] {
        for _ in 0..2 {
            let headers = [("accept", accept)];
            let answer = admin.send(Method::GET, &path, &headers, "").await.expect(200);
            assert_eq!(answer["kind"], kind, "{accept}");
        }
    }
    let headers = [("accept", "application/yaml")];
    let yaml = admin.send(Method::GET, &path, &headers, "").await;
    let text = String::from_utf8(yaml.bytes.to_vec()).unwrap();
    assert!(text.contains("kind: ConfigMap\n"), "{text}");
    let pretty = admin.get(&format!("{path}?pretty=true")).await;
    assert!(pretty.bytes.starts_with(b"{\n  \""), "{:?}", pretty.bytes);
}
