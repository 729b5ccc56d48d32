//! What clients read about kinds before they send them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cluster::Cluster;

/// H-014: every kind has a PATCH operation that says its name and that `fieldValidation` is known;
/// clients refuse to send a kind without.
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
            .filter(|own| !own["name"].as_str().unwrap().contains('/'))
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

/// The kind of an operation that says what clients look for.
fn hint<'a>(operation: &'a Value, group: &str, version: &str) -> Option<&'a str> {
    let kind = &operation["x-kubernetes-group-version-kind"];
    let parameters = operation["parameters"].as_array()?;
    let is_hint = kind["group"] == group
        && kind["version"] == version
        && parameters.iter().any(|own| own["name"] == "fieldValidation" && own["in"] == "query");
    kind["kind"].as_str().filter(|_| is_hint)
}
