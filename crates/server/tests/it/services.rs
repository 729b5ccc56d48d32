//! Addresses of services, and collections that are deleted by several workers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cluster::Cluster;

fn service(name: &str, address: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": [{"port": 80}]}})
}

/// Cluster IPs come from the range, each is allocated once, and a deleted service releases its own.
#[tokio::test(flavor = "multi_thread")]
async fn services_have_addresses_of_their_own() {
    let cluster = Cluster::start_with(|options, _| {
        options.api_settings.service_ip_range = "10.0.0.0/29".parse().ok();
    })
    .await;
    let admin = cluster.admin();
    let services = "/api/v1/namespaces/default/services";
    let own = admin.get(&format!("{services}/kubernetes")).await.expect(200);
    assert_eq!(own["spec"]["clusterIP"], "10.0.0.1");
    let mut seen = BTreeSet::new();
    for number in 0..5 {
        let made = admin.post(services, &service(&format!("s{number}"), "")).await.expect(201);
        assert_eq!(made["spec"]["clusterIPs"], json!([made["spec"]["clusterIP"]]));
        assert!(seen.insert(made["spec"]["clusterIP"].to_string()), "{made}");
    }
    let full = admin.post(services, &service("more", "")).await.expect(500);
    assert!(full["message"].as_str().unwrap().ends_with("range is full"), "{full}");
    let gone = admin.delete(&format!("{services}/s2")).await.expect(200);
    let free = gone["spec"]["clusterIP"].as_str().unwrap().to_owned();
    let taken = admin.post(services, &service("more", "10.0.0.1")).await.expect(422);
    assert!(taken["message"].as_str().unwrap().contains("already allocated"), "{taken}");
    let foreign = admin.post(services, &service("more", "10.1.0.1")).await.expect(422);
    assert!(foreign["message"].as_str().unwrap().contains("valid range 10.0.0.0/29"), "{foreign}");
    // A service that was not created releases its address, as a deleted one does.
    admin.post(services, &service("s1", &free)).await.expect(409);
    let made = admin.post(services, &service("more", "")).await.expect(201);
    assert_eq!(made["spec"]["clusterIP"], free.as_str());
    let headless = admin.post(services, &service("headless", "None")).await.expect(201);
    assert_eq!(headless["spec"]["clusterIP"], "None");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_workers_delete_a_collection() {
    let cluster =
        Cluster::start_with(|options, _| options.api_settings.delete_collection_workers = 4).await;
    let admin = cluster.admin();
    let maps = "/api/v1/namespaces/default/configmaps";
    for number in 0..11 {
        let map = json!({"metadata": {"name": format!("m{number}")}});
        admin.post(maps, &map).await.expect(201);
    }
    let listed = admin.delete(maps).await.expect(200);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(11));
    let left = admin.get(maps).await.expect(200);
    assert_eq!(left["items"], json!([]));
}
