//! A server that may open few files, and peers that want all of them.

use std::net::TcpStream;

use http::Method;
use serde_json::json;

use crate::server::{Allowance, Place, Server, directory};

/// The limit of open files that the process is started with, and the one that it may set.
const DESCRIPTORS: (u64, u64) = (64, 256);
/// The descriptors that are left for connections: without a quarter for everything else, and 16 for administrators.
const N_CONNECTIONS: usize = 256 - 64 - 16;
const N_PEERS: usize = 600;
/// Together the objects exceed the 16 MiB of a log file.
const N_OBJECTS: usize = 20;
const OBJECT_BYTES: usize = 1_000_000;

/// A13: the server raises its limit, says so, and keeps descriptors for the store: while peers take every
/// connection that they can get, the store begins another log file and no write is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a13_peers_take_no_descriptor_from_the_store() {
    let folder = directory();
    let allowance = Allowance { descriptors: Some(DESCRIPTORS), ..Allowance::default() };
    let server = Server::try_start(folder.path(), &Place::Embedded, &[], allowance).unwrap();
    let log = server.log();
    let said = format!("found=64 current=256 connections={N_CONNECTIONS}");
    assert!(log.contains(&said), "{log}");
    let client = server.client();
    let maps = "/api/v1/namespaces/default/configmaps";
    // A connection on which somebody has authenticated stays, and one that is only open may be closed.
    let mut connection = client.connect().await.unwrap();
    let (code, _) = connection.send(Method::GET, maps, &json!(null)).await.unwrap();
    assert_eq!(code, 200);
    let peers: Vec<TcpStream> =
        (0..N_PEERS).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    for n in 0..N_OBJECTS {
        let map =
            json!({"metadata": {"name": format!("m{n}")}, "data": {"a": "x".repeat(OBJECT_BYTES)}});
        let (code, answer) = connection.send(Method::POST, maps, &map).await.unwrap();
        assert_eq!(code, 201, "{answer}");
        // Somebody who connects now is served as well.
        let (code, _) = client.ask(Method::GET, &format!("{maps}/m{n}"), &json!(null)).await;
        assert_eq!(code, 200);
    }
    let names = std::fs::read_dir(folder.path().join("data/store")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let n_logs = names.filter(|name| name.starts_with("log-")).count();
    assert!(n_logs > 1, "the log was not rotated");
    let (code, text) = client.get_text("/readyz?verbose").await;
    assert!(code == 200 && text.contains("[+]storage-upkeep ok"), "{code} {text}");
    let metrics = client.text("/metrics").await;
    let evicted = metrics
        .lines()
        .filter_map(|line| {
            line.strip_prefix("portcullis_evicted_connections_total")?.rsplit_once(' ')
        })
        .map(|(_, n)| n.parse::<usize>().unwrap());
    assert!(evicted.sum::<usize>() >= N_PEERS - N_CONNECTIONS, "{metrics}");
    drop(peers);
}
