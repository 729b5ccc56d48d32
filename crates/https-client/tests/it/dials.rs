//! Requests that wait for a connection to the same target share dials.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fake_http::{Answer, Peer};
use https_client::{Client, FaultKind, Limits, NoCertificateObserver};
use tokio::net::{TcpListener, TcpStream};

use crate::fixture::{LONG, https, post, secure, until};

const N_CALLERS: usize = 50;

/// A proxy that forwards connections to a peer after a delay. Without a peer it never answers.
struct DelayingProxy {
    address: SocketAddr,
    n_accepted: Arc<AtomicUsize>,
}

impl DelayingProxy {
    async fn start(delay: Duration, peer: Option<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let n_accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&n_accepted);
        tokio::spawn(async move {
            loop {
                let (mut inbound, _) = listener.accept().await.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    let Some(peer) = peer else { return std::future::pending().await };
                    let mut outbound = TcpStream::connect(peer).await.unwrap();
                    // Either side may close the connection.
                    let _ = tokio::io::copy_bidirectional(&mut inbound, &mut outbound).await;
                });
            }
        });
        Self { address, n_accepted }
    }

    fn n_accepted(&self) -> usize {
        self.n_accepted.load(Ordering::SeqCst)
    }
}

fn client(address: SocketAddr, authority_pem: &str, connect_timeout: Duration) -> Arc<Client> {
    let limits = Limits { connect_timeout, ..Limits::default() };
    let target = https(address, authority_pem);
    Arc::new(Client::new(target, None, limits, Arc::new(NoCertificateObserver)).unwrap())
}

/// A target does not complete the TLS handshake: there is one dial, and its failure fails every caller.
#[tokio::test]
async fn waiting_callers_share_one_dial_to_a_silent_target() {
    let (authority, _) = secure();
    let gate = DelayingProxy::start(Duration::ZERO, None).await;
    let client = client(gate.address, &authority.pem(), Duration::from_secs(1));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..N_CALLERS {
        let client = Arc::clone(&client);
        calls.spawn(async move { post(&client).await.unwrap_err() });
    }
    for fault in calls.join_all().await {
        assert_eq!(fault.kind, FaultKind::Connect);
        assert!(fault.message.ends_with(": i/o timeout"), "{fault}");
    }
    assert_eq!(gate.n_accepted(), 1);
    assert_eq!(post(&client).await.unwrap_err().kind, FaultKind::Connect);
    assert_eq!(gate.n_accepted(), 2, "a failure is not kept");
}

/// The caller that started the dial gives up. The dial continues for the other waiting callers.
#[tokio::test]
async fn a_caller_that_gives_up_does_not_end_the_dial() {
    let (authority, tls) = secure();
    let peer = Peer::start_tls(Answer::json("{}"), &tls).unwrap();
    let gate = DelayingProxy::start(Duration::from_millis(200), Some(peer.address())).await;
    let client = client(gate.address, &authority.pem(), LONG);
    let hasty = {
        let client = Arc::clone(&client);
        tokio::spawn(async move {
            client.post("", Bytes::new(), Duration::from_millis(1)).await.unwrap_err()
        })
    };
    until(|| gate.n_accepted() == 1).await;
    let patient = {
        let client = Arc::clone(&client);
        tokio::spawn(async move { post(&client).await })
    };
    assert_eq!(hasty.await.unwrap().kind, FaultKind::Timeout);
    assert_eq!(patient.await.unwrap().unwrap().status, 200);
    assert_eq!(gate.n_accepted(), 1, "the second caller used the dial of the first");
}

/// The number of concurrent dials to a target that answers doubles, so callers do not connect one by one.
#[tokio::test]
async fn dials_to_an_answering_target_double() {
    const N_BURST: usize = 300;
    let (authority, tls) = secure();
    let slow = Answer::json("{}").delay(Duration::from_secs(2));
    let peer = Peer::start_tls(slow, &tls).unwrap();
    let handshake = Duration::from_millis(100);
    let gate = DelayingProxy::start(handshake, Some(peer.address())).await;
    let client = client(gate.address, &authority.pem(), LONG);
    let began = std::time::Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..N_BURST {
        let client = Arc::clone(&client);
        calls.spawn(async move { post(&client).await.unwrap().status });
    }
    assert_eq!(calls.join_all().await, [200; N_BURST]);
    assert!(began.elapsed() < handshake * N_BURST as u32 / 2, "{:?}", began.elapsed());
}

/// A caller that times out while other dials succeed has waited in this process, which is not a fault of the
/// target. If no dial succeeds, the target is at fault.
#[tokio::test]
async fn a_timeout_while_other_dials_succeed_is_local() {
    let (authority, tls) = secure();
    let peer = Peer::start_tls(Answer::json("{}").delay(LONG), &tls).unwrap();
    for (peer, want) in [(Some(peer.address()), FaultKind::Local), (None, FaultKind::Timeout)] {
        let gate = DelayingProxy::start(Duration::from_millis(800), peer).await;
        let client = client(gate.address, &authority.pem(), LONG);
        let others: Vec<_> = (0..N_CALLERS)
            .map(|_| {
                let client = Arc::clone(&client);
                tokio::spawn(async move { post(&client).await })
            })
            .collect();
        until(|| gate.n_accepted() == 1).await;
        let hurried = client.post("", Bytes::new(), Duration::from_millis(1200)).await;
        assert_eq!(hurried.unwrap_err().kind, want);
        others.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
