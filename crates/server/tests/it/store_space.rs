//! The responses to clients when the embedded store runs out of space, and the metrics for operators.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use store_embedded::{FreeSpaceSource, Limits, Options, TenantResolver};

use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const MIB: u64 = 1024 * 1024;

async fn start(limits: Limits, free_space: FreeSpaceSource) -> Cluster {
    let tenant_of = TenantResolver::new(|key| api_resources::tenant_of_key("/registry", key));
    let options = Options {
        limits,
        tenant_resolver: tenant_of,
        free_space_source: free_space,
        ..Options::default()
    };
    Cluster::start_on(tempfile::tempdir().unwrap(), options, |_, _| {}, |_| {}).await
}

fn limits() -> Limits {
    Limits { disk_free_bytes_min: 0, ..Limits::default() }
}

fn map(name: &str, bytes: usize) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "x".repeat(bytes)}})
}

async fn make_namespaces(admin: &Client, names: &[&str]) {
    for name in names {
        let body = json!({"metadata": {"name": name}});
        admin.post("/api/v1/namespaces", &body).await.expect(201);
    }
}

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

async fn metric(admin: &Client, line: &str) -> bool {
    admin.get("/metrics").await.text().lines().any(|own| own == line)
}

/// A delete succeeds even if the store has no space for any other write.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_answers_507_and_takes_deletes() {
    let cluster =
        start(Limits { quota_bytes: 16 * MIB, ..limits() }, FreeSpaceSource::System).await;
    let admin = cluster.admin();
    let spaces = ["a", "b", "c", "d", "e"];
    make_namespaces(&admin, &spaces).await;
    let mut made = Vec::new();
    let refused: Answer = loop {
        let namespace = spaces[made.len() % spaces.len()];
        let name = format!("m{}", made.len());
        let answer = admin.post(&maps(namespace), &map(&name, 300_000)).await;
        if answer.code != 201 {
            break answer;
        }
        made.push(format!("{}/{name}", maps(namespace)));
        assert!(made.len() < 60, "the quota has no effect");
    };
    assert_eq!(refused.headers.get("retry-after"), None);
    let status = refused.expect(507);
    assert_eq!(status["reason"], "InsufficientStorage");
    let want = "Insufficient storage: database space exceeded: writes that add are refused until \
                space is freed";
    assert_eq!(status["message"], want);

    // The server stays ready and alive, and `/readyz?verbose` and the metrics show why writes are
    // refused.
    cluster.store.run_periodic_work().await;
    assert_eq!(admin.get("/readyz").await.code, 200);
    assert_eq!(admin.get("/livez").await.code, 200);
    assert_eq!(admin.get("/readyz/storage-space").await.code, 500);
    let verbose = admin.get("/readyz?verbose").await.text();
    assert!(verbose.contains("[-]storage-space degraded: reason withheld\n"), "{verbose}");
    assert!(metric(&admin, "portcullis_store_alarm{alarm=\"quota\"} 1").await);
    assert!(metric(&admin, "portcullis_store_quota_bytes 16777216").await);

    // A terminating object may lose its finalizers, and a write that makes an object smaller is
    // accepted.
    let patch = json!({"metadata": {"finalizers": ["example.com/wait"]}});
    admin.patch(&made[0], "merge-patch", &patch).await.expect(200);
    admin.delete(&made[0]).await.expect(200);
    let patch = json!({"metadata": {"finalizers": null}});
    admin.patch(&made[0], "merge-patch", &patch).await.expect(200);
    assert_eq!(admin.get(&made[0]).await.code, 404);
    let smaller = json!({"data": {"a": "x"}});
    admin.patch(&made[1], "merge-patch", &smaller).await.expect(200);
    admin.post(&maps("a"), &map("new", 10)).await.expect(507);
    for path in &made[2..6] {
        admin.delete(path).await.expect(200);
    }
    cluster.store.run_periodic_work().await;
    assert!(metric(&admin, "portcullis_store_alarm{alarm=\"quota\"} 0").await);
    assert_eq!(admin.get("/readyz/storage-space").await.code, 200);
    admin.post(&maps("a"), &map("new", 10)).await.expect(201);
}

/// A client updates one ConfigMap without pause: only its namespace is throttled.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_updates_is_answered_429_in_its_namespace_alone() {
    let cluster =
        start(Limits { history_bytes_max: 16 * MIB, ..limits() }, FreeSpaceSource::System).await;
    let admin = cluster.admin();
    make_namespaces(&admin, &["flood", "quiet"]).await;
    let before = admin.post(&maps("quiet"), &map("before", 10)).await.expect(201);
    let before = before["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    admin.post(&maps("flood"), &map("m", 900_000)).await.expect(201);
    let mut held = map("held", 500_000);
    held["metadata"]["finalizers"] = json!(["example.com/wait"]);
    admin.post(&maps("flood"), &held).await.expect(201);
    let path = format!("{}/m", maps("flood"));
    let mut n_written = 0;
    let refused = loop {
        let answer = admin.put(&path, &map("m", 900_000 + n_written)).await;
        if answer.code != 200 {
            break answer;
        }
        n_written += 1;
        assert!(n_written < 50, "the flood has no end");
    };
    assert_eq!(refused.headers["retry-after"], "10");
    let status = refused.expect(429);
    assert_eq!(status["reason"], "TooManyRequests");
    let want =
        "Too many requests: namespace \"flood\" has written too much data in the last minutes";
    assert_eq!(status["message"], want);
    // The namespace is named, whatever the resource is.
    let secrets = "/api/v1/namespaces/flood/secrets";
    let mut code = 201;
    for n in 0..4 {
        let name = format!("s{n}");
        let secret = json!({"metadata": {"name": name}, "stringData": {"a": "x".repeat(600_000)}});
        code = admin.post(secrets, &secret).await.code;
        if code != 201 {
            break;
        }
    }
    assert_eq!(code, 429);
    for n in 0..20 {
        admin.post(&maps("quiet"), &map(&format!("m{n}"), 1000)).await.expect(201);
    }
    make_namespaces(&admin, &["another"]).await;
    let list = format!("{}?resourceVersion={before}&resourceVersionMatch=Exact", maps("quiet"));
    let list = admin.get(&list).await.expect(200);
    let n_items = list["items"].as_array().unwrap().len();
    assert!((1..=2).contains(&n_items), "the history of others is still there");
    // Others write small objects to the same namespace, and everything can be deleted.
    admin.post(&maps("flood"), &map("small", 1000)).await.expect(201);
    let held = format!("{}/held", maps("flood"));
    admin.delete(&held).await.expect(200);
    let grow = json!({"metadata": {"labels": {"more": "x"}}});
    admin.patch(&held, "merge-patch", &grow).await.expect(429);
    let release = json!({"metadata": {"finalizers": null}});
    admin.patch(&held, "merge-patch", &release).await.expect(200);
    assert_eq!(admin.get(&held).await.code, 404);
    cluster.store.run_periodic_work().await;
    let throttled = store::Store::status(cluster.store.as_ref())
        .space_usage
        .map(|usage| usage.n_throttled_writes);
    assert_eq!(throttled, Some(3));
    assert!(metric(&admin, "portcullis_store_throttled_writes_total 3").await);
    admin.delete("/api/v1/namespaces/flood").await.expect(200);
    let gone = async { while admin.get("/api/v1/namespaces/flood").await.code != 404 {} };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the namespace ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_free_space_answers_507_until_there_is_some() {
    let free = Arc::new(AtomicU64::new(1000 * MIB));
    let limits = Limits { disk_free_bytes_min: 100 * MIB, ..Limits::default() };
    let cluster = start(limits, FreeSpaceSource::Manual(free.clone())).await;
    let admin = cluster.admin();
    admin.post(&maps("default"), &map("old", 10)).await.expect(201);
    free.store(90 * MIB, Ordering::SeqCst);
    cluster.store.run_periodic_work().await;
    admin.post(&maps("default"), &map("new", 10)).await.expect(507);
    assert!(metric(&admin, "portcullis_store_alarm{alarm=\"disk\"} 1").await);
    admin.delete(&format!("{}/old", maps("default"))).await.expect(200);
    assert_eq!(admin.get("/readyz").await.code, 200);
    free.store(200 * MIB, Ordering::SeqCst);
    cluster.store.run_periodic_work().await;
    admin.post(&maps("default"), &map("new", 10)).await.expect(201);
}
