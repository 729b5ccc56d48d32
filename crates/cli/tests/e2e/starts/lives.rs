//! The requests to a server between its start and its end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::client::Client;

/// A server that has said that it serves is ready within this time.
const READY_MAX: Duration = Duration::from_secs(10);
/// A server without requests ends within this time after SIGTERM.
pub(super) const STOP_MAX: Duration = Duration::from_secs(10);

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// The objects that were acknowledged, and the addresses that services got.
#[derive(Default)]
pub(super) struct Acknowledged {
    config_maps: BTreeMap<String, Value>,
    addresses: BTreeMap<String, String>,
}

/// Runs something that asks.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(future)
}

impl Acknowledged {
    /// The server becomes ready, has everything that was acknowledged before, and takes more.
    ///
    /// # Panics
    /// It does not.
    pub(super) async fn extend(&mut self, client: &Client, name: &str) {
        wait_until_ready(client).await;
        self.check(client).await;
        let body = json!({"metadata": {"name": name}, "data": {"of": name}});
        let (code, made) = client.ask(Method::POST, CONFIG_MAPS, &body).await;
        assert_eq!(code, 201, "{made}");
        let (code, read) =
            client.ask(Method::GET, &format!("{CONFIG_MAPS}/{name}"), &Value::Null).await;
        assert_eq!((code, &read), (200, &made));
        self.config_maps.insert(name.to_owned(), made);

        let body = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
        let (code, made) = client.ask(Method::POST, SERVICES, &body).await;
        assert_eq!(code, 201, "{made}");
        let address = made["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
        let is_new = self.addresses.values().all(|other| address.is_empty() || *other != address);
        assert!(is_new, "{address} is given twice");
        self.addresses.insert(name.to_owned(), address);
    }

    /// Everything that was acknowledged is there and nothing else.
    pub(super) async fn check(&self, client: &Client) {
        let (code, list) = client.ask(Method::GET, CONFIG_MAPS, &Value::Null).await;
        assert_eq!(code, 200, "{list}");
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let items = list["items"].as_array().unwrap();
        let found: BTreeMap<String, String> =
            items.iter().map(|item| (name(item), item["data"]["of"].to_string())).collect();
        let wanted = self.config_maps.iter();
        let wanted = wanted.map(|(name, own)| (name.clone(), own["data"]["of"].to_string()));
        assert_eq!(found, wanted.collect::<BTreeMap<_, _>>());
        for (name, made) in &self.config_maps {
            let (code, read) =
                client.ask(Method::GET, &format!("{CONFIG_MAPS}/{name}"), &Value::Null).await;
            assert_eq!((code, &read), (200, made));
        }
        let (code, list) = client.ask(Method::GET, SERVICES, &Value::Null).await;
        assert_eq!(code, 200, "{list}");
        let address =
            |item: &Value| item["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
        let mut found: BTreeMap<String, String> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (name(item), address(item)))
            .collect();
        found.remove("kubernetes").expect("the service of the server");
        assert_eq!(found, self.addresses);
    }

    /// The addresses that services have, without those that have none.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &str> {
        self.addresses.values().map(String::as_str).filter(|address| !address.is_empty())
    }

    pub(super) fn len(&self) -> usize {
        self.addresses.len()
    }
}

async fn wait_until_ready(client: &Client) {
    let begun = Instant::now();
    loop {
        let (code, text) = client.get_text("/readyz?verbose").await;
        if code == 200 {
            return;
        }
        assert!(begun.elapsed() < READY_MAX, "the server is not ready: {text}");
        // This waits for a real process: the server becomes ready.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
