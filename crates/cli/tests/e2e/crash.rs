//! The server is killed again and again while clients write: what was acknowledged is never lost, what
//! was told is never taken back, and history has neither gaps nor repetitions.
//!
//! `cargo xtask crash --kills N` runs this for longer.

mod ledger;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Client, Events};
use crate::server::{Place, Server, directory};
use ledger::{Ledger, Told};
use writer::{Random, Writer};

/// How many times the server is killed, if the tests are to take long.
const KILLS_VARIABLE: &str = "PORTCULLIS_CRASH_KILLS";
/// How many times it is killed otherwise.
const N_KILLS: usize = 8;
const N_WRITERS: usize = 12;
/// A kill comes after at most so many acknowledged writes.
const N_WRITES_MAX: u64 = 120;
/// Writes that do not come about within this time do not come.
const PATIENCE: Duration = Duration::from_secs(60);

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_with_the_embedded_store() {
    kill_again_and_again(&Place::Embedded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_with_etcd() {
    kill_again_and_again(&Place::etcd()).await;
}

async fn kill_again_and_again(place: &Place) {
    let n_kills = match std::env::var(KILLS_VARIABLE) {
        Ok(n) => n.parse().expect("a number of kills"),
        Err(_) => N_KILLS,
    };
    let seed = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros();
    let mut random = Random::new(u64::try_from(seed).unwrap());
    let directory = directory();
    let mut ledger = Ledger::default();
    for round in 0..n_kills {
        let server = Server::start(directory.path(), place);
        check(&server.client(), &mut ledger, round).await;
        write_and_kill(server, &mut ledger, round, &mut random).await;
    }
    let server = Server::start(directory.path(), place);
    check(&server.client(), &mut ledger, n_kills).await;
    println!("{n_kills} kills, {} acknowledged writes, seed {seed}", ledger.n_acknowledged);
}

/// Lets clients write, one watch, and kills the server at some moment.
async fn write_and_kill(server: Server, ledger: &mut Ledger, round: usize, random: &mut Random) {
    let client = server.client();
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={}", ledger.revision);
    let watch = client.watch(&path).await.unwrap();
    let watching = tokio::spawn(listen(watch));
    let n_acknowledged = Arc::new(AtomicUsize::new(0));
    let mut writers = JoinSet::new();
    for id in 0..N_WRITERS {
        let facts = ledger.facts_of(id);
        let writer = Writer::new(id, round, facts, random.split(), Arc::clone(&n_acknowledged));
        writers.spawn(writer.write(client.clone()));
    }
    let n_wanted = usize::try_from(random.below(N_WRITES_MAX)).unwrap();
    let enough = async {
        while n_acknowledged.load(Ordering::SeqCst) < n_wanted {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
    };
    tokio::time::timeout(PATIENCE, enough).await.expect("writes come about");
    tokio::time::sleep(Duration::from_micros(random.below(5_000))).await;
    server.kill();
    for written in writers.join_all().await {
        ledger.add(written);
    }
    ledger.told = watching.await.unwrap();
}

/// Everything that is told until the server dies.
async fn listen(mut watch: Events) -> Vec<Told> {
    let mut told = Vec::new();
    while let Ok(event) = watch.next().await {
        told.push(Told::new(&event));
    }
    told
}

/// Compares a server that has started again with what is known.
async fn check(client: &Client, ledger: &mut Ledger, round: usize) {
    // What the dead server had sent to its store and nobody had acknowledged may still be on its way.
    // It is there, or never will be, when a write that came later is.
    let marker = json!({"metadata": {"name": format!("marker-{round}")}});
    let (code, marker) = client.ask(Method::POST, CONFIG_MAPS, &marker).await;
    assert_eq!(code, 201, "{marker}");
    let marker = revision(&marker);
    assert!(marker > ledger.revision, "the revision {marker} is not above {}", ledger.revision);
    let (code, list) = client.ask(Method::GET, CONFIG_MAPS, &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let replayed = match round {
        0 => None,
        _ => Some(replay(client, ledger.since, marker).await),
    };
    ledger.settle(&list, replayed.as_deref());
    ledger.since = marker;
    ledger.revision = marker;
}

/// What happened between two revisions, as the server tells it now.
async fn replay(client: &Client, since: u64, until: u64) -> Vec<Told> {
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={since}");
    let mut watch = client.watch(&path).await.unwrap();
    let mut told: Vec<Told> = Vec::new();
    while told.last().is_none_or(|last| last.revision < until) {
        told.push(Told::new(&watch.next().await.expect("the whole history")));
    }
    told
}

/// The revision of an object or a list.
fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no revision: {object}"))
}
