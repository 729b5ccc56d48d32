//! Writing a data directory that holds every kind of record.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use store::Store;
use store_embedded::{EmbeddedStore, Limits, Options};
use tempfile::TempDir;

use super::{OBJECTS, change};
use crate::client::Client;
use crate::cluster::Cluster;
use crate::coverage::samples::{definition, sample};
use crate::coverage::served::{Served, Target};

const NAMESPACE: &str = "/api/v1/namespaces/coverage";
const MAPS: &str = "/api/v1/namespaces/coverage/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const INITIALIZERS: &str = "/apis/admissionregistration.k8s.io/v1alpha1/initializerconfigurations";
/// The content of objects of built-in kinds, by group, version and resource.
const SAMPLES: &str = include_str!("samples.json");
/// How long the server may take to do something by itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Writes a data directory in three runs: one whose writes end up in a snapshot, one that makes the
/// snapshot, and one whose writes stay in a log behind it.
pub(super) async fn data_directory() -> TempDir {
    let cluster = Cluster::start_with(change).await;
    objects_of_every_kind(&cluster.admin()).await;
    let folder = cluster.stop(Duration::ZERO).await;
    make_snapshot(&folder.path().join("store")).await;
    let cluster = Cluster::start_in(folder, |options, folder| {
        change(options, folder);
        // Also the record by which several servers know of each other.
        options.admission_options.admission_config_sync.is_only_server = false;
    })
    .await;
    let admin = cluster.admin();
    writes_behind_a_snapshot(&admin).await;
    write_list(&admin, cluster.folder()).await;
    cluster.stop(Duration::ZERO).await
}

/// A ConfigMap with the label of everything in a fixture.
fn map(name: &str, finalizers: &[&str]) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"coverage": "yes"}, "finalizers": finalizers},
        "data": {"a": "YQ=="},
    })
}

async fn objects_of_every_kind(admin: &Client) {
    let namespace = json!({"metadata": {"name": "coverage", "labels": {"coverage": "yes"}}});
    admin.post("/api/v1/namespaces", &namespace).await.expect(201);
    let mut cluster_scoped = definition("gizmos", "Gizmo", &["v1"]);
    cluster_scoped["spec"]["scope"] = "Cluster".into();
    for mut definition in [definition("widgets", "Widget", &["v1", "v1beta1"]), cluster_scoped] {
        definition["metadata"]["labels"] = json!({"coverage": "yes"});
        admin.post(DEFINITIONS, &definition).await.expect(201);
        let name = definition["metadata"]["name"].as_str().unwrap();
        established(admin, name).await;
    }
    let samples: Value = serde_json::from_str(SAMPLES).expect("JSON");
    for served in Served::discover(admin).await {
        let main = &served.main;
        if main.offers("create") && main.offers("get") {
            let answer = admin.post(&main.collection(), &valid(main, &samples)).await;
            // An object that two versions or groups serve exists already.
            assert!(matches!(answer.code, 201 | 409), "{main}: {}", answer.text());
        }
    }
    // History: other versions, an object that is gone, and objects that a finalizer keeps.
    for (name, finalizers) in [
        ("changed", [].as_slice()),
        ("deleted", &[]),
        ("kept", &["example.com/keep"]),
        ("terminating", &["example.com/keep"]),
    ] {
        admin.post(MAPS, &map(name, finalizers)).await.expect(201);
    }
    merge(admin, &format!("{MAPS}/changed"), json!({"data": {"a": "Yg=="}})).await;
    for name in ["deleted", "terminating"] {
        admin.delete(&format!("{MAPS}/{name}")).await.expect(200);
    }
    configure_admission(admin).await;
    let pending = format!("{MAPS}?includeUninitialized=true");
    admin.post(&pending, &map("pending", &[])).await.expect(202);
    // A terminating namespace with an object that has a finalizer.
    let going = json!({"metadata": {"name": "going", "labels": {"coverage": "yes"}}});
    admin.post("/api/v1/namespaces", &going).await.expect(201);
    let inside = "/api/v1/namespaces/going/secrets";
    admin.post(inside, &map("kept", &["example.com/keep"])).await.expect(201);
    admin.delete("/api/v1/namespaces/going").await.expect(200);
    let token = "/api/v1/namespaces/coverage/serviceaccounts/own/token";
    admin.post(token, &json!({"spec": {"audiences": ["a"]}})).await.expect(201);
}

/// An object that Kubernetes takes, so that a version with stricter rules can still update it.
fn valid(target: &Target, samples: &Value) -> Value {
    let Target { group, version, plural, .. } = target;
    let mut object = sample(target);
    if let Some(content) = samples[format!("{group}/{version}/{plural}")].as_object() {
        object.as_object_mut().expect("an object").extend(content.clone());
    }
    object
}

/// Configurations of hooks and initializers. None of them concerns what is written later.
async fn configure_admission(admin: &Client) {
    let rules = json!([{"apiGroups": ["nowhere.example.com"], "apiVersions": ["v1"],
        "resources": ["nothings"], "operations": ["CREATE"]}]);
    let webhook = json!({"name": "h.example.com", "rules": rules, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/hook"}});
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let configuration = json!({
            "metadata": {"name": "hooks", "labels": {"coverage": "yes"}},
            "webhooks": [webhook],
        });
        admin.post(&format!("{CONFIGURATIONS}/{kind}"), &configuration).await.expect(201);
    }
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]);
    let initializers = json!({
        "metadata": {"name": "initializers", "labels": {"coverage": "yes"}},
        "initializers": [{"name": "i.example.com", "rules": rules}],
    });
    admin.post(INITIALIZERS, &initializers).await.expect(201);
}

/// Opens the store with limits so small that it writes a snapshot, and waits for it.
async fn make_snapshot(store: &Path) {
    let limits = Limits { checkpoint_bytes_min: 1, ..Limits::default() };
    let engine =
        EmbeddedStore::open(store, Options { limits, ..Options::default() }).expect("a store");
    let newest = engine.current_rev().await.unwrap();
    engine.compact(newest).await.unwrap();
    let names = || {
        let names = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
    };
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !names().iter().any(|name| name.starts_with("snapshot-") && !name.ends_with(".tmp")) {
        assert!(tokio::time::Instant::now() < deadline, "no snapshot: {:?}", names());
        crate::polling::pause().await;
    }
    engine.close().await;
}

async fn writes_behind_a_snapshot(admin: &Client) {
    let secrets = format!("{NAMESPACE}/secrets");
    for name in ["late", "late-deleted"] {
        admin.post(&secrets, &map(name, &[])).await.expect(201);
    }
    admin.delete(&format!("{secrets}/late-deleted")).await.expect(200);
    // Its write moves the config revision key.
    let hooks = format!("{CONFIGURATIONS}/validatingwebhookconfigurations/hooks");
    merge(admin, &hooks, json!({"metadata": {"annotations": {"late": "yes"}}})).await;
    merge(admin, &format!("{MAPS}/kept"), json!({"data": {"late": "yes"}})).await;
    // Their writes reserve and free addresses.
    let services = format!("{NAMESPACE}/services");
    for name in ["late", "late-deleted"] {
        let service = json!({"metadata": {"name": name, "labels": {"coverage": "yes"}},
            "spec": {"ports": [{"port": 80}]}});
        let service = admin.post(&services, &service).await.expect(201);
        assert!(service["spec"]["clusterIP"].as_str().unwrap().starts_with("10.0.0."));
    }
    admin.delete(&format!("{services}/late-deleted")).await.expect(200);
}

/// Writes every object with the label to `objects.jsonl`.
async fn write_list(admin: &Client, folder: &Path) {
    let mut lines = Vec::new();
    for served in Served::discover(admin).await {
        let main = &served.main;
        if !main.offers("list") {
            continue;
        }
        let all = main.collection().replace("/namespaces/coverage/", "/");
        let query = "labelSelector=coverage%3Dyes&includeUninitialized=true";
        let list = admin.get(&format!("{all}?{query}")).await.expect(200);
        for object in list["items"].as_array().expect("items") {
            let name = object["metadata"]["name"].as_str().expect("a name");
            let collection = match object["metadata"]["namespace"].as_str() {
                Some(own) => {
                    let folder = format!("/namespaces/{own}/");
                    main.collection().replace("/namespaces/coverage/", &folder)
                }
                None => main.collection(),
            };
            let path = format!("{collection}/{name}");
            let object = admin.get(&format!("{path}?includeUninitialized=true")).await.expect(200);
            lines.push(json!({"path": path, "object": object}).to_string());
        }
    }
    assert!(lines.len() > 60, "{} objects", lines.len());
    lines.push(String::new());
    fs::write(folder.join(OBJECTS), lines.join("\n")).unwrap();
}

async fn merge(admin: &Client, path: &str, patch: Value) {
    admin.patch(path, "merge-patch", &patch).await.expect(200);
}

/// Waits until a definition is served.
async fn established(admin: &Client, name: &str) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let definition = admin.get(&format!("{DEFINITIONS}/{name}")).await.expect(200);
        let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|own| own["type"] == "Established" && own["status"] == "True") {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{definition}");
        crate::polling::pause().await;
    }
}
