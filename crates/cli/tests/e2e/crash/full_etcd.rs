//! etcd has no space left: nothing that was acknowledged is lost, reads and deletes go on, and a server
//! starts.

use std::process::Command;

use etcd_testing::Member;
use http::Method;
use serde_json::{Value, json};

use super::CONFIG_MAPS;
use crate::client::Client;
use crate::server::{Place, Server, directory};

/// Space for few objects beside those that the server makes.
const QUOTA: &str = "--quota-backend-bytes=8388608";
const VALUE_BYTES: usize = 900 * 1024;
/// More than have room.
const N_OBJECTS_MAX: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_and_deletes_when_etcd_is_full() {
    let member = Member::alone_with("http", &["--max-request-bytes=2097152", QUOTA]);
    member.wait_until_healthy();
    let url = member.url.clone();
    let place = Place::Etcd(member);
    let folder = directory();
    let start = || Server::start_with(folder.path(), &place, &["--etcd-compaction-interval=0s"]);
    let server = start();
    let n_written = fill(&server.client()).await;
    assert!((1..N_OBJECTS_MAX).contains(&n_written), "{n_written} objects have room");
    server.kill();

    let server = start();
    let client = server.client();
    let n_found = names(&client).await.len();
    assert!(n_found >= n_written, "{n_written} acknowledged, {n_found} found");
    assert_eq!(fill(&client).await, 0, "there is no space");
    for name in names(&client).await {
        let path = format!("{CONFIG_MAPS}/{name}");
        let (code, answer) = client.ask(Method::DELETE, &path, &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
    }
    server.kill();

    let server = start();
    let client = server.client();
    assert_eq!(names(&client).await, [""; 0]);
    give_space(&url, &client).await;
    assert!(fill(&client).await > 0, "there is space again");
}

/// Creates large objects until etcd is full, and returns their number.
async fn fill(client: &Client) -> usize {
    for n in 0..N_OBJECTS_MAX {
        let metadata = json!({"generateName": "large-", "labels": {"large": "true"}});
        let body = json!({"metadata": metadata, "data": {"padding": "x".repeat(VALUE_BYTES)}});
        let (code, answer) = client.ask(Method::POST, CONFIG_MAPS, &body).await;
        if code != 201 {
            assert!(matches!(code, 429 | 500 | 503 | 507), "{code} {answer}");
            return n;
        }
    }
    N_OBJECTS_MAX
}

async fn names(client: &Client) -> Vec<String> {
    let path = format!("{CONFIG_MAPS}?labelSelector=large");
    let (code, list) = client.ask(Method::GET, &path, &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}

/// Frees space in etcd as an operator would.
async fn give_space(url: &str, client: &Client) {
    let (_, list) = client.ask(Method::GET, CONFIG_MAPS, &Value::Null).await;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    for args in [&["compact", revision][..], &["defrag"], &["alarm", "disarm"]] {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").arg(format!("--endpoints={url}")).args(args);
        let output = command.output().expect("`etcdctl`, which comes with etcd");
        assert!(output.status.success(), "{args:?} {output:?}");
    }
}
