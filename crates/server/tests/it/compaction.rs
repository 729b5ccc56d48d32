//! Requests for revisions that the store has compacted.

use serde_json::{Value, json};
use store::{Revision, Store};

use crate::client::Client;
use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn fill(admin: &Client, names: &[&str]) {
    for name in names {
        admin.post(MAPS, &json!({"metadata": {"name": name}})).await.expect(201);
    }
}

/// Compacts all states but the newest.
async fn compact(cluster: &Cluster) {
    let newest = cluster.store.current_rev().await.unwrap();
    assert_eq!(cluster.store.compact(newest).await.unwrap(), newest);
    assert!(newest > Revision::FIRST);
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name")).collect()
}

/// A list of exactly a compacted revision returns 410.
#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_state_can_not_be_listed() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    fill(&admin, &["a", "b"]).await;
    let exact = format!("{MAPS}?resourceVersion=2&resourceVersionMatch=Exact");
    admin.get(&exact).await.expect(200);
    compact(&cluster).await;
    let status = admin.get(&exact).await.expect(410);
    assert_eq!(status["reason"], "Expired");
    assert_eq!(status["message"], "The resourceVersion for the provided list is too old.");
}

/// A client can continue a list of a compacted revision with the newest revision.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_forgotten_state_go_on_with_the_newest() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    fill(&admin, &["a", "b", "d"]).await;
    let page = admin.get(&format!("{MAPS}?limit=1")).await.expect(200);
    let token = page["metadata"]["continue"].as_str().unwrap();
    fill(&admin, &["c"]).await;
    compact(&cluster).await;
    let status = admin.get(&format!("{MAPS}?limit=1&continue={token}")).await.expect(410);
    assert_eq!(status["reason"], "Expired");
    let message = status["message"].as_str().unwrap();
    assert!(message.starts_with("The provided continue parameter is too old"), "{message}");
    let token = status["metadata"]["continue"].as_str().unwrap();
    let rest = admin.get(&format!("{MAPS}?limit=2&continue={token}")).await.expect(200);
    assert_eq!(names(&rest), ["b", "c"]);
    assert_ne!(rest["metadata"]["resourceVersion"], page["metadata"]["resourceVersion"]);
    let token = rest["metadata"]["continue"].as_str().unwrap();
    let rest = admin.get(&format!("{MAPS}?limit=2&continue={token}")).await.expect(200);
    assert_eq!(names(&rest), ["d"]);
}

/// A watch from a compacted revision sends an error event and ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_state_can_not_be_watched() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    fill(&admin, &["a", "b", "c"]).await;
    compact(&cluster).await;
    let mut events = admin.watch(&format!("{MAPS}?watch=1&resourceVersion=2")).await;
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    let status = &event["object"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")));
    assert_eq!(status["message"], "The resourceVersion for the provided watch is too old.");
    assert_eq!(events.next().await, None);
}
