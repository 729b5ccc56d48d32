//! Reading, changing and deleting everything that a data directory holds.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Stored, change, stored};
use crate::client::Client;
use crate::cluster::Cluster;

/// Members of metadata that change without anybody writing the object.
const OWN_OF_SERVER: [&str; 3] = ["initializers", "managedFields", "resourceVersion"];
const SERVICES: &str = "/api/v1/namespaces/default/services";
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves a data directory, and reads, updates and deletes all that is stored in it.
pub(super) async fn everything(folder: TempDir) {
    let mut stored = stored(&folder);
    // Definitions and namespaces come last, because deleting them deletes their objects.
    stored.sort_by_key(|own| match own.path.split('/').nth_back(1) {
        Some("customresourcedefinitions") => 1,
        Some("namespaces") => 2,
        _ => 0,
    });
    let cluster = Cluster::start_in(folder, change).await;
    let admin = cluster.admin();
    for Stored { path, object } in &stored {
        let found = read(&admin, path).await;
        assert_holds(path, object, &found);
    }
    addresses_are_kept(&admin, &stored).await;
    for gone in ["configmaps/deleted", "secrets/late-deleted"] {
        admin.get(&format!("/api/v1/namespaces/coverage/{gone}")).await.expect(404);
    }
    let mut n_deleted = 0;
    for Stored { path, object } in &stored {
        if admin.get(&uninitialized(path)).await.code == 404 {
            // Another version of its resource served it, and it is gone.
            continue;
        }
        update(&admin, path, object).await;
        delete(&admin, path).await;
        n_deleted += 1;
    }
    assert!(n_deleted > 60, "{n_deleted} objects");
    addresses_are_free(&admin, &stored).await;
    let cluster = cluster.restart().await;
    for Stored { path, .. } in &stored {
        let answer = cluster.admin().get(&uninitialized(path)).await;
        assert_eq!(answer.code, 404, "{path}: {}", answer.text());
    }
}

fn uninitialized(path: &str) -> String {
    format!("{path}?includeUninitialized=true")
}

async fn read(admin: &Client, path: &str) -> Value {
    let answer = admin.get(&uninitialized(path)).await;
    assert_eq!(answer.code, 200, "{path}: {}", answer.text());
    answer.json()
}

/// An object has every member that was stored. A later version may add some.
fn assert_holds(path: &str, stored: &Value, found: &Value) {
    match (stored, found) {
        (Value::Object(stored), Value::Object(found)) => {
            for (key, value) in stored {
                let path = format!("{path} {key}");
                if OWN_OF_SERVER.contains(&key.as_str()) {
                    continue;
                }
                let found = found.get(key).unwrap_or_else(|| panic!("{path} is gone"));
                assert_holds(&path, value, found);
            }
        }
        (Value::Array(stored), Value::Array(found)) => {
            assert_eq!(stored.len(), found.len(), "{path}");
            for (stored, found) in stored.iter().zip(found) {
                assert_holds(path, stored, found);
            }
        }
        _ => assert_eq!(stored, found, "{path}"),
    }
}

/// The addresses of stored services are still taken.
async fn addresses_are_kept(admin: &Client, stored: &[Stored]) {
    let addresses = addresses(stored);
    assert!(!addresses.is_empty(), "no service has an address");
    for address in addresses {
        let refused = admin.post(SERVICES, &service_at(address)).await.expect(422);
        let message = refused["message"].as_str().expect("a message");
        assert!(message.contains("already allocated"), "{message}");
    }
}

/// The addresses of services that are gone can be taken.
async fn addresses_are_free(admin: &Client, stored: &[Stored]) {
    for address in addresses(stored) {
        admin.post(SERVICES, &service_at(address)).await.expect(201);
        admin.delete(&format!("{SERVICES}/other")).await.expect(200);
    }
}

fn addresses(stored: &[Stored]) -> Vec<&str> {
    let services = stored.iter().filter(|own| own.object["kind"] == "Service");
    services.filter_map(|own| own.object["spec"]["clusterIP"].as_str()).collect()
}

fn service_at(address: &str) -> Value {
    json!({"metadata": {"name": "other"},
        "spec": {"clusterIP": address, "ports": [{"port": 80}]}})
}

/// Writes an object again, with one more label.
async fn update(admin: &Client, path: &str, stored: &Value) {
    let touched = json!({"metadata": {"labels": {"touched": "yes"}}});
    let uninitialized = uninitialized(path);
    let answer = admin.patch(&uninitialized, "merge-patch", &touched).await;
    assert_eq!(answer.code, 200, "{path}: {}", answer.text());
    let mut found = read(admin, path).await;
    assert_eq!(found["metadata"]["labels"]["touched"], "yes", "{path}");
    assert_eq!(found["metadata"]["uid"], stored["metadata"]["uid"], "{path}");
    // Without finalizers, so that it can go.
    found["metadata"]["finalizers"] = json!([]);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let answer = admin.put(&uninitialized, &found).await;
        match answer.code {
            200 => return,
            // The server itself has written it since.
            409 if tokio::time::Instant::now() < deadline => {
                let version = read(admin, path).await["metadata"]["resourceVersion"].take();
                found["metadata"]["resourceVersion"] = version;
            }
            _ => panic!("{path}: {} {}", answer.code, answer.text()),
        }
    }
}

async fn delete(admin: &Client, path: &str) {
    let answer = admin.delete(path).await;
    // A terminating object was deleted with its last finalizer.
    assert!(matches!(answer.code, 200 | 202 | 404 | 409), "{path}: {}", answer.text());
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while admin.get(&uninitialized(path)).await.code != 404 {
        assert!(tokio::time::Instant::now() < deadline, "{path} does not go");
        crate::polling::pause().await;
    }
}
