//! Targets, clients and peers that the tests share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fake_http::{Authority, Leaf, Peer, ServerTls};
use https_client::{
    CaBundle, CertificateObserver, Client, Destination, Fault, Limits, Reply, Scheme, ServerTrust,
    Target,
};

/// A timeout far above the duration of any test.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A target at an address, with the server name that test certificates have.
pub(crate) fn target(scheme: Scheme, address: SocketAddr) -> Target {
    let place =
        Destination::Url { scheme, host: address.ip().to_string(), port: Some(address.port()) };
    Target { accepts_gzip: false, ..Target::new(place, "/authorize") }
}

pub(crate) fn http(address: SocketAddr) -> Target {
    target(Scheme::Http, address)
}

/// A target that trusts only this CA.
pub(crate) fn https(address: SocketAddr, authority_pem: &str) -> Target {
    let roots = CaBundle::from_pem(authority_pem.as_bytes()).unwrap();
    Target { server_trust: ServerTrust::CaBundle(roots), ..target(Scheme::Https, address) }
}

pub(crate) fn client(target: Target) -> Client {
    Client::new(target, None, Limits::default(), Arc::new(https_client::NoCertificateObserver))
        .unwrap()
}

pub(crate) async fn post(client: &Client) -> Result<Reply, Fault> {
    client.post("timeout=3s", Bytes::from_static(b"{}"), LONG).await
}

/// Waits until a condition holds. The tasks of the client bring it about, so this function must not block them.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, wait).await.unwrap();
}

/// Closes the connections of a peer and gives the client the chance to notice. By then the end of each connection
/// has arrived, so one poll of the sockets suffices.
pub(crate) async fn close_connections(peer: &Peer) {
    peer.close_connections().unwrap();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Makes a CA, and the TLS settings of a peer with a certificate of that CA.
pub(crate) fn secure() -> (Authority, ServerTls) {
    let authority = Authority::new("ca").unwrap();
    let tls = ServerTls::new(authority.issue(&Leaf::loopback()).unwrap());
    (authority, tls)
}

/// Counts the events of a certificate observer.
#[derive(Default)]
pub(crate) struct CountingObserver {
    n_missing_san: AtomicUsize,
    n_sha1: AtomicUsize,
}

impl CountingObserver {
    /// The number of certificates without a SAN extension, and of those with a SHA-1 signature.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.n_missing_san.load(Ordering::SeqCst), self.n_sha1.load(Ordering::SeqCst))
    }
}

impl CertificateObserver for CountingObserver {
    fn on_missing_san(&self) {
        self.n_missing_san.fetch_add(1, Ordering::SeqCst);
    }

    fn on_sha1_signature(&self) {
        self.n_sha1.fetch_add(1, Ordering::SeqCst);
    }
}
