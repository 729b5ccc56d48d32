//! Pooling of connections: which are kept, replaced and closed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fake_http::{Answer, Conduct, Peer, Request, Script};
use https_client::{Client, Limits, NoCertificateObserver};

use crate::fixture::{LONG, client, close_connections, http, https, post, secure, until};

#[tokio::test]
async fn one_connection_serves_many_calls() {
    let (authority, tls) = secure();
    let peer = Peer::start_tls(Answer::json("{}"), &tls).unwrap();
    let client = client(https(peer.address(), &authority.pem()));
    for _ in 0..10 {
        post(&client).await.unwrap();
    }
    assert_eq!((peer.requests().len(), peer.n_accepted(), peer.n_open()), (10, 1, 1));
    drop(client);
    until(|| peer.n_open() == 0).await;
}

/// A connection that the peer has closed while it was idle fails no call.
#[tokio::test]
async fn stale_connections_are_replaced() {
    let peer = Peer::start(Answer::json("{}")).unwrap();
    let client = client(http(peer.address()));
    for _ in 0..5 {
        post(&client).await.unwrap();
        close_connections(&peer).await;
    }
    assert_eq!((peer.requests().len(), peer.n_accepted()), (5, 5));
}

/// The client never repeats a request that was sent, whatever happens to the response.
#[tokio::test]
async fn sent_requests_are_not_repeated() {
    let answers = vec![Answer::json("{}"), Answer::misbehave(Conduct::Close), Answer::json("{}")];
    let peer = Peer::start(answers).unwrap();
    let client = client(http(peer.address()));
    post(&client).await.unwrap();
    post(&client).await.unwrap_err();
    assert_eq!(peer.requests().len(), 2);
    post(&client).await.unwrap();
}

#[tokio::test]
async fn idle_connections_are_closed_after_a_while() {
    let peer = Peer::start(Answer::json("{}")).unwrap();
    let limits = Limits { idle_timeout: Duration::from_millis(50), ..Limits::default() };
    let target = http(peer.address());
    let client = Client::new(target, None, limits, Arc::new(NoCertificateObserver)).unwrap();
    post(&client).await.unwrap();
    until(|| peer.n_open() == 0).await;
    post(&client).await.unwrap();
    assert_eq!(peer.n_accepted(), 2);
}

#[tokio::test]
async fn no_more_idle_connections_are_kept_than_permitted() {
    let slow = Answer::json("{}").delay(Duration::from_millis(100));
    let peer = Peer::start(slow).unwrap();
    let limits = Limits { idle_connections_max: 2, ..Limits::default() };
    let target = http(peer.address());
    let client = Client::new(target, None, limits, Arc::new(NoCertificateObserver)).unwrap();
    let client = Arc::new(client);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let client = Arc::clone(&client);
        calls.spawn(async move { post(&client).await.unwrap().status });
    }
    assert_eq!(calls.join_all().await, [200; 8]);
    until(|| peer.n_open() <= 2).await;
}

/// A request that stops waiting for its response closes its connection.
#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let (authority, tls) = secure();
    let peer = Peer::start_tls(Answer::misbehave(Conduct::Hang), &tls).unwrap();
    let client = Arc::new(client(https(peer.address(), &authority.pem())));
    let calling = {
        let client = Arc::clone(&client);
        tokio::spawn(async move { client.post("", Bytes::new(), LONG).await })
    };
    until(|| !peer.requests().is_empty()).await;
    calling.abort();
    assert!(calling.await.unwrap_err().is_cancelled());
    until(|| peer.n_open() == 0).await;
}

/// A connection check sends no request.
#[tokio::test]
async fn a_connection_check_sends_no_request() {
    let (authority, tls) = secure();
    let peer = Peer::start_tls(Answer::json("{}"), &tls).unwrap();
    let client = client(https(peer.address(), &authority.pem()));
    client.check_connection(LONG).await.unwrap();
    until(|| !peer.handshakes().is_empty() && peer.n_open() == 0).await;
    assert!(peer.requests().is_empty());
    peer.stop_listening().unwrap();
    let fault = client.check_connection(LONG).await.unwrap_err();
    let message = format!("dial tcp {}: connect: connection refused", peer.address());
    assert_eq!(fault.message, message);
}

/// A request never waits for a connection that a slow request uses, even if the peer offers HTTP/2 with few
/// concurrent streams.
#[tokio::test]
async fn slow_calls_do_not_delay_other_calls() {
    const N_SLOW: usize = 40;
    let (authority, tls) = secure();
    let script = Script::rule(|request: &Request| {
        let answer = Answer::json("{}");
        if request.body == b"slow" { answer.delay(LONG) } else { answer }
    });
    let peer = Peer::start_tls(script, &tls.offer_http2()).unwrap();
    let client = Arc::new(client(https(peer.address(), &authority.pem())));
    let slow: Vec<_> = (0..N_SLOW)
        .map(|_| {
            let client = Arc::clone(&client);
            tokio::spawn(async move { client.post("", Bytes::from_static(b"slow"), LONG).await })
        })
        .collect();
    until(|| peer.requests().len() == N_SLOW).await;
    for _ in 0..3 {
        let body = Bytes::from_static(b"quick");
        client.post("", body, Duration::from_secs(3)).await.unwrap();
    }
    assert_eq!(peer.n_accepted(), N_SLOW + 1, "those who wait hold theirs, the others share one");
    assert!(slow.iter().all(|call| !call.is_finished()));
    slow.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Each response reaches its own request, however many requests run at the same time.
#[tokio::test]
async fn many_concurrent_calls_get_their_own_responses() {
    let (authority, tls) = secure();
    let echo = Script::rule(|request: &Request| Answer::json(request.body.clone()));
    let peer = Peer::start_tls(echo, &tls.offer_http2()).unwrap();
    let client = Arc::new(client(https(peer.address(), &authority.pem())));
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..200_u32 {
        let client = Arc::clone(&client);
        calls.spawn(async move {
            let body = Bytes::from(n.to_string());
            assert_eq!(client.post("", body.clone(), LONG).await.unwrap().body, body);
        });
    }
    calls.join_all().await;
    assert_eq!(peer.requests().len(), 200);
}
