//! Services and their addresses: each service has one of its own, and none is lost.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use super::audit_log::AuditLog;
use crate::client::Client;

pub(super) const SERVICES: &str = "/api/v1/namespaces/default/services";
/// So few addresses that lost ones are missed soon.
pub(super) const RANGE: &str = "--service-cluster-ip-range=10.96.0.0/27";
/// Set on all services of this test.
pub(super) const LABEL: &str = "crash";
/// Addresses that no service holds are free again within this time after a start.
const REPAIRED_WITHIN: Duration = Duration::from_secs(10);

/// The services that the test created.
#[derive(Default)]
pub(super) struct Services {
    /// The ids of the requests that may have made those that exist.
    requests: BTreeSet<String>,
    /// How many services have room in the range.
    capacity: Option<usize>,
}

impl Services {
    /// Each service has an address of its own, and its creation is in the audit log.
    pub(super) async fn check(&mut self, client: &Client, log: &AuditLog) {
        self.requests.extend(log.received_creates());
        let (code, list) = client.ask(Method::GET, SERVICES, &Value::Null).await;
        assert_eq!(code, 200, "{list}");
        let mut addresses = BTreeSet::new();
        for service in list["items"].as_array().expect("items") {
            let name = service["metadata"]["name"].as_str().unwrap_or_default();
            let address = service["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
            assert!(addresses.insert(address), "two services have one address: {list}");
            let is_seen = name == "kubernetes" || self.requests.contains(&format!("create-{name}"));
            assert!(is_seen, "made unseen: {service}");
        }
    }

    /// After all services are deleted, as many fit in as ever.
    pub(super) async fn check_capacity(&mut self, client: &Client, round: usize) {
        let begun = Instant::now();
        loop {
            self.clear(client).await;
            let n_made = fill(client, round).await;
            let capacity = *self.capacity.get_or_insert(n_made);
            assert!(n_made <= capacity, "{n_made} addresses of {capacity}");
            if n_made == capacity {
                break;
            }
            let lost = capacity - n_made;
            assert!(begun.elapsed() < REPAIRED_WITHIN, "{lost} of {capacity} addresses are lost");
            // This waits for a real process: the server frees the addresses in the background.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.clear(client).await;
    }

    async fn clear(&mut self, client: &Client) {
        let path = format!("{SERVICES}?labelSelector={LABEL}");
        let (code, answer) = client.ask(Method::DELETE, &path, &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
        self.requests.clear();
    }
}

/// Makes services until there is no address for another one, and counts them.
async fn fill(client: &Client, round: usize) -> usize {
    let mut connection = client.connect().await.unwrap();
    for n in 0.. {
        let metadata = json!({"name": format!("fill-{round}-{n}"), "labels": {LABEL: "true"}});
        let body = json!({"metadata": metadata, "spec": {"ports": [{"port": 80}]}});
        let (code, answer) = connection.send(Method::POST, SERVICES, &body).await.unwrap();
        match code {
            201 => {}
            _ if answer["message"].as_str().is_some_and(|text| text.contains("range is full")) => {
                return n;
            }
            _ => panic!("{answer}"),
        }
    }
    panic!("addresses end")
}
