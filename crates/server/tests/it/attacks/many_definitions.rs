//! Many definitions, and definitions with large schemas.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use server::ServerOptions;

use super::DEFINITIONS;
use crate::cluster::{Cluster, write_audit_log};

/// Records what the server itself does to definitions.
const POLICY: &str = r#"{
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": ["system:apiserver"],
        "resources": [{"group": "apiextensions.k8s.io"}]}]
}"#;

fn audit_own_requests(options: &mut ServerOptions, folder: &Path) {
    write_audit_log(options, folder, POLICY);
}

fn definition(plural: &str, group: &str, schema: Value) -> Value {
    json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": plural},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn any_object() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A18: what the server does for a definition does not depend on how many others there are: it reads and writes
/// each a few times, although all of them are of one group and share its names.
#[tokio::test(flavor = "multi_thread")]
async fn a18_definitions_are_reconciled_once_each() {
    const N_DEFINITIONS: usize = 40;
    let cluster = Cluster::start_with(audit_own_requests).await;
    let admin = cluster.admin();
    for n in 0..N_DEFINITIONS {
        let plural = format!("kind{n}s");
        let body = definition(&plural, "many.example.com", any_object());
        admin.post(DEFINITIONS, &body).await.expect(201);
        while admin.get(&format!("/apis/many.example.com/v1/{plural}")).await.code != 200 {
            crate::polling::pause().await;
        }
    }
    // A definition that waits for a name gets it when the owner is gone, which a change of the owner shows.
    let mut thief = definition("thieves", "many.example.com", any_object());
    thief["spec"]["names"]["singular"] = "kind0s".into();
    admin.post(DEFINITIONS, &thief).await.expect(201);
    admin.delete(&format!("{DEFINITIONS}/kind0s.many.example.com")).await.expect(200);
    while admin.get("/apis/many.example.com/v1/thieves").await.code != 200 {
        crate::polling::pause().await;
    }
    let folder = cluster.stop(std::time::Duration::ZERO).await;
    let log = std::fs::read_to_string(folder.path().join("audit.log")).expect("a log");
    let mut n_reads: BTreeMap<String, usize> = BTreeMap::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        if event["verb"] == "get" {
            let name = event["objectRef"]["name"].as_str().expect("a name").to_owned();
            *n_reads.entry(name).or_default() += 1;
        }
    }
    assert!(n_reads.len() >= N_DEFINITIONS, "{n_reads:?}");
    // One for each of its own changes, and a few more if passes overlap. Before, each of them was read for each
    // other.
    n_reads.retain(|name, _| !name.starts_with("thieves") && !name.starts_with("kind0s"));
    let most = n_reads.values().max().copied().unwrap_or_default();
    assert!(most <= 8, "{n_reads:?}");
}

/// A18: a schema of 1 MB is served and published, and other definitions stay as they are. A schema that does
/// not fit into the store is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a18_schemas_of_a_megabyte_are_bounded() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let schema = |n_properties: usize| {
        let property = |n: usize| {
            let description = format!("{n:010}").repeat(5);
            (format!("property{n}"), json!({"type": "string", "description": description}))
        };
        let properties: serde_json::Map<String, Value> = (0..n_properties).map(property).collect();
        json!({"type": "object", "properties": properties})
    };
    let small = definition("smalls", "small.example.com", any_object());
    admin.post(DEFINITIONS, &small).await.expect(201);
    let large = definition("larges", "large.example.com", schema(11_000));
    assert!(large.to_string().len() > 1 << 20);
    admin.post(DEFINITIONS, &large).await.expect(201);
    for path in ["/apis/small.example.com/v1/smalls", "/apis/large.example.com/v1/larges"] {
        while admin.get(path).await.code != 200 {
            crate::polling::pause().await;
        }
    }
    let object = json!({"apiVersion": "large.example.com/v1", "kind": "larges",
        "metadata": {"name": "a"}, "property1": "x"});
    admin.post("/apis/large.example.com/v1/namespaces/default/larges", &object).await.expect(201);
    let published = admin.get("/openapi/v3/apis/large.example.com/v1").await;
    assert!(published.expect(200).to_string().contains("property10999"));
    let larger = definition("huges", "large.example.com", schema(20_000));
    let refused = admin.post(DEFINITIONS, &larger).await;
    assert_eq!(refused.code, 413, "{}", refused.text());
    admin.get("/apis/small.example.com/v1/smalls").await.expect(200);
}
