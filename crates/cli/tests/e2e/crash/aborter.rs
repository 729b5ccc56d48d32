//! A client that hangs up before it has its answers.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::CONFIG_MAPS;
use super::services::{LABEL, SERVICES};
use super::writer::{Doubt, Written, request_id};
use crate::client::{Broken, Client, Http2Connection};
use crate::random::Random;

/// A connection or a stream ends within this time.
const PATIENCE_US_MAX: u64 = 3_000;
/// The requests of one aborter in one life of the server, and the services among them.
const N_REQUESTS_MAX: usize = 16;
const N_SERVICES_MAX: usize = 6;
/// The longest pause between two.
const PAUSE_US_MAX: u64 = 4_000;

/// Creates objects, half of them over connections that it closes and half in streams that it resets. All
/// of them were carried out, or not.
pub(super) struct Aborter {
    prefix: String,
    n: usize,
    services: Vec<String>,
    random: Random,
    written: Written,
}

impl Aborter {
    /// The objects get names of a writer, which will take care of them when the server lives again.
    pub(super) fn new(writer: usize, round: usize, random: Random) -> Self {
        let prefix = format!("w{writer}-{round}x");
        let services = Vec::new();
        Self { prefix, n: 0, services, random, written: Written::default() }
    }

    /// Sends requests until the server has ended, and returns their number.
    pub(super) async fn abort(mut self, client: Client) -> (Written, usize) {
        if let Ok(mut connection) = client.connect_http2().await {
            while self.n < N_REQUESTS_MAX && self.step(&client, &mut connection).await.is_ok() {}
        }
        (self.written, self.n)
    }

    async fn step(&mut self, client: &Client, http2: &mut Http2Connection) -> Result<(), Broken> {
        self.n += 1;
        let name = format!("{}-{}", self.prefix, self.n);
        let id = request_id("ADDED", &name, &name);
        let request = match self.random.below(4) {
            0 if self.services.len() < N_SERVICES_MAX => {
                self.services.push(name.clone());
                let metadata = json!({"name": name, "labels": {LABEL: "true"}});
                let body = json!({"metadata": metadata, "spec": {"ports": [{"port": 80}]}});
                client.request(&id, Method::POST, SERVICES, &body)
            }
            1 if !self.services.is_empty() => {
                let service = self.services[0].clone();
                self.services.rotate_left(1);
                let path = format!("{SERVICES}/{service}");
                client.request(&format!("delete-{name}"), Method::DELETE, &path, &Value::Null)
            }
            _ => {
                self.written.doubts.push(Doubt { name: name.clone(), after: Some(name.clone()) });
                let body = json!({"metadata": {"name": name}, "data": {"value": name}});
                client.request(&id, Method::POST, CONFIG_MAPS, &body)
            }
        };
        // This waits for a real process: the server works for a random time between two requests.
        tokio::time::sleep(Duration::from_micros(self.random.below(PAUSE_US_MAX))).await;
        let after = Duration::from_micros(self.random.below(PATIENCE_US_MAX));
        match self.random.below(2) {
            0 => client.send_and_close(request, after).await,
            _ => http2.send_and_reset(request, after).await,
        }
    }
}
