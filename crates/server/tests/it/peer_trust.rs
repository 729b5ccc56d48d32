//! Servers of one store compare the authorities and keys that they trust, and no API user can change the result.

use std::time::{Duration, Instant};

use etcd_testing::Member;
use serde_json::{Value, json};
use store::{ExpectedKeyState, Key, Prefix, Put, Store};
use store_etcd::EtcdStore;

use crate::cluster::Cluster;
use crate::coverage::samples::definition;
use crate::three_servers::Station;

/// Waits until the answer to `/readyz?verbose` has a line.
async fn wait_for_check(station: &Station, line: &str) -> u16 {
    let begun = Instant::now();
    loop {
        let ready = station.admin().get("/readyz?verbose").await;
        if ready.text().contains(line) {
            return ready.code;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "no {line} in {}", ready.text());
        crate::polling::pause().await;
    }
}

/// Each server has certificates and keys of its own, so none knows the users of the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_server_that_differs_is_not_ready_and_the_others_are() {
    let members = [Member::alone()];
    members.iter().for_each(Member::wait_until_healthy);
    let first = Station::start(&members, |_| {}).await;
    assert_eq!(wait_for_check(&first, "[+]peer-trust ok").await, 200);
    assert_eq!(first.status().await["trust"]["state"], "same");

    // One that starts later is never ready, and the first one is told of it.
    let begun = Instant::now();
    while first.status().await["servers"].as_array().map(Vec::len) != Some(1) {
        assert!(begun.elapsed() < Duration::from_secs(10));
        crate::polling::pause().await;
    }
    let second = Station::start(&members, |_| {}).await;
    let ready = second.admin().get("/readyz").await;
    assert_eq!(ready.code, 500);
    assert!(ready.text().contains("[-]peer-trust failed: reason withheld\n"), "{}", ready.text());
    assert_eq!(second.admin().get("/livez").await.code, 200);
    let status = second.status().await;
    assert_eq!(status["trust"]["state"], "differsFromPeers", "{status}");
    let kinds = json!(["clientAuthorities", "serviceAccountKeys"]);
    assert_eq!(status["trust"]["differences"][0]["kinds"], kinds, "{status}");
    assert_eq!(wait_for_check(&first, "[-]peer-trust degraded").await, 200);
    let status = first.status().await;
    assert_eq!(status["trust"]["state"], "peersDiffer", "{status}");
    let fingerprints = status["trust"]["fingerprints"]["clientAuthorities"][0].as_str();
    assert_eq!(fingerprints.map(str::len), Some(95), "{status}");

    // After it has stopped, nothing differs.
    second.stop().await;
    assert_eq!(wait_for_check(&first, "[+]peer-trust ok").await, 200);
    first.stop().await;
}

/// A record is read as a message about another server. It never adds to what a server trusts, and what is no
/// record counts for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn records_of_others_change_no_answer() {
    let members = [Member::alone()];
    members.iter().for_each(Member::wait_until_healthy);
    let station = Station::start(&members, |_| {}).await;
    let begun = Instant::now();
    while station.status().await["servers"].as_array().map(Vec::len) != Some(1) {
        assert!(begun.elapsed() < Duration::from_secs(10));
        crate::polling::pause().await;
    }
    let before = station.status().await["trust"]["fingerprints"].clone();
    let prefix = Prefix::new("/registry/").expect("a prefix");
    let options = store_etcd::Options::new(vec![members[0].url.clone()], prefix);
    let store = EtcdStore::open(options).await.expect("a store");
    let plant = async |id: &str, value: String| {
        let key = Key::new(&format!("/registry/portcullis/servers/{id}")).expect("a key");
        let value = value.into_bytes().into();
        let put = Put {
            key,
            value,
            expected_state: ExpectedKeyState::Absent,
            ttl: None,
            key_group_revision_action: None,
        };
        store.put(put).await.expect("a write");
    };
    plant("garbage", "{".to_owned()).await;
    plant("old", json!({"id": "old", "observed": 1, "at": 1}).to_string()).await;
    assert_eq!(wait_for_check(&station, "[+]peer-trust ok").await, 200);
    let forged = json!({"id": "forged", "observed": u64::MAX, "at": 1, "trust": {
        "clientAuthorities": ["00"], "frontProxyAuthorities": ["00"],
        "serviceAccountKeys": ["x"], "serviceAccountIssuers": ["https://evil.example"]}});
    plant("forged", forged.to_string()).await;
    // The server is as old as its first heartbeat, so that a later record does not outvote it.
    assert_eq!(wait_for_check(&station, "[-]peer-trust degraded").await, 200);
    assert_eq!(station.status().await["trust"]["fingerprints"], before);
    station.stop().await;
}

/// The place of the heartbeats is no place of objects: no user can write there through the API.
#[tokio::test(flavor = "multi_thread")]
async fn no_object_is_stored_among_the_heartbeats() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut servers: Value = definition("servers", "Server", &["v1"]);
    servers["metadata"]["name"] = "servers.portcullis".into();
    servers["spec"]["group"] = "portcullis".into();
    let refused = admin.post(definitions, &servers).await.expect(422);
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(message.contains("should be a domain with at least one dot"), "{message}");
}
