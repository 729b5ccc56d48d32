//! Stop and restart of a server, and expiry of Events.

use std::time::Duration;

use serde_json::json;
use store_embedded::EmbeddedStore;
use tempfile::TempDir;

use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Watches end without an error, and a server that stops does not call itself ready. The
/// exit code is the program's.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_ends_watches_cleanly() {
    let cluster = Cluster::start().await;
    let (admin, observer) = (cluster.admin(), cluster.admin());
    admin.post(MAPS, &json!({"metadata": {"name": "a"}})).await.expect(201);
    let mut events = admin.watch(&format!("{MAPS}?watch=1")).await;
    assert_eq!(events.next().await.unwrap()["type"], "ADDED");
    let stopping = tokio::spawn(cluster.stop(Duration::from_secs(2)));
    let mut ready = observer.get("/readyz").await;
    while ready.code == 200 {
        ready = observer.get("/readyz").await;
    }
    assert_eq!(ready.code, 500);
    assert!(ready.text().contains("[-]shutdown failed: reason withheld\n"), "{}", ready.text());
    assert!(ready.text().ends_with("readyz check failed\n"), "{}", ready.text());
    assert_eq!(observer.get("/livez").await.code, 200);
    observer.get(MAPS).await.expect(200);
    assert_eq!(events.next().await, None);
    stopping.await.unwrap();
}

/// A write that was acknowledged before a crash exists after it, and revisions continue. The crash
/// is a copy of the files at some moment, as a kill leaves them behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_loses_nothing_that_was_acknowledged() {
    const WRITERS: usize = 8;
    const EACH: usize = 40;
    let cluster = Cluster::start().await;
    let acknowledged = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let admin = cluster.admin();
        let acknowledged = acknowledged.clone();
        writers.spawn(async move {
            for round in 0..EACH {
                let name = format!("w{writer}-{round}");
                let made = admin.post(MAPS, &json!({"metadata": {"name": name}})).await.expect(201);
                let version = made["metadata"]["resourceVersion"].as_str().unwrap();
                acknowledged.lock().unwrap().push((name, version.parse::<u64>().unwrap()));
            }
        });
    }
    while acknowledged.lock().unwrap().len() < WRITERS * EACH / 2 {
        tokio::task::yield_now().await;
    }
    let before = acknowledged.lock().unwrap().clone();
    let folder = crashed(&cluster);
    assert!(!writers.is_empty());
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    cluster.stop(Duration::ZERO).await;
    let cluster = Cluster::start_in(folder, |_, _| {}).await;
    let admin = cluster.admin();
    let list = admin.get(MAPS).await.expect(200);
    let found: std::collections::BTreeMap<&str, &str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            let metadata = &item["metadata"];
            let version = metadata["resourceVersion"].as_str().unwrap();
            (metadata["name"].as_str().unwrap(), version)
        })
        .collect();
    for (name, version) in &before {
        assert_eq!(found.get(name.as_str()), Some(&version.to_string().as_str()), "{name}");
    }
    let last = before.iter().map(|(_, version)| *version).max().unwrap();
    let made = admin.post(MAPS, &json!({"metadata": {"name": "after"}})).await.expect(201);
    let next: u64 = made["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert!(next > last);
}

/// A folder with the files of the store as they are now.
fn crashed(cluster: &Cluster) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("store");
    std::fs::create_dir(&target).unwrap();
    for entry in std::fs::read_dir(cluster.folder().join("store")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
    }
    folder
}

/// The store deletes an Event after its time to live, and watches receive the deletion.
#[tokio::test(flavor = "multi_thread")]
async fn events_expire() {
    let cluster =
        Cluster::start_with(|options, _| options.api_settings.event_ttl = Duration::from_secs(2))
            .await;
    let admin = cluster.admin();
    let list = "/api/v1/namespaces/default/events";
    let body = json!({"metadata": {"name": "e"}, "reason": "Test",
        "involvedObject": {"kind": "ConfigMap", "name": "a", "namespace": "default"}});
    let made = admin.post(list, &body).await.expect(201);
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    let mut events = admin.watch(&format!("{list}?watch=1&resourceVersion={version}")).await;
    admin.get(&format!("{list}/e")).await.expect(200);
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "DELETED");
    assert_eq!(event["object"]["metadata"]["name"], "e");
    assert_ne!(event["object"]["metadata"]["resourceVersion"], version);
    admin.get(&format!("{list}/e")).await.expect(404);
}

/// A second server cannot open the data of a running server.
#[tokio::test(flavor = "multi_thread")]
async fn data_has_one_server() {
    let cluster = Cluster::start().await;
    let open =
        || EmbeddedStore::open(&cluster.folder().join("store"), store_embedded::Options::default());
    let refused = open().expect_err("the directory is locked").to_string();
    assert!(refused.ends_with("is in use by another process"), "{refused}");
}
