//! Tests of the OpenAPI documents.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// Every kind has a PATCH operation that says its name and that `fieldValidation` is known;
/// clients refuse to send a kind without. Kubernetes has none for a Binding, which schedulers create.
#[tokio::test(flavor = "multi_thread")]
async fn every_kind_can_be_validated() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let index = admin.get("/openapi/v3").await.expect(200);
    let paths = index["paths"].as_object().expect("paths");
    assert!(paths.contains_key("api/v1"));
    for (name, own) in paths {
        let (group, version) = match name.split('/').collect::<Vec<_>>()[..] {
            ["api", version] => ("", version),
            ["apis", group, version] => (group, version),
            _ => panic!("{name} is no group and version"),
        };
        let resources = admin.get(&format!("/{name}")).await.expect(200);
        let kinds: BTreeSet<&str> = resources["resources"]
            .as_array()
            .expect("resources")
            .iter()
            .filter(|own| !own["name"].as_str().unwrap().contains('/') && own["kind"] != "Binding")
            .map(|own| own["kind"].as_str().unwrap())
            .collect();
        let url = own["serverRelativeURL"].as_str().unwrap();
        let document = admin.get(url).await.expect(200);
        let hinted: BTreeSet<&str> = document["paths"]
            .as_object()
            .expect("paths")
            .values()
            .filter_map(|item| hint(&item["patch"], group, version))
            .collect();
        assert!(!kinds.is_empty(), "{name}");
        assert!(hinted.is_superset(&kinds), "{name}: {kinds:?} {hinted:?}");
    }
}

/// Version 2 describes nothing, but there is such a document: kubectl asks for it when it meets a kind
/// that version 3 does not have, and without an answer does not send a `List`.
#[tokio::test(flavor = "multi_thread")]
async fn the_older_description_is_empty() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let document = admin.get("/openapi/v2").await.expect(200);
    assert_eq!((&document["swagger"], &document["paths"]), (&json!("2.0"), &json!({})));
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let answer = admin.send(Method::GET, "/openapi/v2", &[("accept", accept)], "").await;
    assert_eq!(answer.code, 200);
    let media_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    assert_eq!(answer.headers["content-type"], media_type);
    // Field 1 is the version.
    assert!(answer.bytes.starts_with(b"\n\x032.0"), "{:?}", answer.bytes);
}

/// The kind of an operation that says what clients look for.
fn hint<'a>(operation: &'a Value, group: &str, version: &str) -> Option<&'a str> {
    let kind = &operation["x-kubernetes-group-version-kind"];
    let parameters = operation["parameters"].as_array()?;
    let is_hint = kind["group"] == group
        && kind["version"] == version
        && parameters.iter().any(|own| own["name"] == "fieldValidation" && own["in"] == "query");
    kind["kind"].as_str().filter(|_| is_hint)
}
