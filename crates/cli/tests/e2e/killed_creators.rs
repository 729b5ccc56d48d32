//! The server is killed while services are created and deleted: every address is that of a service or free,
//! every start succeeds, and the repair of a start finds nothing to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::Client;
use crate::server::{Place, Server, directory};

const SERVICES: &str = "/api/v1/namespaces/default/services";
/// A range of 62 usable addresses.
const RANGE: &str = "--service-cluster-ip-range=10.77.0.0/26";
const N_ADDRESSES: usize = 62;
const N_KILLS: usize = 6;
const N_WRITERS: usize = 6;
/// The test fails if writes take longer than this time.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_address_is_lost_with_the_embedded_store() {
    kill_again_and_again(&Place::Embedded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_address_is_lost_with_etcd() {
    kill_again_and_again(&Place::etcd()).await;
}

async fn kill_again_and_again(place: &Place) {
    let directory = directory();
    for round in 0..N_KILLS {
        let server = Server::start_with(directory.path(), place, &[RANGE]);
        let n_answered = Arc::new(AtomicUsize::new(0));
        let mut writers = JoinSet::new();
        for writer in 0..N_WRITERS {
            let name = format!("s{round}-{writer}");
            writers.spawn(write(server.client(), name, Arc::clone(&n_answered)));
        }
        let enough = async {
            while n_answered.load(Ordering::SeqCst) < 20 + 7 * round {
                // This waits for a real process: the server answers requests of other tasks.
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        };
        tokio::time::timeout(PATIENCE, enough).await.expect("writes come about");
        server.kill();
        writers.join_all().await;
    }
    let server = Server::start_with(directory.path(), place, &[RANGE]);
    let client = server.client();
    let (code, list) = client.ask(Method::GET, SERVICES, &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let n_services = list["items"].as_array().unwrap().len();
    let mut n_more = 0;
    loop {
        let (code, answer) =
            client.ask(Method::POST, SERVICES, &service(&format!("more{n_more}"))).await;
        match code {
            201 => n_more += 1,
            _ => {
                assert!(answer["message"].as_str().unwrap().ends_with("range is full"), "{answer}");
                break;
            }
        }
    }
    assert_eq!(n_services + n_more, N_ADDRESSES);
    let log = server.log();
    assert!(!log.contains("reservations of cluster IPs did not match"), "{log}");
}

fn service(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}})
}

/// Creates services until the server dies, and deletes all but the first.
async fn write(client: Client, prefix: String, n_answered: Arc<AtomicUsize>) {
    let Ok(mut connection) = client.connect().await else { return };
    for n in 0.. {
        let name = format!("{prefix}-{n}");
        let body = service(&name);
        if connection.send(Method::POST, SERVICES, &body).await.is_err() {
            return;
        }
        n_answered.fetch_add(1, Ordering::SeqCst);
        let path = format!("{SERVICES}/{name}");
        if n > 0 && connection.send(Method::DELETE, &path, &Value::Null).await.is_err() {
            return;
        }
    }
}
