//! Tests with concurrent writers of one object.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WRITERS: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn of_writers_that_saw_the_same_state_one_wins() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let made = admin.post(MAPS, &json!({"metadata": {"name": "a"}})).await.expect(201);
    let version = made["metadata"]["resourceVersion"].clone();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (admin, version) = (cluster.admin(), version.clone());
        writers.spawn(async move {
            let body = json!({"metadata": {"name": "a", "resourceVersion": version},
                "data": {"writer": writer.to_string()}});
            (writer, admin.put(&format!("{MAPS}/a"), &body).await)
        });
    }
    let mut winners = Vec::new();
    while let Some(written) = writers.join_next().await {
        let (writer, answer) = written.unwrap();
        match answer.code {
            200 => winners.push(writer),
            _ => assert_eq!(answer.expect(409)["reason"], "Conflict"),
        }
    }
    let [winner] = winners[..] else { panic!("{winners:?} won") };
    let read = admin.get(&format!("{MAPS}/a")).await.expect(200);
    assert_eq!(read["data"]["writer"], winner.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_that_meet_are_all_applied() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let object = json!({"metadata": {"name": "a"}, "data": {}});
    let start = admin.post(MAPS, &object).await.expect(201);
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let admin = cluster.admin();
        writers.spawn(async move {
            let patch = json!({"data": {format!("k{writer}"): "v"}});
            admin.patch(&format!("{MAPS}/a"), "merge-patch", &patch).await.expect(200)
        });
    }
    let mut versions = Vec::new();
    while let Some(written) = writers.join_next().await {
        versions.push(written.unwrap()["metadata"]["resourceVersion"].clone());
    }
    let read = admin.get(&format!("{MAPS}/a")).await.expect(200);
    assert_eq!(read["data"].as_object().map(serde_json::Map::len), Some(WRITERS));
    // Each write is one change, and one event of a watch.
    let start = start["metadata"]["resourceVersion"].as_str().unwrap();
    let mut events = admin.watch(&format!("{MAPS}?watch=1&resourceVersion={start}")).await;
    let mut told = Vec::new();
    for n_keys in 1..=WRITERS {
        let object = events.next().await.unwrap()["object"].take();
        assert_eq!(object["data"].as_object().map(serde_json::Map::len), Some(n_keys));
        told.push(object["metadata"]["resourceVersion"].clone());
    }
    let by_number = |own: &Value| own.as_str().unwrap().parse::<u64>().unwrap();
    versions.sort_by_key(by_number);
    assert_eq!(told, versions);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_creations_of_one_name_one_wins() {
    let cluster = Cluster::start().await;
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let admin = cluster.admin();
        writers.spawn(async move { admin.post(MAPS, &json!({"metadata": {"name": "a"}})).await });
    }
    let mut n_made = 0;
    while let Some(written) = writers.join_next().await {
        let answer = written.unwrap();
        match answer.code {
            201 => n_made += 1,
            _ => assert_eq!(answer.expect(409)["reason"], "AlreadyExists"),
        }
    }
    assert_eq!(n_made, 1);
}
