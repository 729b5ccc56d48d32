//! Targets, clients and peers that the tests share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fake_http::{Authority, Leaf, Peer, ServerTls};
use https_client::{
    CaBundle, CertificateObserver, Client, Destination, Fault, Limits, Reply, Scheme, Target, Trust,
};

/// Far more than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A target at an address, under the name that certificates for tests bear.
pub(crate) fn target(scheme: Scheme, address: SocketAddr) -> Target {
    let place =
        Destination::Url { scheme, host: address.ip().to_string(), port: Some(address.port()) };
    Target { accepts_gzip: false, ..Target::new(place, "/authorize") }
}

pub(crate) fn http(address: SocketAddr) -> Target {
    target(Scheme::Http, address)
}

/// A target that trusts only an authority.
pub(crate) fn https(address: SocketAddr, authority_pem: &str) -> Target {
    let roots = CaBundle::from_pem(authority_pem.as_bytes()).unwrap();
    Target { trust: Trust::CaBundle(roots), ..target(Scheme::Https, address) }
}

pub(crate) fn client(target: Target) -> Client {
    Client::new(target, None, Limits::default(), Arc::new(https_client::NoCertificateObserver))
        .unwrap()
}

pub(crate) async fn post(client: &Client) -> Result<Reply, Fault> {
    client.post("timeout=3s", Bytes::from_static(b"{}"), LONG).await
}

/// Waits for something that the tasks of the client bring about, so they must not be blocked.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, wait).await.unwrap();
}

/// Closes the connections of a peer and gives the client the chance to notice. The end of a closed
/// connection is there by then, so one look at the sockets suffices.
pub(crate) async fn close_connections(peer: &Peer) {
    peer.close_connections().unwrap();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// An authority and how a peer with a certificate of it speaks TLS.
pub(crate) fn secure() -> (Authority, ServerTls) {
    let authority = Authority::new("ca").unwrap();
    let tls = ServerTls::new(authority.issue(&Leaf::loopback()).unwrap());
    (authority, tls)
}

/// Counts what is observed.
#[derive(Default)]
pub(crate) struct Counted {
    n_missing_san: AtomicUsize,
    n_sha1: AtomicUsize,
}

impl Counted {
    /// Certificates without a SAN extension, and with a SHA-1 signature.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.n_missing_san.load(Ordering::SeqCst), self.n_sha1.load(Ordering::SeqCst))
    }
}

impl CertificateObserver for Counted {
    fn on_missing_san(&self) {
        self.n_missing_san.fetch_add(1, Ordering::SeqCst);
    }

    fn on_sha1_signature(&self) {
        self.n_sha1.fetch_add(1, Ordering::SeqCst);
    }
}
