//! Connections are limited for each address and each user, and nobody is kept out by others.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use http::Method;
use https_server::Limits;
use serde_json::{Value, json};
use store_embedded::Options;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::client::{Answer, Client, Session};
use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// How long a test waits for what happens by itself.
const PATIENCE: Duration = Duration::from_secs(20);

async fn metrics(admin: &Client, name: &str) -> Vec<(String, u64)> {
    let text = admin.get("/metrics").await.text();
    let lines = text.lines().filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
    lines.map(|(labels, value)| (labels.to_owned(), value.parse().unwrap())).collect()
}

/// Lets a user read everything that is no secret.
async fn allow_view(admin: &Client, user: &str) {
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": format!("view-{user}")},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    });
    let path = format!("/apis/{group}/v1/clusterrolebindings");
    admin.post(&path, &binding).await.expect(201);
}

/// The codes that a user gets: one that is allowed, one that is not.
async fn decisions(user: &Client) -> [u16; 2] {
    [user.get(MAPS).await.code, user.get("/api/v1/namespaces/default/secrets").await.code]
}

/// A12: an anonymous peer holds more connections than there are, half of them in the handshake. A watch stays
/// open, and users get the answers of an idle server on new connections.
#[tokio::test(flavor = "multi_thread")]
async fn a12_connections_of_anonymous_clients_keep_no_user_out() {
    let cluster = Cluster::start_with(|options, _| {
        options.connection_limits = Limits {
            connections_max: 120,
            unauthenticated_per_address_max: 100,
            handshakes_max: 60,
            ..Limits::default()
        };
    })
    .await;
    let (admin, alice, bob) = (cluster.admin(), cluster.alice(), cluster.bob());
    allow_view(&admin, "alice").await;
    let mut watch = alice.watch(&format!("{MAPS}?watch=1")).await;
    let idle = (decisions(&alice).await, decisions(&bob).await);
    assert_eq!(idle, ([200, 403], [403, 403]));
    let (anonymous, address) = (cluster.anonymous(), cluster.address);
    let attack = tokio::spawn(async move {
        let (mut half_open, mut open) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            half_open.push(TcpStream::connect(address).await.unwrap());
            open.push(anonymous.connect("h2").await);
        }
        (half_open, open)
    });
    // Some of this happens during the attack, and all of it happens again after it.
    assert_eq!((decisions(&alice).await, decisions(&bob).await), idle);
    let held = attack.await.unwrap();
    assert_eq!((decisions(&alice).await, decisions(&bob).await), idle);
    admin.post(MAPS, &json!({"metadata": {"name": "seen"}})).await.expect(201);
    while watch.next().await.unwrap()["object"]["metadata"]["name"] != "seen" {}
    let evicted = metrics(&admin, "portcullis_evicted_connections_total").await;
    assert_eq!(evicted.len(), 6, "{evicted:?}");
    let n_evicted: u64 = evicted.iter().map(|(_, n)| n).sum();
    assert!(n_evicted >= 250, "{evicted:?}");
    let open = metrics(&admin, "portcullis_open_connections").await;
    assert!((2..=130).contains(&open[0].1), "{open:?}");
    // What is gone is gone: the oldest of both kinds, and nothing needs a restart.
    let (mut half_open, open) = held;
    assert_eq!(half_open[0].read(&mut [0; 1]).await.unwrap_or(0), 0);
    drop((half_open, open));
    assert_eq!((decisions(&alice).await, decisions(&bob).await), idle);
}

/// The connections of one user do not keep another user out: at the limit of a user, the user's idle connections
/// are closed, or the user gets 429.
#[tokio::test(flavor = "multi_thread")]
async fn connections_of_one_user_leave_room_for_others() {
    let cluster = Cluster::start_with(|options, _| {
        let own = Limits { connections_per_user_max: 3, ..Limits::default() };
        options.connection_limits = own;
    })
    .await;
    let (admin, alice, bob) = (cluster.admin(), cluster.alice(), cluster.bob());
    allow_view(&admin, "alice").await;
    allow_view(&admin, "bob").await;
    let mut bobs = bob.session().await;
    assert_eq!(bobs.send(Method::GET, MAPS, "").await.code, 200);
    // Idle connections are no obstacle.
    let mut sessions = Vec::new();
    for _ in 0..5 {
        let mut session = alice.session().await;
        assert_eq!(session.send(Method::GET, MAPS, "").await.code, 200);
        sessions.push(session);
    }
    let path = format!("{MAPS}?watch=1");
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(alice.watch(&path).await);
    }
    let refused = alice.get(MAPS).await;
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(refused.headers["connection"], "close");
    assert_eq!(refused.expect(429)["reason"], "TooManyRequests");
    for other in [&bob, &admin] {
        assert_eq!(other.get(MAPS).await.code, 200);
    }
    assert_eq!(bobs.send(Method::GET, MAPS, "").await.code, 200);
    drop(watches);
    let again = async { while alice.get(MAPS).await.code != 200 {} };
    tokio::time::timeout(PATIENCE, again).await.expect("room again");
}

/// The name of the test below, for its child.
const CHILD_TEST: &str =
    "connections::a13_without_descriptors_or_disk_the_server_recovers_by_itself";

/// Set in the child that uses its descriptors up; other tests share the process of the parent.
const IS_CHILD: &str = "SERVER_TEST_IS_CHILD";

/// A13: the process has no descriptors while the store rotates its log, and then the log may not grow. Writes are
/// answered 201, then 507, then 503; the server stays alive and says what is degraded; and everything works again
/// as soon as there are descriptors.
#[test]
fn a13_without_descriptors_or_disk_the_server_recovers_by_itself() {
    if std::env::var_os(IS_CHILD).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        return runtime.block_on(run_out_of_descriptors());
    }
    let script =
        r#"trap "" XFSZ; ulimit -n 128; ulimit -f 2000; exec "$0" --exact "$1" --nocapture"#;
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(CHILD_TEST)
        .env(IS_CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}");
}

async fn post_map(session: &mut Session, name: &str, bytes: usize) -> Answer {
    let map = json!({"metadata": {"name": name}, "data": {"a": "x".repeat(bytes)}});
    session.send(Method::POST, MAPS, map.to_string()).await
}

async fn health(session: &mut Session, path: &str) -> (u16, String) {
    let answer = session.send(Method::GET, path, "").await;
    (answer.code, answer.text())
}

fn n_logs(folder: &Path) -> usize {
    let names = std::fs::read_dir(folder.join("store")).unwrap();
    let names = names.filter_map(|entry| entry.ok());
    names.filter(|entry| entry.file_name().to_string_lossy().starts_with("log-")).count()
}

async fn run_out_of_descriptors() {
    let limits = store_embedded::Limits {
        log_file_bytes_max: 64 << 10,
        disk_free_bytes_min: 0,
        ..store_embedded::Limits::default()
    };
    let options = Options { limits, ..Options::default() };
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start_on(folder, options, |_, _| {}, |_| {}).await;
    let mut writer = cluster.admin().session().await;
    let mut observer = cluster.admin().session().await;
    assert_eq!(health(&mut observer, "/readyz").await.0, 200);
    post_map(&mut writer, "before", 10).await.expect(201);

    // Without descriptors the store cannot rotate its log, and writes succeed.
    let take = || -> Vec<File> { std::iter::from_fn(|| File::open("/dev/null").ok()).collect() };
    let n_logs_before = n_logs(cluster.folder());
    let files = take();
    assert!((20..128).contains(&files.len()), "{}", files.len());
    for n in 0..10 {
        post_map(&mut writer, &format!("short-{n}"), 20_000).await.expect(201);
    }
    cluster.store.run_periodic_work().await;
    let (code, text) = health(&mut observer, "/readyz?verbose").await;
    assert!(code == 200 && text.contains("[-]storage-upkeep degraded"), "{code} {text}");
    assert!(text.contains("[+]storage-writes ok"), "{text}");
    drop(files);
    cluster.store.run_periodic_work().await;
    let (code, text) = health(&mut observer, "/readyz?verbose").await;
    assert!(code == 200 && text.contains("[+]storage-upkeep ok"), "{code} {text}");
    assert!(n_logs(cluster.folder()) > n_logs_before);

    // The log that cannot be rotated reaches the limit of a file, which is a full disk.
    let files = take();
    let mut n_written = 0;
    let refused = loop {
        let answer = post_map(&mut writer, &format!("full-{n_written}"), 50_000).await;
        if answer.code != 201 {
            break answer;
        }
        n_written += 1;
        assert!(n_written < 100, "the limit has no effect");
    };
    // A second may pass between the failure and the answer, and then the store lacks a descriptor.
    assert!(matches!(refused.code, 507 | 503), "{}", refused.text());
    let degraded = async {
        loop {
            let answer = post_map(&mut writer, "refused", 10).await;
            if answer.code == 503 {
                return answer;
            }
            assert_eq!(answer.code, 507, "{}", answer.text());
        }
    };
    let refused = tokio::time::timeout(PATIENCE, degraded).await.expect("another cause");
    assert_eq!(refused.headers["retry-after"], "2");
    assert_eq!(refused.expect(503)["reason"], "ServiceUnavailable");
    let (code, text) = health(&mut observer, "/readyz?verbose").await;
    assert!(code == 200 && text.contains("[-]storage-writes degraded"), "{code} {text}");
    assert_eq!(health(&mut observer, "/livez").await.0, 200);
    assert_eq!(health(&mut observer, "/readyz/storage-writes").await.0, 500);
    let read = observer.send(Method::GET, &format!("{MAPS}/before"), "").await;
    assert_eq!(read.code, 200, "it reads");

    // The store tries again by itself.
    drop(files);
    let recovered = async { while post_map(&mut writer, "after", 10).await.code != 201 {} };
    tokio::time::timeout(PATIENCE, recovered).await.expect("the end of the failure");
    let (code, text) = health(&mut observer, "/readyz?verbose").await;
    assert!(code == 200 && text.contains("[+]storage-writes ok"), "{code} {text}");

    // Nothing acknowledged is lost, and nothing refused is stored, also after a restart.
    let cluster = cluster.restart().await;
    let list: Value = cluster.admin().get(MAPS).await.expect(200);
    let names: Vec<&str> = list["items"].as_array().unwrap().iter().map(name).collect();
    let short = (0..10).map(|n| format!("short-{n}"));
    let full = (0..n_written).map(|n| format!("full-{n}"));
    for want in short.chain(full).chain(["before".to_owned(), "after".to_owned()]) {
        assert!(names.contains(&want.as_str()), "{want} is lost");
    }
    assert!(!names.contains(&"refused"));
}

fn name(item: &Value) -> &str {
    item["metadata"]["name"].as_str().unwrap()
}
