//! A TCP balancer with health checks, as it stands in front of several servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::PATIENCE;
use crate::client::Client;

/// How often a server is asked whether it is ready.
const PROBE_INTERVAL: Duration = Duration::from_millis(200);

/// One address for several servers. New connections go to servers that are ready, in turn. Dropping it ends all.
pub(super) struct Balancer {
    pub(super) address: SocketAddr,
    backends: Arc<[Backend]>,
    _tasks: JoinSet<()>,
}

struct Backend {
    address: SocketAddr,
    is_healthy: AtomicBool,
}

impl Balancer {
    pub(super) async fn start(addresses: Vec<SocketAddr>, probe: Client) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let backend = |address| Backend { address, is_healthy: AtomicBool::new(true) };
        let backends: Arc<[Backend]> = addresses.into_iter().map(backend).collect();
        let mut tasks = JoinSet::new();
        for n in 0..backends.len() {
            tasks.spawn(check_health(Arc::clone(&backends), n, probe.clone()));
        }
        tasks.spawn(accept(listener, Arc::clone(&backends)));
        Self { address, backends, _tasks: tasks }
    }

    /// Waits until a server is ready, or is not.
    pub(super) async fn wait_for_health(&self, n: usize, is_healthy: bool) {
        let begun = Instant::now();
        while self.backends[n].is_healthy.load(Ordering::SeqCst) != is_healthy {
            assert!(begun.elapsed() < PATIENCE, "server {n} should be ready: {is_healthy}");
            // This waits for a real process: the server starts or stops.
            tokio::time::sleep(PROBE_INTERVAL).await;
        }
    }
}

async fn check_health(backends: Arc<[Backend]>, n: usize, probe: Client) {
    let backend = &backends[n];
    let probe = probe.at(backend.address);
    loop {
        let is_ready = probe.is_ready().await;
        backend.is_healthy.store(is_ready, Ordering::SeqCst);
        // This waits for a real process: a server is asked from time to time.
        tokio::time::sleep(PROBE_INTERVAL).await;
    }
}

async fn accept(listener: TcpListener, backends: Arc<[Backend]>) {
    let next = AtomicUsize::new(0);
    let mut connections = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let first = next.fetch_add(1, Ordering::SeqCst);
        connections.spawn(forward(client, Arc::clone(&backends), first));
        while connections.try_join_next().is_some() {}
    }
}

/// Connects a client with the next server that is ready and accepts connections.
async fn forward(mut client: TcpStream, backends: Arc<[Backend]>, first: usize) {
    for n in 0..backends.len() {
        let backend = &backends[(first + n) % backends.len()];
        if !backend.is_healthy.load(Ordering::SeqCst) {
            continue;
        }
        if let Ok(mut server) = TcpStream::connect(backend.address).await {
            // Either side may end the connection.
            tokio::io::copy_bidirectional(&mut client, &mut server).await.ok();
            return;
        }
    }
}
